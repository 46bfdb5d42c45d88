// The vocabulary of .pt2 files: torch/_export/serde/schema.py of torch 2.13, and the archive's records as
// torch/csrc/export/pt2_archive_constants.h names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "transporters/graph/tensor_data.h"

namespace transporters::dynamo {

// A reader takes any minor version of this major one: fields it does not know are ignored.
inline constexpr int kSchemaMajor = 8;
inline constexpr int kSchemaMinor = 20;
inline constexpr int kOpsetVersion = 10;  // of the namespace "aten"
inline constexpr const char* kTorchVersion = "2.13.0";

// How an argument was given (ArgumentKind).
inline constexpr int kPositional = 1;
inline constexpr int kKeyword = 2;
inline constexpr int kStrided = 7;  // Layout

namespace record {
inline constexpr const char* kFormat = "archive_format";
inline constexpr const char* kFormatValue = "pt2";
inline constexpr const char* kArchiveVersion = "archive_version";
inline constexpr const char* kArchiveVersionValue = "0";
inline constexpr const char* kByteOrder = "byteorder";
inline constexpr const char* kByteOrderValue = "little";
inline constexpr const char* kVersion = ".data/version";
inline constexpr const char* kVersionValue = "6\n";
inline constexpr const char* kModelFolder = "models/";
inline constexpr const char* kWeightFolder = "data/weights/";
inline constexpr const char* kWeightPrefix = "weight_";
inline constexpr const char* kWeightConfigSuffix = "_weights_config.json";
inline constexpr const char* kConstantFolder = "data/constants/";
inline constexpr const char* kConstantPrefix = "tensor_";
inline constexpr const char* kConstantConfigSuffix = "_constants_config.json";
inline constexpr const char* kSampleInputFolder = "data/sample_inputs/";
inline constexpr const char* kExtraFolder = "extra/";
// What this library adds: the users' names of symbols and leaves, which torch's schema has no place for.
inline constexpr const char* kExtra = "extra/transporters.json";
}  // namespace record

// What torch.export.save calls the one program of an archive.
inline constexpr const char* kOnlyModel = "model";

// The record of a model's names: record::kExtra, or "extra/transporters.decode.json" for one of several.
inline std::string extra_record(const std::string& model) {
  return model == kOnlyModel ? record::kExtra : std::string(record::kExtraFolder) + "transporters." + model + ".json";
}

// ScalarType's number; throws Error for types that the schema lacks (quantised ones).
int schema_dtype(ScalarType dtype);
std::optional<ScalarType> dtype_from_schema(int64_t number);
// Numbers of the names that the graph uses ("strided", "channels_last"); throw Error for unknown ones.
int schema_layout(const std::string& name);
std::optional<std::string> layout_from_schema(int64_t number);
int schema_memory_format(const std::string& name);
std::optional<std::string> memory_format_from_schema(int64_t number);

}  // namespace transporters::dynamo

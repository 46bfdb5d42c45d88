#include <array>

#include "transporters/error.h"
#include "transporters/onnx/model.h"

namespace transporters::onnx {
namespace {

struct Row {
  DataType type;
  std::string_view name;
  int bits;
  ScalarType scalar;  // Undefined: torch has none, or ONNX packs it
};

constexpr std::array kTypes = {
    Row{DataType::UNDEFINED, "undefined", 0, ScalarType::Undefined},
    Row{DataType::FLOAT, "float", 32, ScalarType::Float},
    Row{DataType::UINT8, "uint8", 8, ScalarType::Byte},
    Row{DataType::INT8, "int8", 8, ScalarType::Char},
    Row{DataType::UINT16, "uint16", 16, ScalarType::UInt16},
    Row{DataType::INT16, "int16", 16, ScalarType::Short},
    Row{DataType::INT32, "int32", 32, ScalarType::Int},
    Row{DataType::INT64, "int64", 64, ScalarType::Long},
    Row{DataType::STRING, "string", 0, ScalarType::Undefined},
    Row{DataType::BOOL, "bool", 8, ScalarType::Bool},
    Row{DataType::FLOAT16, "float16", 16, ScalarType::Half},
    Row{DataType::DOUBLE, "double", 64, ScalarType::Double},
    Row{DataType::UINT32, "uint32", 32, ScalarType::UInt32},
    Row{DataType::UINT64, "uint64", 64, ScalarType::UInt64},
    Row{DataType::COMPLEX64, "complex64", 64, ScalarType::ComplexFloat},
    Row{DataType::COMPLEX128, "complex128", 128, ScalarType::ComplexDouble},
    Row{DataType::BFLOAT16, "bfloat16", 16, ScalarType::BFloat16},
    Row{DataType::FLOAT8E4M3FN, "float8e4m3fn", 8, ScalarType::Float8_e4m3fn},
    Row{DataType::FLOAT8E4M3FNUZ, "float8e4m3fnuz", 8, ScalarType::Float8_e4m3fnuz},
    Row{DataType::FLOAT8E5M2, "float8e5m2", 8, ScalarType::Float8_e5m2},
    Row{DataType::FLOAT8E5M2FNUZ, "float8e5m2fnuz", 8, ScalarType::Float8_e5m2fnuz},
    Row{DataType::UINT4, "uint4", 4, ScalarType::Undefined},
    Row{DataType::INT4, "int4", 4, ScalarType::Undefined},
    Row{DataType::FLOAT4E2M1, "float4e2m1", 4, ScalarType::Undefined},
    Row{DataType::FLOAT8E8M0, "float8e8m0", 8, ScalarType::Float8_e8m0fnu},
    Row{DataType::UINT2, "uint2", 2, ScalarType::Undefined},
    Row{DataType::INT2, "int2", 2, ScalarType::Undefined},
};

const Row* find(DataType type) {
  for (const Row& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

DataType to_data_type(ScalarType dtype) {
  for (const Row& row : kTypes) {
    if (row.scalar == dtype && row.type != DataType::UNDEFINED && row.scalar != ScalarType::Undefined) return row.type;
  }
  throw Error({.stage = "onnx"}, std::string("ONNX has no element type for torch's ") + c10::toString(dtype));
}

std::optional<ScalarType> to_scalar_type(DataType type) {
  const Row* row = find(type);
  if (row == nullptr || row->scalar == ScalarType::Undefined) return std::nullopt;
  return row->scalar;
}

std::string_view name_of(DataType type) {
  const Row* row = find(type);
  return row ? row->name : "unknown";
}

int bits_of(DataType type) {
  const Row* row = find(type);
  return row ? row->bits : 0;
}

int64_t ir_version_for(int64_t opset) {
  // The release table of https://github.com/onnx/onnx/blob/main/docs/Versioning.md.
  constexpr std::array<std::pair<int64_t, int64_t>, 8> kReleases = {
      {{26, 13}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}, {13, 7}}};
  for (const auto& [first, ir] : kReleases) {
    if (opset >= first) return ir;
  }
  return 6;
}

}  // namespace transporters::onnx

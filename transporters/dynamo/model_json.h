// A program as schema.ExportedProgram of torch/_export/serde/schema.py.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "transporters/dynamo/names.h"
#include "transporters/graph/program.h"

namespace transporters::dynamo {

// The JSON text of models/model.json. Throws Error for what the schema can't hold.
std::string model_json(const Program& program, const SymbolNames& symbols);

// schema.TensorMeta of a tensor whose sizes are numbers.
nlohmann::ordered_json tensor_meta(const TensorData& data, int64_t storage_offset, bool requires_grad);

}  // namespace transporters::dynamo

// A program as schema.ExportedProgram of torch/_export/serde/schema.py.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "transporters/dynamo/names.h"
#include "transporters/graph/program.h"

namespace transporters::dynamo {

// The JSON text of models/model.json. Throws Error for what the schema can't hold.
std::string model_json(const Program& program, const SymbolNames& symbols);

// schema.TensorMeta of a tensor whose sizes are numbers.
nlohmann::ordered_json tensor_meta(const TensorData& data, int64_t storage_offset, bool requires_grad);

// The structure of (args, kwargs) and of the result, made up where the program has none: every user input a keyword
// argument, several outputs a tuple.
TreeSpec input_spec(const Program& program);
TreeSpec output_spec(const Program& program);
// Names of the caller's arguments, positional ones first.
std::vector<std::string> argument_names(const Program& program, const TreeSpec& spec);

// Python conditions that relate sizes of inputs to each other: "L['mask'].size()[1] == L['past'].size()[2] + 1".
std::vector<std::string> guard_code(const Program& program, const TreeSpec& spec);

}  // namespace transporters::dynamo

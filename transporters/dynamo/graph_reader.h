// models/<name>.json, schema.ExportedProgram of torch/_export/serde/schema.py, as a Program. Nodes that compute sizes
// disappear: their values are expressions in the arguments that use them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "transporters/dynamo/json_access.h"
#include "transporters/graph/program.h"

namespace transporters::dynamo {

// What save() keeps beside the schema; empty for archives of others.
struct ExtraNames {
  std::string architecture;
  std::map<std::string, std::string> symbols;  // the program's names by the file's
  std::vector<std::string> inputs, outputs;    // leaf paths
};

// The program without state and example inputs. Ops that write to their inputs are kept as they are. Throws JsonProblem
// for what does not follow the schema and Error for what a Program can't hold.
Program read_graph(const ConstJson& exported_program, const ExtraNames& extra);

}  // namespace transporters::dynamo

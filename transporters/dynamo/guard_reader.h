// Guards of torch.export, in the "guards_code" of an archive: conditions on the sizes of inputs, as Python text.
#pragma once

#include <vector>

#include "transporters/dynamo/call_spec.h"
#include "transporters/dynamo/json_access.h"
#include "transporters/dynamo/size_reader.h"
#include "transporters/graph/program.h"

namespace transporters::dynamo {

// Adds the guards that the program's ranges do not imply as assertions at the start of its graph. `paths` are those of
// the user inputs, as guards name them. Throws JsonProblem for guards that can't be read.
void read_guards(const ConstJson& guards, const std::vector<KeyPath>& paths, const SizeReader& sizes, Program& program);

}  // namespace transporters::dynamo

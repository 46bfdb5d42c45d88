// Example inputs of an archive: (args, kwargs) as torch.save writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transporters/graph/program.h"

namespace transporters::dynamo {

// The record's bytes; empty, which torch.export.load takes for "none", when the program has no example for an input, or
// when an input is an object of a Python class whose contents its tree spec does not tell.
std::string write_sample_inputs(const Program& program);

// Tensors of such a record by leaf path, in the order of the program's user inputs. Empty when the record holds objects
// that need Python to be made.
std::vector<ExampleInput> read_sample_inputs(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                             const Program& program);

}  // namespace transporters::dynamo

// The calling convention of a program as torch's files have it: tree specs, argument names, guards between inputs.
#pragma once

#include <string>
#include <vector>

#include "transporters/graph/program.h"

namespace transporters::dynamo {

// The structure of (args, kwargs) and of the result, made up where the program has none: every user input a keyword
// argument, or by position where Python has no such names; several outputs a tuple.
TreeSpec input_spec(const Program& program);
TreeSpec output_spec(const Program& program);
// Names of the caller's arguments, positional ones first; "arg_0", ... for those whose name Python code can't use.
// Throws Error for such a keyword argument: callers could not pass it.
std::vector<std::string> argument_names(const Program& program, const TreeSpec& spec);

// Dotted paths of the leaves of (args, kwargs): "past.0".
std::vector<std::string> leaf_paths(const TreeSpec& spec, const std::vector<std::string>& argument_names);

// How guards name a leaf of the inputs, torch.utils._pytree.keystr: steps {"past", "0"}, text "L['past'][0]".
struct KeyPath {
  std::vector<std::string> steps;
  std::string text;
};
// The paths of all leaves; `argument_names` as argument_names() gives them.
std::vector<KeyPath> key_paths(const TreeSpec& spec, const std::vector<std::string>& argument_names);

// Python conditions that relate sizes of inputs to each other: "L['mask'].size()[1] == L['past'].size()[2] + 1".
std::vector<std::string> guard_code(const Program& program, const TreeSpec& spec);

}  // namespace transporters::dynamo

// What passes share: replacing nodes, and recognising constants, permutations and reshapes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "transporters/graph/program.h"

namespace transporters {

// Replaces a node with one output by another op, whose output keeps the node's type, name, module path and source.
Node* replace_node(Program& program, Node* node, std::string_view op, std::vector<NamedArgument> arguments);

// The number that every element has: of a number itself, of full/zeros/ones and what views, casts and copies of them
// give, of a one-element constant of the program. nullopt when it is not known; complex numbers never are.
std::optional<double> fill_value(const Program& program, const Argument& argument);

// The permutation of dimensions that a node applies to its first argument: output dimension i is input dimension
// result[i]. nullopt for other ops.
std::optional<std::vector<int64_t>> permutation_of(const Node& node);

// view, reshape, unsqueeze, squeeze, flatten, ...: the same elements in row-major order under other sizes.
bool is_reshape(const Node& node);

// The argument that comes first in the schema, when it is a tensor of the graph; null otherwise.
Value* first_tensor(const Node& node);

}  // namespace transporters

// Checks of parts of a program; verify() of program.h checks the whole.
#pragma once

#include <optional>
#include <string>

#include "transporters/graph/graph.h"

namespace transporters {

// What the node's schema does not take of its arguments and outputs, or nullopt when they fit. Ops that write to their
// inputs are allowed.
std::optional<std::string> schema_misfit(const Node& node);

}  // namespace transporters

// Symbolic numbers that a binding of another language wraps.
#pragma once

#include <c10/core/SymNodeImpl.h>

namespace transporters::symbolic {

// The node that `node` wraps; null when it wraps none.
using NodeUnwrapper = c10::SymNode (*)(c10::SymNodeImpl* node);

// What to_expr() asks about nodes that it doesn't know. One for the process, set before the first trace.
void set_node_unwrapper(NodeUnwrapper unwrapper);

}  // namespace transporters::symbolic

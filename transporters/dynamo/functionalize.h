// Makes a graph functional: torch.export's graphs keep ops that write to their inputs (add_, copy_, index_put_), also
// through views; a Program's graph has none.
#pragma once

#include "transporters/graph/program.h"

namespace transporters::dynamo {

// Replaces each op that writes by its functional form and lets later readers see the new value; a write through a view
// goes into the viewed tensor (select_scatter, slice_scatter, ...), and other views of it are taken again. Buffers and
// user inputs that changed become mutation outputs; so do the statistics of a batch norm in training mode. Throws Error
// for an op without a functional form, for views that can't be undone, and for writes to parameters and constants.
void functionalize(Program& program);

}  // namespace transporters::dynamo

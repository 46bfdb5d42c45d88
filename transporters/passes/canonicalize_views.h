// Gives chains of views one form.
#pragma once

#include "transporters/graph/program.h"

namespace transporters {

// Merges what follows each other: permutations (permute, transpose, t) into one permute, views and reshapes with each
// other and with the squeezes and unsqueezes beside them into one view, expands into one expand. A chain that comes
// back to the type of a value it started from becomes that value. Lone ops and pure squeeze/unsqueeze chains stay as
// they are: targets lower them better than a view with symbolic sizes. What a chain skips is left for
// eliminate_dead_code.
// Tested in tests/passes/test_canonicalize_views.cpp.
bool canonicalize_views(Program& program);

}  // namespace transporters

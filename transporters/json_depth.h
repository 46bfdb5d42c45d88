// How deep JSON may nest that is copied, printed or walked by functions that call themselves.
#pragma once

#include <string_view>

namespace transporters {

// More levels than any file that is read here has; fewer than exhaust the stack.
inline constexpr int kMaxJsonDepth = 1000;

// Whether lists and objects of the text nest deeper than kMaxJsonDepth. The text need not be JSON.
bool json_nests_too_deep(std::string_view text);

}  // namespace transporters

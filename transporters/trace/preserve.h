// Composite ops that stay whole in the graph because every target lowers them better than their parts.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace transporters {

// Full names ("aten::softmax.int"), sorted.
const std::set<std::string, std::less<>>& preserved_ops();

}  // namespace transporters

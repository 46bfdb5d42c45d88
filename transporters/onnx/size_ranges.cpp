#include "transporters/onnx/size_ranges.h"

#include <cstdio>
#include <string_view>

namespace transporters::onnx {

std::string range_text(const symbolic::Range& range) {
  const bool is_bounded = range.max != symbolic::Range::kInfinity;
  return "[" + std::to_string(range.min) + ", " + (is_bounded ? std::to_string(range.max) : "inf") + "]";
}

std::map<std::string, symbolic::Range> size_ranges(const Model& model) {
  std::map<std::string, symbolic::Range> ranges;
  for (const auto& [key, text] : model.metadata) {
    if (!key.starts_with(kRangePrefix)) continue;
    symbolic::Range range;
    char end = 0;
    if (std::sscanf(text.c_str(), "[%ld, inf%c", &range.min, &end) == 2 && end == ']') {
      range.max = symbolic::Range::kInfinity;
    } else if (std::sscanf(text.c_str(), "[%ld, %ld%c", &range.min, &range.max, &end) != 3 || end != ']') {
      continue;
    }
    ranges[key.substr(std::string_view(kRangePrefix).size())] = range;
  }
  return ranges;
}

}  // namespace transporters::onnx

#include "transporters/verify/align.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

namespace transporters {
namespace {

using Places = std::vector<size_t>;
using Pairs = std::vector<std::pair<size_t, size_t>>;

// Beyond this many pairs of one module's values, only its common start and end are matched.
constexpr size_t kLargestTable = 25'000'000;

// Longest common subsequence of two modules' values, by kind.
class ModuleAlignment {
 public:
  ModuleAlignment(std::span<const AlignedValue> first, std::span<const AlignedValue> second, Pairs& pairs)
      : first_(first), second_(second), pairs_(pairs) {}

  void run(std::span<const size_t> a, std::span<const size_t> b) {
    while (!a.empty() && !b.empty() && same(a.front(), b.front())) {
      pairs_.emplace_back(a.front(), b.front());
      a = a.subspan(1);
      b = b.subspan(1);
    }
    while (!a.empty() && !b.empty() && same(a.back(), b.back())) {
      pairs_.emplace_back(a.back(), b.back());
      a = a.first(a.size() - 1);
      b = b.first(b.size() - 1);
    }
    if (!a.empty() && !b.empty() && a.size() <= kLargestTable / b.size()) run_table(a, b);
  }

 private:
  bool same(size_t a, size_t b) const { return first_[a].kind == second_[b].kind; }

  // lengths[i][j]: of the longest common subsequence of a[i:] and b[j:].
  void run_table(std::span<const size_t> a, std::span<const size_t> b) {
    const size_t width = b.size() + 1;
    std::vector<uint32_t> lengths((a.size() + 1) * width, 0);
    for (size_t i = a.size(); i-- > 0;)
      for (size_t j = b.size(); j-- > 0;)
        lengths[i * width + j] = same(a[i], b[j]) ? lengths[(i + 1) * width + j + 1] + 1
                                                  : std::max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
      if (same(a[i], b[j]))
        pairs_.emplace_back(a[i++], b[j++]);
      else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])
        ++i;
      else
        ++j;
    }
  }

  std::span<const AlignedValue> first_;
  std::span<const AlignedValue> second_;
  Pairs& pairs_;
};

std::map<std::string, Places> by_module(std::span<const AlignedValue> values) {
  std::map<std::string, Places> modules;
  for (size_t i = 0; i < values.size(); ++i) modules[values[i].module].push_back(i);
  return modules;
}

}  // namespace

Alignment align(std::span<const AlignedValue> first, std::span<const AlignedValue> second) {
  Alignment alignment;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> known;
  for (size_t i = 0; i < second.size(); ++i)
    known.emplace(std::tuple(second[i].module, second[i].kind, second[i].name), i);
  for (size_t i = 0; i < first.size(); ++i) {
    const auto namesake = known.find(std::tuple(first[i].module, first[i].kind, first[i].name));
    if (namesake != known.end()) alignment.pairs.emplace_back(i, namesake->second);
  }
  alignment.by_name = alignment.pairs.size() == first.size();
  if (alignment.by_name) return alignment;

  alignment.pairs.clear();
  const auto others = by_module(second);
  for (const auto& [module, places] : by_module(first))
    if (const auto found = others.find(module); found != others.end())
      ModuleAlignment(first, second, alignment.pairs).run(places, found->second);
  std::sort(alignment.pairs.begin(), alignment.pairs.end());
  return alignment;
}

}  // namespace transporters

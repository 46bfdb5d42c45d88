#include <doctest/doctest.h>

#include "transporters/verify/align.h"

using namespace transporters;

namespace {

using Pairs = std::vector<std::pair<size_t, size_t>>;

}  // namespace

TEST_CASE("namesakes are one value, wherever they stand") {
  const std::vector<AlignedValue> first{{"a", "add", "add"}, {"a", "add", "add_2"}, {"b", "mul", "mul"}};
  const std::vector<AlignedValue> second{
      {"b", "mul", "mul"}, {"a", "add", "add"}, {"a", "add", "add_1"}, {"a", "add", "add_2"}};
  const Alignment alignment = align(first, second);
  CHECK(alignment.by_name);
  CHECK((alignment.pairs == Pairs{{0, 1}, {1, 3}, {2, 0}}));
}

TEST_CASE("without namesakes, values of a module match in order by kind") {
  const std::vector<AlignedValue> first{
      {"a", "linear", "x0"}, {"a", "mm", "x1"}, {"a", "softmax", "x2"}, {"a", "mm", "x3"}, {"a", "view", "x4"}};
  const std::vector<AlignedValue> second{
      {"b", "linear", "y0"}, {"a", "linear", "y1"}, {"a", "sdpa", "y2"}, {"a", "view", "y3"}, {"a", "relu", "y4"}};
  const Alignment alignment = align(first, second);
  CHECK_FALSE(alignment.by_name);
  CHECK((alignment.pairs == Pairs{{0, 1}, {4, 3}}));
}

TEST_CASE("the longest common subsequence is found, not the first one") {
  std::vector<AlignedValue> first, second;
  for (const char* kind : {"p", "a", "b", "c", "q"}) first.push_back({"", kind, std::string("x") + kind});
  for (const char* kind : {"r", "c", "a", "b", "c", "s"}) second.push_back({"", kind, std::string("y") + kind});
  CHECK((align(first, second).pairs == Pairs{{1, 2}, {2, 3}, {3, 4}}));
}

TEST_CASE("nothing aligns with nothing") {
  CHECK(align({}, {}).pairs.empty());
  const std::vector<AlignedValue> one{{"", "a", "x"}};
  CHECK(align(one, {}).pairs.empty());
  CHECK_FALSE(align(one, {}).by_name);
}

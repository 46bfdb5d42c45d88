#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/shape_rules/check.h"

using namespace transporters;
using namespace transporters::testing;

TEST_CASE("view and reshape") {
  check_calls({
      "aten::view(f32[a=2, b=3, 4], [a, -1])",
      "aten::view(f32[a=2, b=3, 4], [-1, 4])",
      "aten::view(f32[a=2, b=3, 4], [a*b, 4])",
      "aten::view(f32[a=2, b=3, 32], [a, b, 4, -1])",
      "aten::view(f32[a=2, b=3, 32], [a, -1, 8])",
      "aten::view(f32[a=2, b=3, 32], [a, b, -1, 8])",
      "aten::view(f32[a=2, b=3, 4], [a, 1, b, 4])",
      "aten::view(f32[2*a, 3], [2, a, -1])",
      "aten::view(f32[], [1, 1])",
      "aten::view(f32[1], [])",
      "aten::view(f32[0, 3], [0, 5])",
      "aten::view(f32[a=2, 3]{1, 2*a}, [a, 3])",
      "aten::view(f32[a=2, b=3, 4]{4, 4*a, 1}, [a, b, 2, 2])",
      "aten::view(f32[a=2, b=3, 4]{12, 4, 1}, [a, b*4])",
      "aten::view(f32[2, 3, 4]{24, 8, 2}, [6, 4])",
      "aten::view(f32[2, 3, 1]{3, 1, 7}, [6])",
      "aten::view_copy(f32[a=2, 6], [a, 2, 3])",
      "aten::_unsafe_view(f32[a=2, b=3, 4], [a*b, 4])",
      "aten::view_as(f32[a=2, 6], f32[a, 2, 3])",
      "aten::reshape(f32[a=2, b=3, 4]{4, 4*a, 1}, [a*b, 4])",
      "aten::reshape(f32[a=2, b=3, 4], [a, b, 4])",
      "aten::reshape(f32[a=2, b=3, 4], [-1])",
      "aten::reshape(f32[2, 3, 4]{12, 1, 3}, [2, 12])",
      "aten::reshape_as(f32[a=2, 6], f32[2, a, 3])",
      "aten::ravel(f32[a=2, b=3])",
      "aten::flatten.using_ints(f32[a=2, b=3, 4])",
      "aten::flatten.using_ints(f32[a=2, b=3, 4], 1)",
      "aten::flatten.using_ints(f32[a=2, b=3, 4], 0, -2)",
      "aten::flatten.using_ints(f32[a=2, b=3, 4], 1, 1)",
      "aten::flatten.using_ints(f32[])",
      "aten::unflatten.int(f32[a=2, 6], 1, [2, -1])",
      "aten::unflatten.int(f32[2*a, 3], 0, [2, a])",
      "aten::unflatten.int(f32[a=2, 6], -1, [3, 2])",
      "aten::view.dtype(f32[a=2, 3], i32)",
      "aten::view.dtype(f32[a=2, 3], i8)",
      "aten::view.dtype(i8[a=2, 8], f32)",
      "aten::alias(f32[a=2, 3]{1, a})",
      "aten::detach(f32[a=2, 3])",
      "aten::detach_copy(f32[a=2, 3])",
      "aten::_reshape_alias(f32[a=2, 6], [a, 2, 3], [6, 3, 1])",
  });
}

TEST_CASE("a view that the layout or the number of elements forbids is an error") {
  check_error("aten::view(f32[2, 3]{1, 2}, [6])", "use reshape");
  check_error("aten::view(f32[a=2, 3], [a, 4])", "as many elements as f32[a, 3]");
  check_error("aten::view(f32[a=2, 3], [-1, -1])", "one -1 at most");
  check_error("aten::view(f32[2, 3], [4, -1])", "as many elements as f32[2, 3]");
  check_error("aten::reshape(f32[0, 3], [0, -1])", "as many elements");
  check_error("aten::expand(f32[2, 3], [2, 4])", "expands to");
  check_error("aten::permute(f32[2, 3], [0, 0])", "each dim once");
  check_error("aten::transpose.int(f32[2, 3], 0, 2)", "expected a dim in [-2, 1], got 2");
  check_error("aten::view_as_complex(f32[2, 3])", "a last dim of 2, got f32[2, 3]");
  check_error("aten::t(f32[2, 3, 4])", "expected self of rank 0, 1 or 2, got f32[2, 3, 4]");
}

TEST_CASE("order of dims") {
  check_calls({
      "aten::permute(f32[a=2, b=3, 4], [2, 0, 1])",
      "aten::permute(f32[a=2, b=3, 4], [-1, 0, -2])",
      "aten::permute(f32[], [])",
      "aten::permute_copy(f32[a=2, b=3], [1, 0])",
      "aten::transpose.int(f32[a=2, b=3, 4, 5], 1, 2)",
      "aten::transpose.int(f32[a=2, b=3], -1, -2)",
      "aten::transpose.int(f32[], 0, -1)",
      "aten::transpose_copy.int(f32[a=2, b=3], 0, 1)",
      "aten::swapaxes(f32[a=2, b=3], 0, 1)",
      "aten::t(f32[a=2, b=3])",
      "aten::t(f32[a=2])",
      "aten::t_copy(f32[a=2, b=3])",
      "aten::numpy_T(f32[a=2, b=3, 4])",
      "aten::mT(f32[a=2, b=3, 4])",
      "aten::adjoint(f32[a=2, b=3, 4])",
      "aten::movedim.int(f32[a=2, b=3, 4], 0, 2)",
      "aten::movedim.intlist(f32[a=2, b=3, 4, 5], [0, 1], [-1, -2])",
      "aten::moveaxis.int(f32[a=2, b=3, 4], 2, 0)",
  });
}

TEST_CASE("dims of 1") {
  check_calls({
      "aten::expand(f32[1, b=3], [a=2, -1])",
      "aten::expand(f32[1, b=3], [a=2, b])",
      "aten::expand(f32[b=3], [2, 4, b])",
      "aten::expand(f32[b=3], [1, -1])",
      "aten::expand(f32[1], [1])",
      "aten::expand(f32[], [a=2, 3])",
      "aten::expand(f32[1, b=3, 1]{3, 1, 1}, [a=2, b, 5])",
      "aten::expand_copy(f32[1, b=3], [2, b])",
      "aten::expand_as(f32[1, b=3], f32[a=2, b])",
      "aten::broadcast_to(f32[b=3], [2, b])",
      "aten::unsqueeze(f32[a=2, b=3], 0)",
      "aten::unsqueeze(f32[a=2, b=3], 1)",
      "aten::unsqueeze(f32[a=2, b=3], -1)",
      "aten::unsqueeze(f32[], 0)",
      "aten::unsqueeze(f32[a=2, b=3]{1, a}, 1)",
      "aten::unsqueeze_copy(f32[a=2, b=3], 1)",
  });
  // At size 1 ATen would drop the named dims.
  check_calls(
      {"aten::squeeze(f32[1, b=3, 1])", "aten::squeeze.dim(f32[1, b=3], 0)", "aten::squeeze.dim(f32[1, b=3], 1)",
       "aten::squeeze.dims(f32[1, b=3, 1, 4], [0, 1])", "aten::squeeze_copy.dim(f32[b=3, 1], -1)",
       "aten::squeeze.dim(f32[], 0)", "aten::squeeze(f32[a=2, 1, b=3]{1, 5, a})"},
      {.least = 2});
  check_calls({"aten::atleast_1d(f32[])", "aten::atleast_2d(f32[a=2])", "aten::atleast_2d(f32[])",
               "aten::atleast_3d(f32[a=2])", "aten::atleast_3d(f32[a=2, b=3])", "aten::atleast_3d(f32[])"});
}

TEST_CASE("a dynamic dim is never taken for 1") {
  ShapeEnv env;
  CHECK(to_text(run_rule("aten::squeeze(f32[1, b=3, 1])", env)) == "f32[b]");
  CHECK(to_text(run_rule("aten::squeeze.dim(f32[b=3, 4], 0)", env)) == "f32[b, 4]");
  CHECK(to_text(run_rule("aten::add.Tensor(f32[b=3, 4], f32[1, 4])", env)) == "f32[b, 4]");
  CHECK(env.specializations().empty());
  CHECK(env.runtime_asserts().empty());
}

TEST_CASE("strided and overlapping views") {
  check_calls({
      "aten::as_strided(f32[6], [2, 3], [3, 1])",
      "aten::as_strided_copy(f32[6], [2, 2], [1, 2])",
      "aten::unfold(f32[a=2, b=7], 1, 3, 2)",
      "aten::unfold(f32[8], 0, 2, 1)",
      "aten::unfold(f32[b=7, 3], 0, 2, 2)",
      "aten::unfold_copy(f32[a=2, 8], 1, 3, 1)",
      "aten::diagonal(f32[a=4, b=5])",
      "aten::diagonal(f32[a=4, b=5], 1)",
      "aten::diagonal(f32[a=4, b=5], -2)",
      "aten::diagonal(f32[2, a=4, b=5], 0, 1, 2)",
      "aten::diagonal(f32[a=4, 2, b=5], 3, 2, 0)",
      "aten::diagonal_copy(f32[a=4, b=5], 1)",
      "aten::linalg_diagonal(f32[2, a=4, b=5])",
      "aten::view_as_real(c64[a=2, b=3])",
      "aten::view_as_complex(f32[a=2, b=3, 2])",
      "aten::view_as_complex_copy(f32[a=2, 2])",
      "aten::view_as_real_copy(c64[a=2])",
      "aten::real(c64[a=2, 3])",
      "aten::imag(c64[a=2, 3])",
      "aten::real(f32[a=2, 3])",
  });
}

TEST_CASE("slices follow Python's bounds") {
  check_calls({
      "aten::slice.Tensor(f32[a=5, b=3], 0, 1)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, 1, 3)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, None, -1)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, -2)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, -2, -1)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, 0, 9223372036854775807)",
      "aten::slice.Tensor(f32[a=5, b=3], 1, 2, 9223372036854775807)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, -100, 100)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, 3, 1)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, 100)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, None, None, 2)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, 1, -1, 2)",
      "aten::slice.Tensor(f32[a=5, b=3], -1, -2, None, 3)",
      "aten::slice.Tensor(f32[7, 3], 0, 1, 6, 4)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, 0, b)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, b)",
      "aten::slice.Tensor(f32[a=5, b=3], 0, -b)",
      "aten::slice.Tensor(f32[0, 3], 0, 1)",
      "aten::slice_copy.Tensor(f32[a=5], 0, 1, 4)",
      "aten::narrow(f32[a=5, 8], 1, 2, 3)",
      "aten::narrow(f32[8, 3], 0, 1, b)",
      "aten::narrow_copy(f32[a=5, 8], 1, 2, 3)",
      "aten::select.int(f32[a=5, b=3], 0, 0)",
      "aten::select.int(f32[a=5, b=3, 4], 1, -1)",
      "aten::select.int(f32[a=5, b=3], -1, 0)",
      "aten::select_copy.int(f32[a=5, b=3], 0, 0)",
  });
  check_error("aten::select.int(f32[2, 3], 0, 2)", "expected an index within dim 0 of f32[2, 3], got 2");
  check_error("aten::select.int(f32[], 0, 0)", "rank 1 or more");
  check_error("aten::slice.Tensor(f32[3], 0, 0, 2, 0)", "expected a step above 0");
  check_error("aten::narrow(f32[3], 0, 1, 4)", "expected a length within dim 0 of f32[3], got 4");
}

TEST_CASE("slices of dynamic dims have short lengths") {
  ShapeEnv env;
  symbolic::SymbolInfo info;
  info.name = "s";
  info.hint = 6;
  info.range = {1, symbolic::Range::kInfinity};
  env.add_symbol(info);
  CHECK(to_text(run_rule("aten::slice.Tensor(f32[s=6], 0, 1)", env)) == "f32[s - 1]");
  CHECK(to_text(run_rule("aten::slice.Tensor(f32[s=6], 0, 0, 9223372036854775807)", env)) == "f32[s]");
  CHECK(to_text(run_rule("aten::slice.Tensor(f32[s=6], 0, None, -1)", env)) == "f32[s - 1]");
  CHECK(to_text(run_rule("aten::slice.Tensor(f32[s=6], 0, -1)", env)) == "f32[1]");
  CHECK(to_text(run_rule("aten::slice.Tensor(f32[s=6, 4], 1, 0, 2)", env)) == "f32[s, 2]{4, 1}");
  CHECK(env.runtime_asserts().empty());
}

TEST_CASE("splits have one output a part") {
  check_calls({
      "aten::split.Tensor(f32[a=2, 7], 3, 1)",
      "aten::split.Tensor(f32[a=2, 6], 3, 1)",
      "aten::split.Tensor(f32[a=2, b=3], a, 0)",
      "aten::split.Tensor(f32[2*a, b=3], a, 0)",
      "aten::split.Tensor(f32[0, 3], 2)",
      "aten::split.sizes(f32[a=2, 7], [3, 4], 1)",
      "aten::split_with_sizes(f32[a=2, 7], [0, 3, 4], 1)",
      "aten::split_with_sizes(f32[5, a=2], [2, 3], 0)",
      "aten::split_copy.Tensor(f32[a=2, 7], 3, 1)",
      "aten::split_with_sizes_copy(f32[a=2, 7], [3, 4], 1)",
      "aten::unsafe_split.Tensor(f32[a=2, 7], 3, 1)",
      "aten::chunk(f32[a=2, 7], 3, 1)",
      "aten::chunk(f32[a=2, 6], 4, 1)",
      "aten::chunk(f32[2*a, b=3], 2)",
      "aten::unsafe_chunk(f32[a=2, 6], 2, -1)",
      "aten::tensor_split.sections(f32[a=2, 7], 3, 1)",
      "aten::tensor_split.sections(f32[a=5, 7], 2)",
      "aten::tensor_split.indices(f32[a=2, 7], [2, 5], 1)",
      "aten::tensor_split.indices(f32[a=2, 7], [-2, 10], 1)",
      "aten::tensor_split.indices(f32[a=5], [2])",
      "aten::hsplit.int(f32[a=2, 6], 3)",
      "aten::vsplit.int(f32[4, a=2], 2)",
      "aten::dsplit.array(f32[a=2, 3, 5], [1, 2])",
      "aten::unbind.int(f32[3, a=2])",
      "aten::unbind.int(f32[a=2, 3, 4], 1)",
      "aten::unbind_copy.int(f32[a=2, 3], -1)",
  });
  check_calls(
      {"aten::chunk(f32[a=5, b=3], 2)", "aten::split.Tensor(f32[a=5, b=3], 2)", "aten::unbind.int(f32[a=2, 3])"},
      {.may_specialize = true});
  check_error("aten::split_with_sizes(f32[7], [3, 3])", "sum to dim 0 of f32[7], got [3, 3]");
  check_error("aten::split.Tensor(f32[7], 0)", "expected a split size above 0");
}

TEST_CASE("views over sizes that the data decides") {
  ShapeEnv env;
  for (const char* source : {"height", "width"}) env.add_unbacked({0, symbolic::Range::kInfinity}, source);
  // Channels last, as an interpolated grid is: height and width are one run.
  const std::string grid = "f32[1, u0, u1, 32]{32*u0*u1, u1, 1, u0*u1}";
  CHECK(to_text(run_rule("aten::view(" + grid + ", [1, u0*u1, 32])", env)) == "f32[1, u0*u1, 32]{u0*u1, 1, u0*u1}");
}

TEST_CASE("random views of strided tensors") {
  std::mt19937 random(3);
  const auto draw = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  constexpr std::array names = {"a", "b", "c", "d"};
  for (int i = 0; i < 150; ++i) {
    // A permutation of a contiguous tensor, some of whose dims are 1 and some symbolic.
    const auto rank = static_cast<size_t>(1 + draw(4));
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    if (draw(3) != 0) std::shuffle(order.begin(), order.end(), random);
    std::vector<std::string> sizes(rank), uses(rank), strides(rank);
    for (size_t d = 0; d < rank; ++d) {
      const int size = draw(4) == 0 ? 1 : 2 + draw(3);
      const bool is_symbolic = size > 1 && draw(2) == 0;
      uses[d] = is_symbolic ? names[d] : std::to_string(size);
      sizes[d] = is_symbolic ? uses[d] + "=" + std::to_string(size) : uses[d];
    }
    std::string stride = "1";
    for (size_t d = rank; d-- > 0;) {
      strides[order[d]] = stride;
      stride += "*" + uses[order[d]];
    }
    const auto join = [](const std::vector<std::string>& list) {
      std::string text;
      for (size_t d = 0; d < list.size(); ++d) text += (d ? ", " : "") + list[d];
      return text;
    };
    const std::string self = "f32[" + join(sizes) + "]{" + join(strides) + "}";
    // Two neighbours merged, or -1 in some place; reshape takes any layout.
    std::vector<std::string> target = uses;
    if (rank > 1 && draw(2) == 0) {
      const auto at = static_cast<std::ptrdiff_t>(draw(static_cast<int>(rank) - 1));
      const auto place = target.begin() + at;
      *place = *place + "*" + *(place + 1);
      target.erase(place + 1);
    }
    if (draw(2) == 0) target[static_cast<size_t>(draw(static_cast<int>(target.size())))] = "-1";
    if (draw(3) == 0) target.insert(target.begin() + draw(static_cast<int>(target.size())), "1");
    // At a size of 1 some layouts can be viewed that are copied at all others, where the rule describes the copy.
    check_call("aten::reshape(" + self + ", [" + join(target) + "])", {.least = 2});
    check_call("aten::unsqueeze(" + self + ", " + std::to_string(draw(static_cast<int>(rank) + 1)) + ")");
    check_call("aten::transpose.int(" + self + ", 0, " + std::to_string(draw(static_cast<int>(rank))) + ")");
  }
}

TEST_CASE("random slices") {
  std::mt19937 random(4);
  const auto draw = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  for (int i = 0; i < 150; ++i) {
    const auto bound = [&] { return draw(4) == 0 ? std::string("None") : std::to_string(draw(18) - 9); };
    const std::string dim = std::to_string(draw(2));
    const std::string start = bound(), end = bound(), step = std::to_string(1 + draw(3));
    check_call("aten::slice.Tensor(f32[a=5, 6], " + dim + ", " + start + ", " + end + ", " + step + ")");
  }
}

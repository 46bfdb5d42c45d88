// Interpolation to given sizes or by scale factors.
#include <cmath>

#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// floor(size * scale), in integers where the scale is a short binary fraction, so that sizes stay comparable.
Expr scaled(const Expr& size, double scale) {
  constexpr int64_t kLargestDenominator = 1024;
  for (int64_t denominator = 1; denominator <= kLargestDenominator; denominator *= 2) {
    const double numerator = scale * static_cast<double>(denominator);
    if (numerator == std::floor(numerator) && numerator < 1e9) {
      return floor_div(size * static_cast<int64_t>(numerator), denominator);
    }
  }
  return floor(to_real(size) * Expr::real(scale));
}

template <size_t count>
Types upsample(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, 0);
  check_rank(node, node.schema().arguments[0].name, x, {count + 2});
  Sizes sizes = {x.sizes[0], x.sizes[1]};
  const bool by_size = has(node, "output_size");
  check(by_size != has(node, "scale_factors"), node, "expected either output_size or scale_factors");
  if (by_size) {
    const Sizes wanted = node.sizes("output_size");
    check(wanted.size() == count, node,
          "expected " + std::to_string(count) + " numbers for output_size, got " + describe(wanted));
    sizes.insert(sizes.end(), wanted.begin(), wanted.end());
  } else {
    const auto factors = reals(node, "scale_factors");
    check(factors.size() == count, node, "expected " + std::to_string(count) + " scale factors");
    for (size_t i = 0; i < count; ++i) sizes.push_back(scaled(x.sizes[i + 2], factors[i]));
  }
  return one(x.dtype, sizes);
}

// The overloads with output_size only.
template <size_t count>
Types upsample_to(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, 0);
  check_rank(node, "self", self, {count + 2});
  Sizes sizes = {self.sizes[0], self.sizes[1]};
  const Sizes wanted = spatial(node, "output_size", count);
  sizes.insert(sizes.end(), wanted.begin(), wanted.end());
  return one(self.dtype, sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::upsample_nearest1d", upsample_to<1>},        {"aten::upsample_nearest1d.vec", upsample<1>},
    {"aten::upsample_nearest2d", upsample_to<2>},        {"aten::upsample_nearest2d.vec", upsample<2>},
    {"aten::upsample_nearest3d", upsample_to<3>},        {"aten::upsample_nearest3d.vec", upsample<3>},
    {"aten::_upsample_nearest_exact1d", upsample_to<1>}, {"aten::_upsample_nearest_exact1d.vec", upsample<1>},
    {"aten::_upsample_nearest_exact2d", upsample_to<2>}, {"aten::_upsample_nearest_exact2d.vec", upsample<2>},
    {"aten::_upsample_nearest_exact3d", upsample_to<3>}, {"aten::_upsample_nearest_exact3d.vec", upsample<3>},
    {"aten::upsample_linear1d", upsample_to<1>},         {"aten::upsample_linear1d.vec", upsample<1>},
    {"aten::upsample_bilinear2d", upsample_to<2>},       {"aten::upsample_bilinear2d.vec", upsample<2>},
    {"aten::_upsample_bilinear2d_aa", upsample_to<2>},   {"aten::_upsample_bilinear2d_aa.vec", upsample<2>},
    {"aten::upsample_bicubic2d", upsample_to<2>},        {"aten::upsample_bicubic2d.vec", upsample<2>},
    {"aten::_upsample_bicubic2d_aa", upsample_to<2>},    {"aten::_upsample_bicubic2d_aa.vec", upsample<2>},
    {"aten::_upsample_lanczos2d_aa", upsample_to<2>},    {"aten::_upsample_lanczos2d_aa.vec", upsample<2>},
    {"aten::upsample_trilinear3d", upsample_to<3>},      {"aten::upsample_trilinear3d.vec", upsample<3>},
};

}  // namespace

std::span<const ShapeRuleRow> upsample_rules() { return kRows; }

}  // namespace transporters::shape_rules

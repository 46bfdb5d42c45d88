// Rearrangements and samplings of images.
#include "transporters/trace/shape_rules/rule_support.h"

namespace transporters::shape_rules {
namespace {

// [..., channels * factor^2, height, width] -> [..., channels, height * factor, width * factor]
Types pixel_shuffle(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 3);
  const int64_t factor = node.integer("upscale_factor");
  Sizes sizes = self.sizes;
  const size_t rank = sizes.size();
  sizes[rank - 3] =
      exact_quotient(node, {sizes[rank - 3]}, {factor * factor}, env,
                     "expected channels that " + std::to_string(factor * factor) + " divides, got " + describe(self));
  sizes[rank - 2] = sizes[rank - 2] * factor;
  sizes[rank - 1] = sizes[rank - 1] * factor;
  return one(self.dtype, sizes);
}

Types pixel_unshuffle(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank_at_least(node, "self", self, 3);
  const int64_t factor = node.integer("downscale_factor");
  const std::string message =
      "expected height and width that " + std::to_string(factor) + " divides, got " + describe(self);
  Sizes sizes = self.sizes;
  const size_t rank = sizes.size();
  sizes[rank - 3] = sizes[rank - 3] * (factor * factor);
  sizes[rank - 2] = exact_quotient(node, {sizes[rank - 2]}, {factor}, env, message);
  sizes[rank - 1] = exact_quotient(node, {sizes[rank - 1]}, {factor}, env, message);
  return one(self.dtype, sizes);
}

Expr block_count(const Node& node, const Sizes& size, ShapeEnv& env) {
  const Sizes kernel = spatial(node, "kernel_size", 2), dilation = spatial(node, "dilation", 2);
  const Sizes padding = spatial(node, "padding", 2), stride = spatial(node, "stride", 2);
  Expr blocks = 1;
  for (size_t i = 0; i < 2; ++i) {
    blocks = blocks * (floor_div(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1, stride[i]) + 1);
  }
  return blocks;
}

// im2col (nn.Unfold): [batch, channels, height, width] -> [batch, channels * kernel, blocks]
Types im2col(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {3, 4});
  const size_t rank = self.rank();
  const Sizes kernel = spatial(node, "kernel_size", 2);
  Sizes sizes(self.sizes.begin(), self.sizes.end() - 3);
  sizes.push_back(self.sizes[rank - 3] * numel(kernel));
  sizes.push_back(block_count(node, {self.sizes[rank - 2], self.sizes[rank - 1]}, env));
  return one(self.dtype, sizes);
}

// col2im (nn.Fold): the reverse, to output_size
Types col2im(const Node& node, ShapeEnv& env) {
  const auto& self = input(node, "self");
  check_rank(node, "self", self, {2, 3});
  const size_t rank = self.rank();
  const Sizes wanted = spatial(node, "output_size", 2);
  const Sizes kernel = spatial(node, "kernel_size", 2);
  common_size(node, self.sizes[rank - 1], block_count(node, wanted, env), env,
              "expected as many blocks as output_size " + describe(wanted) + " has, got " + describe(self));
  Sizes sizes(self.sizes.begin(), self.sizes.end() - 2);
  sizes.push_back(exact_quotient(node, {self.sizes[rank - 2]}, kernel, env,
                                 "expected channels that the kernel's elements divide, got " + describe(self)));
  sizes.insert(sizes.end(), wanted.begin(), wanted.end());
  return one(self.dtype, sizes);
}

// grid_sampler: input [batch, channels, ...], grid [batch, ..., 2 or 3]
Types grid_sampler(const Node& node, ShapeEnv& env) {
  const auto& x = input(node, "input");
  const auto& grid = input(node, "grid");
  check_rank(node, "input", x, {4, 5});
  const std::string message = "expected a grid of one batch size and rank with the input and a last dim of " +
                              std::to_string(x.rank() - 2) + ", got " + describe(x) + " and " + describe(grid);
  check(grid.rank() == x.rank() && sizes_match(grid.sizes.back(), static_cast<int64_t>(x.rank() - 2), env), node,
        message);
  Sizes sizes = {common_size(node, x.sizes[0], grid.sizes[0], env, message), x.sizes[1]};
  sizes.insert(sizes.end(), grid.sizes.begin() + 1, grid.sizes.end() - 1);
  return one(x.dtype, sizes);
}

// affine_grid_generator: theta [batch, 2, 3] for size [batch, channels, height, width], one rank higher in 3-D
Types affine_grid(const Node& node, ShapeEnv& env) {
  const auto& theta = input(node, "theta");
  check_rank(node, "theta", theta, {3});
  const Sizes size = node.sizes("size");
  check(size.size() == 4 || size.size() == 5, node, "expected 4 or 5 sizes, got " + describe(size));
  Sizes sizes = {size[0]};
  sizes.insert(sizes.end(), size.begin() + 2, size.end());
  sizes.push_back(static_cast<int64_t>(size.size() - 2));
  return one(theta.dtype, sizes);
}

constexpr ShapeRuleRow kRows[] = {
    {"aten::pixel_shuffle", pixel_shuffle},
    {"aten::pixel_unshuffle", pixel_unshuffle},
    {"aten::channel_shuffle", same_as_input},
    {"aten::native_channel_shuffle", same_as_input},
    {"aten::im2col", im2col},
    {"aten::col2im", col2im},
    {"aten::grid_sampler", grid_sampler},
    {"aten::grid_sampler_2d", grid_sampler},
    {"aten::grid_sampler_3d", grid_sampler},
    {"aten::_grid_sampler_2d_cpu_fallback", grid_sampler},
    {"aten::affine_grid_generator", affine_grid},
};

}  // namespace

std::span<const ShapeRuleRow> vision_rules() { return kRows; }

}  // namespace transporters::shape_rules

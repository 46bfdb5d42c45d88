// Interpolation and sampling at given points.
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

struct Method {
  std::string mode;    // nearest, linear, cubic
  bool exact = false;  // nearest-exact
  bool antialias = false;
};

// torch computes where an output pixel lies either from the factors the caller gave, or from the sizes.
Value* resize(Lowering& l, const AtenNode& n, const Method& method) {
  const AtenValue* self = n.tensor(n.schema().arguments.front().name);
  const int64_t dims = rank(self), spatial = dims - 2;
  const ScalarType dtype = out_dtype(n);
  const bool aligns_corners = n.schema().find("align_corners") && n.boolean("align_corners");

  Attributes attributes = {{"mode", method.mode}};
  std::string transform = aligns_corners ? "align_corners" : "half_pixel";
  if (method.mode == "nearest") {
    // nearest takes the pixel below, nearest-exact the one whose centre is nearest.
    transform = method.exact ? "half_pixel" : "asymmetric";
    attributes.push_back({"nearest_mode", std::string(method.exact ? "round_prefer_ceil" : "floor")});
  }
  attributes.push_back({"coordinate_transformation_mode", transform});
  if (method.mode == "cubic") attributes.push_back({"cubic_coeff_a", method.antialias ? -0.5f : -0.75f});
  if (method.antialias) {
    // Weights outside the image are left out and the rest scaled up, as torch does.
    attributes.push_back({"antialias", int64_t{1}});
    attributes.push_back({"exclude_outside", int64_t{1}});
  }

  // Factors: a list (scale_factors), or one argument for each dimension (scales_h, scales_w; scales in 1-D).
  std::vector<double> scales;
  if (n.schema().find("scale_factors")) {
    if (!n.is_none("scale_factors")) scales = std::get<std::vector<double>>(n.get("scale_factors"));
  } else {
    for (const char* name : {"scales", "scales_d", "scales_h", "scales_w"}) {
      if (!n.schema().find(name)) continue;
      if (const auto scale = n.real_or_none(name)) scales.push_back(*scale);
    }
  }
  Value* x = l.input(n, n.schema().arguments.front().name, dtype);
  if (static_cast<int64_t>(scales.size()) == spatial && !aligns_corners) {
    std::vector<double> all = {1, 1};
    all.insert(all.end(), scales.begin(), scales.end());
    return l.emit("Resize", {x, nullptr, l.vector(all, ScalarType::Float)}, attributes);
  }
  return l.emit("Resize", {x, nullptr, nullptr, l.shape(out_sizes(n))}, attributes);
}

Outputs nearest(Lowering& l, const AtenNode& n) { return {resize(l, n, {"nearest"})}; }
Outputs nearest_exact(Lowering& l, const AtenNode& n) { return {resize(l, n, {"nearest", true})}; }
Outputs linear(Lowering& l, const AtenNode& n) { return {resize(l, n, {"linear"})}; }
Outputs linear_antialias(Lowering& l, const AtenNode& n) { return {resize(l, n, {"linear", false, true})}; }
Outputs cubic(Lowering& l, const AtenNode& n) { return {resize(l, n, {"cubic"})}; }
Outputs cubic_antialias(Lowering& l, const AtenNode& n) { return {resize(l, n, {"cubic", false, true})}; }

// Opset 20 renamed the modes and allows volumes.
Outputs grid_sampler(Lowering& l, const AtenNode& n) {
  static constexpr std::string_view kModes[] = {"linear", "nearest", "cubic"};
  static constexpr std::string_view kOldModes[] = {"bilinear", "nearest", "bicubic"};
  static constexpr std::string_view kPaddings[] = {"zeros", "border", "reflection"};
  const auto mode = static_cast<size_t>(n.integer("interpolation_mode"));
  const auto padding = static_cast<size_t>(n.integer("padding_mode"));
  if (l.opset() < 20 && rank(n.tensor("input")) == 5)
    throw l.error(n, "samples volumes, which needs opset 20 or later");
  return {l.emit("GridSample", {l.input(n, "input"), l.input(n, "grid")},
                 {{"mode", std::string(l.opset() >= 20 ? kModes[mode] : kOldModes[mode])},
                  {"padding_mode", std::string(kPaddings[padding])},
                  {"align_corners", int64_t{n.boolean("align_corners")}}})};
}

// Coordinates from -1 to 1 along each axis, of pixel centres or corners, times theta^T: [N, (D,) H, W, axes].
Outputs affine_grid(Lowering& l, const AtenNode& n) {
  const ScalarType dtype = out_dtype(n);
  const auto sizes = n.sizes("size");  // N, C, spatial sizes
  const auto axes = static_cast<int64_t>(sizes.size()) - 2;
  const bool aligns_corners = n.boolean("align_corners");
  std::vector<Expr> grid(sizes.begin() + 2, sizes.end());
  std::vector<Value*> coordinates;
  for (int64_t i = axes; i-- > 0;) {  // x first
    const Expr size = grid[static_cast<size_t>(i)];
    Value* places = l.cast(range(l, 0, size), dtype);
    Value* along_axis;
    if (aligns_corners) {
      Value* gaps = l.number(symbolic::max(size - 1, 1), dtype);
      along_axis =
          l.emit("Sub", {l.emit("Div", {l.emit("Mul", {places, l.scalar(2, dtype)}), gaps}), l.scalar(1, dtype)});
      if (size.is(1)) along_axis = l.filled(0, dtype, {1});
    } else {
      Value* centres = l.emit("Add", {l.emit("Mul", {places, l.scalar(2, dtype)}), l.scalar(1, dtype)});
      along_axis = l.emit("Sub", {l.emit("Div", {centres, l.number(size, dtype)}), l.scalar(1, dtype)});
    }
    std::vector<Expr> from(grid.size(), 1);
    from[static_cast<size_t>(i)] = size;
    coordinates.push_back(l.unsqueeze(l.expand(along(l, along_axis, i, axes), from, grid), {axes}));
  }
  const std::vector<Expr> none;
  auto ones = grid;
  ones.push_back(1);
  coordinates.push_back(l.expand(l.scalar(1, dtype), none, ones));
  const std::vector<Expr> flat = {symbolic::product(grid), axes + 1};
  auto shaped = grid;
  shaped.push_back(axes + 1);
  Value* points = l.reshape(l.concat(coordinates, -1), shaped, flat);
  Value* moved = l.emit("MatMul", {points, l.transpose(l.input(n, "theta", dtype), {0, 2, 1})});
  const std::vector<Expr> result = {sizes[0], flat[0], axes};
  return {l.reshape(moved, result, out_sizes(n))};
}

constexpr OpRow kRows[] = {
    {"aten::_upsample_bicubic2d_aa", cubic_antialias},
    {"aten::_upsample_bilinear2d_aa", linear_antialias},
    {"aten::_upsample_nearest_exact1d", nearest_exact},
    {"aten::_upsample_nearest_exact2d", nearest_exact},
    {"aten::_upsample_nearest_exact3d", nearest_exact},
    {"aten::affine_grid_generator", affine_grid},
    {"aten::grid_sampler", grid_sampler},
    {"aten::grid_sampler_2d", grid_sampler},
    {"aten::grid_sampler_3d", grid_sampler},
    {"aten::upsample_bicubic2d", cubic},
    {"aten::upsample_bilinear2d", linear},
    {"aten::upsample_linear1d", linear},
    {"aten::upsample_nearest1d", nearest},
    {"aten::upsample_nearest2d", nearest},
    {"aten::upsample_nearest3d", nearest},
    {"aten::upsample_trilinear3d", linear},
};

}  // namespace

std::span<const OpRow> resize_ops() { return kRows; }

}  // namespace transporters::onnx

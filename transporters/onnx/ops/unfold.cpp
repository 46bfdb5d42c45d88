// Windows of images as columns (nn.Unfold) and the reverse (nn.Fold).
#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

struct Windows {
  std::vector<int64_t> kernel, dilation, padding, stride;

  explicit Windows(const AtenNode& n)
      : kernel(per_dimension(n, "kernel_size", 2)),
        dilation(per_dimension(n, "dilation", 2)),
        padding(per_dimension(n, "padding", 2)),
        stride(per_dimension(n, "stride", 2)) {}

  // How many windows fit into `size` along spatial dimension `i`.
  Expr count(const Expr& size, size_t i) const {
    return symbolic::floor_div(size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1, Expr(stride[i])) + 1;
  }
};

// [kernel, count]: where each element of each window lies in the padded image.
Value* positions(Lowering& l, const Windows& w, const Expr& count, size_t i) {
  std::vector<int64_t> offsets;
  for (int64_t k = 0; k < w.kernel[i]; ++k) offsets.push_back(k * w.dilation[i]);
  Value* starts = l.emit("Mul", {range(l, 0, count), l.integer(w.stride[i])});
  return l.emit("Add", {along(l, l.vector(offsets), 0, 2), along(l, starts, 1, 2)});
}

// [N, C, H, W] -> [N, C * kernel_h * kernel_w, windows]
Outputs im2col(Lowering& l, const AtenNode& n) {
  const Windows w(n);
  const AtenValue* self = n.tensor("self");
  std::vector<Expr> sizes = self->sizes();
  const bool is_batched = sizes.size() == 4;
  Value* x = l.input(n, "self");
  if (!is_batched) {
    x = l.unsqueeze(x, {0});
    sizes.insert(sizes.begin(), Expr(1));
  }
  const Expr rows = w.count(sizes[2], 0), columns = w.count(sizes[3], 1);
  if (w.padding != std::vector<int64_t>{0, 0})
    x = l.emit("Pad", {x, l.vector({0, 0, w.padding[0], w.padding[1], 0, 0, w.padding[0], w.padding[1]})});
  x = l.emit("Gather", {x, positions(l, w, rows, 0)}, {{"axis", int64_t{2}}});
  x = l.emit("Gather", {x, positions(l, w, columns, 1)}, {{"axis", int64_t{4}}});
  x = l.transpose(x, {0, 1, 2, 4, 3, 5});
  const std::vector<Expr> from = {sizes[0], sizes[1], Expr(w.kernel[0]), Expr(w.kernel[1]), rows, columns};
  return {l.reshape(x, from, out_sizes(n))};
}

// [N, C * kernel_h * kernel_w, windows] -> [N, C, H, W], elements of overlapping windows added up.
Outputs col2im(Lowering& l, const AtenNode& n) {
  const Windows w(n);
  const bool is_batched = rank(n.tensor("self")) == 3;
  Value* x = l.input(n, "self");
  if (!is_batched) x = l.unsqueeze(x, {0});
  const auto size = n.sizes("output_size");
  Value* image = l.emit("Col2Im", {x, l.shape(size), l.vector(w.kernel)},
                        {{"dilations", w.dilation},
                         {"pads", std::vector<int64_t>{w.padding[0], w.padding[1], w.padding[0], w.padding[1]}},
                         {"strides", w.stride}});
  return {is_batched ? image : l.squeeze(image, {0})};
}

constexpr OpRow kRows[] = {
    {"aten::col2im", col2im},
    {"aten::im2col", im2col},
};

}  // namespace

std::span<const OpRow> unfold_ops() { return kRows; }

}  // namespace transporters::onnx

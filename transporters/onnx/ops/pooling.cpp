// Pooling over windows.
//
// torch's ceil_mode lets a last window start inside the input or its low padding and hang over the high end. ONNX
// runtimes disagree on it, so the input is padded to what the output's size asks for and pooled without it.
#include <cmath>

#include "transporters/onnx/ops/support.h"

namespace transporters::onnx {
namespace {

struct Window {
  std::vector<int64_t> kernel, stride, padding, dilation;
  size_t count;                // spatial dimensions
  std::vector<Expr> sizes;     // spatial sizes of the input
  std::vector<Expr> overhang;  // what the last windows need beyond the input and its padding
  bool hangs_over = false;
  bool is_unbatched = false;  // the input has no batch dimension
};

Window read_window(Lowering& l, const AtenNode& n, size_t count) {
  const AtenValue* self = n.tensor("self");
  Window w{.count = count};
  w.is_unbatched = self->rank() == count + 1;
  w.kernel = per_dimension(n, "kernel_size", count);
  w.stride = per_dimension(n, "stride", count);
  if (w.stride.empty()) w.stride = w.kernel;
  w.padding = per_dimension(n, "padding", count);
  w.dilation = n.schema().find("dilation") ? per_dimension(n, "dilation", count) : std::vector<int64_t>(count, 1);
  for (size_t i = 0; i < count; ++i) {
    const auto from_end = static_cast<int64_t>(i) - static_cast<int64_t>(count);
    w.sizes.push_back(size_at(self, from_end));
    const Expr needed = (size_at(n.outputs()[0], from_end) - 1) * w.stride[i] + w.dilation[i] * (w.kernel[i] - 1) + 1;
    const Expr missing = needed - w.sizes[i] - 2 * w.padding[i];
    const bool can_hang_over = n.boolean("ceil_mode") && l.bounds(missing).max > 0;
    w.overhang.push_back(can_hang_over ? symbolic::max(missing, 0) : Expr(0));
    w.hangs_over = w.hangs_over || can_hang_over;
  }
  return w;
}

std::vector<int64_t> twice(const std::vector<int64_t>& list) {
  auto result = list;
  result.insert(result.end(), list.begin(), list.end());
  return result;
}

// `x` [batch, channels, spatial...] with `low` before and `low + high` after each spatial dimension.
Value* pad_spatial(Lowering& l, Value* x, const std::vector<int64_t>& low, const std::vector<Expr>& high,
                   double value) {
  std::vector<Expr> pads(2, 0);
  for (const int64_t pad : low) pads.emplace_back(pad);
  pads.resize(pads.size() + 2, 0);
  for (size_t i = 0; i < low.size(); ++i) pads.push_back(high[i] + low[i]);
  return l.emit("Pad", {x, l.shape(pads), l.scalar(value, Lowering::dtype(x))});
}

// (values, indices into the flattened spatial dimensions)
template <size_t Count>
Outputs max_pool(Lowering& l, const AtenNode& n) {
  const Window w = read_window(l, n, Count);
  Value* x = l.input(n, "self");
  const ScalarType dtype = Lowering::dtype(x);
  if (w.is_unbatched) x = l.unsqueeze(x, {0});
  if (w.hangs_over)
    x = pad_spatial(l, x, std::vector<int64_t>(Count, 0), w.overhang, is_real(dtype) ? -INFINITY : -128);
  const bool wants_indices = n.outputs().size() > 1 && is_used(n.outputs()[1]);
  Outputs outputs = l.emit_many(
      "MaxPool", {x},
      {{"kernel_shape", w.kernel}, {"strides", w.stride}, {"pads", twice(w.padding)}, {"dilations", w.dilation}},
      wants_indices ? 2 : 1);
  if (wants_indices) {
    // ONNX counts over batch and channels, too, and over what was padded here.
    std::vector<Expr> padded;
    for (size_t i = 0; i < Count; ++i) padded.push_back(w.sizes[i] + w.overhang[i]);
    Value* index = l.emit("Mod", {outputs[1], l.size(symbolic::product(padded))});
    if (w.hangs_over) {
      Value* flat = nullptr;
      Expr padded_stride = 1, stride = 1;
      for (size_t i = Count; i-- > 0;) {
        Value* place = l.emit("Mod", {l.emit("Div", {index, l.size(padded_stride)}), l.size(padded[i])});
        Value* term = l.emit("Mul", {place, l.size(stride)});
        flat = flat ? l.emit("Add", {flat, term}) : term;
        padded_stride = padded_stride * padded[i];
        stride = stride * w.sizes[i];
      }
      index = flat;
    }
    outputs[1] = index;
  }
  if (w.is_unbatched) {
    for (Value*& output : outputs) output = l.squeeze(output, {0});
  }
  return outputs;
}

template <size_t Count>
Outputs avg_pool(Lowering& l, const AtenNode& n) {
  const Window w = read_window(l, n, Count);
  const ScalarType dtype = out_dtype(n);
  Value* x = l.input(n, "self", dtype);
  if (w.is_unbatched) x = l.unsqueeze(x, {0});
  const std::optional<int64_t> divisor =
      n.schema().find("divisor_override") ? n.integer_or_none("divisor_override") : std::nullopt;
  const bool includes_padding = n.boolean("count_include_pad");
  const auto pool = [&](Value* value, const std::vector<int64_t>& padding, bool include) {
    return l.emit("AveragePool", {value},
                  {{"kernel_shape", w.kernel},
                   {"strides", w.stride},
                   {"pads", twice(padding)},
                   {"count_include_pad", int64_t{include}}});
  };
  const std::vector<int64_t> none(Count, 0);
  Value* y;
  if (!w.hangs_over) {
    y = pool(x, w.padding, includes_padding || divisor);
  } else {
    y = pool(pad_spatial(l, x, w.padding, w.overhang, 0), none, true);
    if (!divisor) {
      // The share of each window that counts: 1 where the input is (and its padding, if included), 0 beyond.
      std::vector<Expr> sizes = {1, 1};
      std::vector<int64_t> low = w.padding;
      std::vector<Expr> high = w.overhang;
      for (size_t i = 0; i < Count; ++i) sizes.push_back(includes_padding ? w.sizes[i] + 2 * w.padding[i] : w.sizes[i]);
      if (includes_padding) low = none;
      const std::vector<Expr> scalar;
      Value* counted = l.expand(l.scalar(1, dtype), scalar, sizes);
      y = l.emit("Div", {y, pool(pad_spatial(l, counted, low, high, 0), none, true)});
    }
  }
  if (divisor) {
    double total = 1;
    for (const int64_t size : w.kernel) total *= static_cast<double>(size);
    y = l.emit("Mul", {y, l.scalar(total / static_cast<double>(*divisor), dtype)});
  }
  return {w.is_unbatched ? l.squeeze(y, {0}) : y};
}

// ── Adaptive: as many windows as asked for; window i reaches from floor(i * in / out) to ceil((i + 1) * in / out) ──

struct Adaptive {
  std::vector<int64_t> out;
  std::vector<Expr> in;
  std::vector<int64_t> kernel;  // of equal windows; empty when they differ
};

Adaptive read_adaptive(const AtenNode& n, size_t count) {
  Adaptive a{.out = per_dimension(n, "output_size", count)};
  bool is_even = true;
  for (size_t i = 0; i < count; ++i) {
    a.in.push_back(size_at(n.tensor("self"), static_cast<int64_t>(i) - static_cast<int64_t>(count)));
    const auto size = a.in[i].as_integer();
    is_even = is_even && size && *size % a.out[i] == 0;
    a.kernel.push_back(is_even ? *size / a.out[i] : 1);
  }
  if (!is_even) a.kernel.clear();
  return a;
}

bool is_global(const Adaptive& a) {
  return std::all_of(a.out.begin(), a.out.end(), [](int64_t size) { return size == 1; });
}

std::vector<int64_t> last_dims(int64_t rank, size_t count) {
  std::vector<int64_t> dims;
  for (int64_t i = rank - static_cast<int64_t>(count); i < rank; ++i) dims.push_back(i);
  return dims;
}

// Weights [in, out] whose product with a row of inputs gives the means of the windows.
Value* mean_weights(Lowering& l, const Expr& in, int64_t out, ScalarType dtype) {
  Value* places = range(l, 0, out);
  Value* size = l.size(in);
  Value* count = l.integer(out);
  Value* starts = l.emit("Div", {l.emit("Mul", {places, size}), count});
  Value* next = l.emit("Mul", {l.emit("Add", {places, l.integer(1)}), size});
  Value* ends = l.emit("Div", {l.emit("Add", {next, l.integer(out - 1)}), count});
  Value* inputs = l.unsqueeze(range(l, 0, in), {1});
  Value* inside = l.emit("And", {l.emit("GreaterOrEqual", {inputs, starts}), l.emit("Less", {inputs, ends})});
  return l.emit("Div", {l.cast(inside, dtype), l.cast(l.emit("Sub", {ends, starts}), dtype)});
}

template <size_t Count>
Outputs adaptive_avg_pool(Lowering& l, const AtenNode& n) {
  const Adaptive a = read_adaptive(n, Count);
  const ScalarType dtype = out_dtype(n);
  const int64_t dims = rank(n.tensor("self"));
  Value* x = l.input(n, "self", dtype);
  if (is_global(a)) return {l.reduce("ReduceMean", x, last_dims(dims, Count), true)};
  if (!a.kernel.empty()) {
    const bool is_unbatched = dims == Count + 1;
    if (is_unbatched) x = l.unsqueeze(x, {0});
    Value* y = l.emit("AveragePool", {x}, {{"kernel_shape", a.kernel}, {"strides", a.kernel}});
    return {is_unbatched ? l.squeeze(y, {0}) : y};
  }
  for (size_t i = 0; i < Count; ++i) {
    if (a.in[i].is(a.out[i])) continue;
    const int64_t dim = dims - static_cast<int64_t>(Count - i);
    const auto order = moved(dims, dim, dims - 1);
    Value* weights = mean_weights(l, a.in[i], a.out[i], dtype);
    x = l.transpose(l.emit("MatMul", {l.transpose(x, order), weights}), inverse(order));
  }
  return {x};
}

template <size_t Count>
Outputs adaptive_max_pool(Lowering& l, const AtenNode& n) {
  const Adaptive a = read_adaptive(n, Count);
  const int64_t dims = rank(n.tensor("self"));
  const bool wants_indices = is_used(n.outputs()[1]);
  Value* x = l.input(n, "self");
  if (!a.kernel.empty()) {
    const bool is_unbatched = dims == Count + 1;
    if (is_unbatched) x = l.unsqueeze(x, {0});
    Outputs outputs =
        l.emit_many("MaxPool", {x}, {{"kernel_shape", a.kernel}, {"strides", a.kernel}}, 1 + wants_indices);
    if (wants_indices) outputs[1] = l.emit("Mod", {outputs[1], l.size(symbolic::product(a.in))});
    if (is_unbatched) {
      for (Value*& output : outputs) output = l.squeeze(output, {0});
    }
    return outputs;
  }
  if (wants_indices) throw l.error(n, "gives indices of windows of different sizes, which is not supported");
  if (is_global(a)) return {l.reduce("ReduceMax", x, last_dims(dims, Count), true), nullptr};
  for (size_t i = 0; i < Count; ++i) {
    const auto in = a.in[i].as_integer();
    if (!in)
      throw l.error(n, "has windows that depend on the symbolic size " + a.in[i].str() + "; pool to size 1 or fix it");
    // Windows as rows of indices; shorter ones repeat their last.
    const int64_t out = a.out[i];
    std::vector<std::vector<int64_t>> windows;
    size_t longest = 0;
    for (int64_t j = 0; j < out; ++j) {
      std::vector<int64_t> window;
      for (int64_t k = j * *in / out; k < ((j + 1) * *in + out - 1) / out; ++k) window.push_back(k);
      longest = std::max(longest, window.size());
      windows.push_back(window);
    }
    std::vector<int64_t> flat;
    for (auto& window : windows) {
      window.resize(longest, window.back());
      flat.insert(flat.end(), window.begin(), window.end());
    }
    const int64_t dim = dims - static_cast<int64_t>(Count - i);
    const std::vector<int64_t> rows = {out, static_cast<int64_t>(longest)};
    Value* index = l.emit("Reshape", {l.vector(flat), l.vector(rows)});
    x = l.reduce("ReduceMax", l.emit("Gather", {x, index}, {{"axis", dim}}), {dim + 1}, false);
  }
  return {x, nullptr};
}

constexpr OpRow kRows[] = {
    {"aten::_adaptive_avg_pool2d", adaptive_avg_pool<2>},
    {"aten::_adaptive_avg_pool3d", adaptive_avg_pool<3>},
    {"aten::adaptive_avg_pool1d", adaptive_avg_pool<1>},
    {"aten::adaptive_avg_pool2d", adaptive_avg_pool<2>},
    {"aten::adaptive_avg_pool3d", adaptive_avg_pool<3>},
    {"aten::adaptive_max_pool1d", adaptive_max_pool<1>},
    {"aten::adaptive_max_pool2d", adaptive_max_pool<2>},
    {"aten::adaptive_max_pool3d", adaptive_max_pool<3>},
    {"aten::avg_pool1d", avg_pool<1>},
    {"aten::avg_pool2d", avg_pool<2>},
    {"aten::avg_pool3d", avg_pool<3>},
    {"aten::max_pool1d", max_pool<1>},
    {"aten::max_pool1d_with_indices", max_pool<1>},
    {"aten::max_pool2d", max_pool<2>},
    {"aten::max_pool2d_with_indices", max_pool<2>},
    {"aten::max_pool3d", max_pool<3>},
    {"aten::max_pool3d_with_indices", max_pool<3>},
};

}  // namespace

std::span<const OpRow> pooling_ops() { return kRows; }

}  // namespace transporters::onnx

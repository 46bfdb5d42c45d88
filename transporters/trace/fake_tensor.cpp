#include "transporters/trace/fake_tensor.h"

#include <algorithm>
#include <tuple>

#include "transporters/symbolic/sym_node.h"
#include "transporters/trace/pointwise_layout.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters {
namespace {

std::vector<int64_t> at_hints(const std::vector<Expr>& exprs, const symbolic::ShapeEnv& env) {
  std::vector<int64_t> values;
  values.reserve(exprs.size());
  for (const auto& expr : exprs) values.push_back(layout_hint(expr, env));
  return values;
}

bool all_constant(const std::vector<c10::SymInt>& sizes) {
  return std::none_of(sizes.begin(), sizes.end(), [](const c10::SymInt& s) { return s.is_heap_allocated(); });
}

}  // namespace

FakeTensorImpl::FakeTensorImpl(Value* value, const std::shared_ptr<symbolic::ShapeEnv>& env,
                               std::function<void()> on_concrete_read)
    : TensorImpl(c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(value->dtype()),
                 c10::Device(c10::kCPU)),
      value_(value),
      env_(env),
      on_concrete_read_(std::move(on_concrete_read)) {
  const auto& type = value->tensor();
  const auto strides = strides_of(type);
  for (const auto& size : type.sizes) sym_sizes_.push_back(symbolic::to_sym_int(env->simplify(size), env));
  for (const auto& stride : strides) sym_strides_.push_back(symbolic::to_sym_int(env->simplify(stride), env));
  sizes_at_hints_ = at_hints(type.sizes, *env);
  strides_at_hints_ = at_hints(strides, *env);
  // The base needs them too: it tells symbolic tensors from plain ones by its own copy.
  set_sizes_and_strides(sym_sizes_, sym_strides_, c10::SymInt(0));
  set_storage_access_should_throw();
  set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);
}

bool FakeTensorImpl::is_dynamic() const { return !all_constant(sym_sizes_); }

c10::IntArrayRef FakeTensorImpl::sizes_custom() const {
  if (is_dynamic()) on_concrete_read_();
  return sizes_at_hints_;
}

c10::IntArrayRef FakeTensorImpl::strides_custom() const {
  if (!all_constant(sym_strides_)) on_concrete_read_();
  return strides_at_hints_;
}

int64_t FakeTensorImpl::numel_custom() const {
  if (is_dynamic()) on_concrete_read_();
  return c10::multiply_integers(sizes_at_hints_);
}

int64_t FakeTensorImpl::dim_custom() const { return static_cast<int64_t>(sym_sizes_.size()); }
int64_t FakeTensorImpl::storage_offset_custom() const { return 0; }
c10::SymIntArrayRef FakeTensorImpl::sym_sizes_custom() const { return sym_sizes_; }
c10::SymIntArrayRef FakeTensorImpl::sym_strides_custom() const { return sym_strides_; }

c10::SymInt FakeTensorImpl::sym_numel_custom() const {
  c10::SymInt numel = 1;
  for (const auto& size : sym_sizes_) numel *= size;
  return numel;
}

c10::SymInt FakeTensorImpl::sym_storage_offset_custom() const { return 0; }

c10::SymBool FakeTensorImpl::sym_is_contiguous_custom(c10::MemoryFormat format) const {
  const auto& type = value_->tensor();
  if (format != c10::MemoryFormat::Contiguous) {
    // Channels-last only when the strides say so at the example sizes: layout never changes a result.
    const auto order = format == c10::MemoryFormat::ChannelsLast ? std::vector<size_t>{1, 3, 2, 0}
                                                                 : std::vector<size_t>{1, 4, 3, 2, 0};
    if (type.rank() != order.size()) return false;
    int64_t expected = 1;
    for (size_t dim : order) {
      if (strides_at_hints_[dim] != expected) return false;
      expected *= sizes_at_hints_[dim];
    }
    return true;
  }
  if (type.strides.empty()) return true;
  Expr expected = 1;
  for (size_t i = type.rank(); i-- > 0;) {
    if (type.sizes[i].is(0)) return true;
    if (type.sizes[i].is(1)) continue;
    if (env_->decide_size_oblivious(symbolic::equal(type.strides[i], expected)) != true) return false;
    expected = expected * type.sizes[i];
  }
  return true;
}

c10::SymBool FakeTensorImpl::sym_is_non_overlapping_and_dense_custom() const {
  // Expanded tensors (stride 0) overlap; every other view is judged at the example sizes.
  std::vector<size_t> order(sizes_at_hints_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::tie(strides_at_hints_[a], a) < std::tie(strides_at_hints_[b], b); });
  int64_t expected = 1;
  for (size_t dim : order) {
    if (sizes_at_hints_[dim] == 1) continue;
    if (strides_at_hints_[dim] != expected) return false;
    expected *= sizes_at_hints_[dim];
  }
  return true;
}

c10::intrusive_ptr<c10::TensorImpl> FakeTensorImpl::shallow_copy_and_detach(const c10::VariableVersion&, bool) const {
  return c10::make_intrusive<FakeTensorImpl>(value_, env_, on_concrete_read_);
}

c10::intrusive_ptr<c10::TensorImpl> FakeTensorImpl::shallow_copy_and_detach(c10::VariableVersion&&, bool) const {
  return c10::make_intrusive<FakeTensorImpl>(value_, env_, on_concrete_read_);
}

at::Tensor make_fake(Value* value, const std::shared_ptr<symbolic::ShapeEnv>& env,
                     const std::function<void()>& on_concrete_read) {
  return at::detail::make_tensor<FakeTensorImpl>(value, env, on_concrete_read);
}

FakeTensorImpl* as_fake(const at::Tensor& tensor) {
  return tensor.defined() ? dynamic_cast<FakeTensorImpl*>(tensor.unsafeGetTensorImpl()) : nullptr;
}

}  // namespace transporters

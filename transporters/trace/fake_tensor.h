// Tensors without data that stand for values of the graph being traced.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <functional>
#include <memory>
#include <vector>

#include "transporters/graph/value.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters {

// A CPU tensor with symbolic sizes and strides and no storage. sizes() and strides() as plain integers give the values
// at the hints, and `on_concrete_read` is told.
class FakeTensorImpl final : public c10::TensorImpl {
 public:
  FakeTensorImpl(Value* value, const std::shared_ptr<symbolic::ShapeEnv>& env, std::function<void()> on_concrete_read);

  Value* value() const { return value_; }

  c10::IntArrayRef sizes_custom() const override;
  c10::IntArrayRef strides_custom() const override;
  int64_t numel_custom() const override;
  int64_t dim_custom() const override;
  int64_t storage_offset_custom() const override;
  c10::SymIntArrayRef sym_sizes_custom() const override;
  c10::SymIntArrayRef sym_strides_custom() const override;
  c10::SymInt sym_numel_custom() const override;
  c10::SymInt sym_storage_offset_custom() const override;
  c10::SymBool sym_is_contiguous_custom(c10::MemoryFormat format) const override;
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override;

  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                              bool allow_metadata_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                              bool allow_metadata_change) const override;

 private:
  const char* tensorimpl_type_name() const override { return "transporters::FakeTensorImpl"; }
  bool is_dynamic() const;

  Value* value_;
  std::shared_ptr<symbolic::ShapeEnv> env_;
  std::function<void()> on_concrete_read_;
  std::vector<c10::SymInt> sym_sizes_;
  std::vector<c10::SymInt> sym_strides_;
  std::vector<int64_t> sizes_at_hints_;
  std::vector<int64_t> strides_at_hints_;
};

at::Tensor make_fake(Value* value, const std::shared_ptr<symbolic::ShapeEnv>& env,
                     const std::function<void()>& on_concrete_read);
// The fake behind a tensor, or null.
FakeTensorImpl* as_fake(const at::Tensor& tensor);

}  // namespace transporters

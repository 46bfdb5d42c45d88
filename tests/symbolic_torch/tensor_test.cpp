// ATen's own code on tensors with symbolic sizes: layout predicates and composite shape arithmetic.
#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <c10/core/TensorImpl.h>
#include <doctest/doctest.h>

#include "transporters/symbolic/layout.h"
#include "transporters/symbolic/sym_node.h"

namespace transporters::symbolic {
namespace {

struct Tensors {
  std::shared_ptr<ShapeEnv> env = std::make_shared<ShapeEnv>();
  Expr b = env->add_symbol({.name = "b", .range = {1, Range::kInfinity}, .hint = 4, .source = "x dim 0"});
  Expr s = env->add_symbol({.name = "s", .range = {1, Range::kInfinity}, .hint = 7, .source = "x dim 1"});

  std::vector<c10::SymInt> sym(std::span<const Expr> exprs) const {
    std::vector<c10::SymInt> result;
    for (const Expr& e : exprs) result.push_back(to_sym_int(e, env));
    return result;
  }

  at::Tensor make(std::vector<Expr> sizes, std::vector<Expr> strides) const {
    auto impl = c10::make_intrusive<c10::TensorImpl>(c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                     caffe2::TypeMeta::Make<float>(), c10::Device(c10::kCPU));
    impl->set_sizes_and_strides(sym(sizes), sym(strides), c10::SymInt(0));
    return at::Tensor(std::move(impl));
  }

  bool recorded_nothing() const {
    return env->runtime_asserts().empty() && env->equalities().empty() && env->specializations().empty() &&
           env->narrowings().empty();
  }
};

TEST_CASE("contiguity of tensors with symbolic sizes") {
  Tensors z;
  at::Tensor x = z.make({z.b, z.s, 8}, {z.s * 8, 8, 1});
  CHECK(x.is_contiguous());
  CHECK(x.is_non_overlapping_and_dense());
  CHECK(to_expr(x.sym_numel()) == z.b * z.s * 8);

  at::Tensor transposed = z.make({z.s, z.b, 8}, {8, z.s * 8, 1});
  CHECK_FALSE(transposed.is_contiguous());
  CHECK(transposed.is_non_overlapping_and_dense());

  at::Tensor expanded = z.make({z.b, z.s}, {0, 1});
  CHECK_FALSE(expanded.is_contiguous());
  CHECK_FALSE(expanded.is_non_overlapping_and_dense());

  at::Tensor guarded_strides = z.make({z.b, z.s, 8}, {max(z.s, 1) * 8, 8, 1});
  CHECK(guarded_strides.is_contiguous());
  at::Tensor one = z.make({z.b, 1, 8}, {8, 123, 1});
  CHECK(one.is_contiguous());
  CHECK(z.recorded_nothing());
}

TEST_CASE("channels last") {
  Tensors z;
  Expr hw = z.s * z.s;
  at::Tensor image = z.make({z.b, 3, z.s, z.s}, {hw * 3, 1, z.s * 3, 3});
  CHECK(image.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK_FALSE(image.is_contiguous());
  CHECK(image.suggest_memory_format() == at::MemoryFormat::ChannelsLast);
  at::Tensor plain = z.make({z.b, 3, z.s, z.s}, {hw * 3, hw, z.s, 1});
  CHECK(plain.suggest_memory_format() == at::MemoryFormat::Contiguous);
  CHECK_FALSE(plain.is_contiguous(at::MemoryFormat::ChannelsLast));
  at::Tensor volume = z.make({z.b, 3, 2, z.s, z.s}, {hw * 6, 1, hw * 3, z.s * 3, 3});
  CHECK(volume.is_contiguous(at::MemoryFormat::ChannelsLast3d));
  CHECK(volume.suggest_memory_format() == at::MemoryFormat::ChannelsLast3d);
  CHECK(z.recorded_nothing());
}

TEST_CASE("layouts agree with libtorch at numbers") {
  ShapeEnv env;
  const std::vector<std::vector<int64_t>> sizes = {
      {2, 3, 4, 5}, {1, 3, 4, 5}, {2, 1, 4, 5}, {2, 3, 1, 1}, {0, 3, 4, 5}};
  const std::vector<std::vector<int64_t>> orders = {{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}};
  for (const auto& size : sizes) {
    for (const auto& order : orders) {
      std::vector<int64_t> permuted, inverse(4);
      for (size_t i = 0; i < 4; ++i) {
        permuted.push_back(size[static_cast<size_t>(order[i])]);
        inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
      }
      at::Tensor x = at::empty(permuted).permute(inverse);
      std::vector<Expr> expr_sizes(x.sizes().begin(), x.sizes().end());
      std::vector<Expr> expr_strides(x.strides().begin(), x.strides().end());
      CAPTURE(x.sizes());
      CAPTURE(x.strides());
      CHECK(is_contiguous(env, expr_sizes, expr_strides) == x.is_contiguous());
      CHECK(is_channels_last_contiguous(env, expr_sizes, expr_strides, 4) ==
            x.is_contiguous(at::MemoryFormat::ChannelsLast));
      CHECK(is_channels_last_strides(env, expr_sizes, expr_strides, 4) ==
            x.unsafeGetTensorImpl()->is_strides_like_channels_last());
      CHECK(is_non_overlapping_and_dense(env, expr_sizes, expr_strides) == x.is_non_overlapping_and_dense());
    }
  }
}

TEST_CASE("ATen's shape arithmetic neither guards on 0 and 1 nor specialises") {
  Tensors z;
  auto broadcast = at::infer_size_symint(z.sym(std::vector<Expr>{z.b, 1, z.s}), z.sym(std::vector<Expr>{4, z.s}));
  REQUIRE(broadcast.size() == 3);
  CHECK(to_expr(broadcast[0]) == z.b);
  CHECK(to_expr(broadcast[1]) == Expr(4));
  CHECK(to_expr(broadcast[2]) == z.s);

  auto view = at::infer_size_dv(z.sym(std::vector<Expr>{z.b, -1, 4}), to_sym_int(z.b * z.s * 32, z.env));
  CHECK(to_expr(view[1]) == z.s * 8);

  const auto old_sizes = z.sym(std::vector<Expr>{z.b, z.s, 32});
  const auto old_strides = z.sym(std::vector<Expr>{z.s * 32, 32, 1});
  const auto new_sizes = z.sym(std::vector<Expr>{z.b, z.s, 4, 8});
  auto strides = at::detail::computeStride(c10::SymIntArrayRef(old_sizes), c10::SymIntArrayRef(old_strides),
                                           c10::SymIntArrayRef(new_sizes));
  REQUIRE(strides.has_value());
  CHECK(to_expr((*strides)[1]) == Expr(32));
  CHECK(to_expr((*strides)[2]) == Expr(8));
  CHECK(z.recorded_nothing());
}

}  // namespace
}  // namespace transporters::symbolic

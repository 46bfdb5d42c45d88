#include <doctest/doctest.h>

#include <thread>

#include "transporters/error.h"
#include "transporters/graph/schema.h"

using namespace transporters;

TEST_CASE("a schema has names, kinds and defaults") {
  const auto& add = get_schema("aten::add.Tensor");
  CHECK(add.base_name() == "aten::add");
  CHECK(add.overload() == "Tensor");
  REQUIRE(add.arguments.size() == 3);
  CHECK(add.arguments[0].name == "self");
  CHECK(add.arguments[0].kind == ArgumentKind::Tensor);
  CHECK_FALSE(add.arguments[0].default_value);
  CHECK(add.arguments[2].kind == ArgumentKind::Scalar);
  CHECK(add.arguments[2].keyword_only);
  CHECK(std::get<Expr>(*add.arguments[2].default_value).is(1));
  CHECK(add.find("other") == 1);
  CHECK_FALSE(add.find("beta"));
  CHECK(get_schema("aten::relu").overload().empty());
}

TEST_CASE("every kind of argument is read") {
  const auto argument = [](std::string_view op, std::string_view name) {
    const auto& schema = get_schema(op);
    return schema.arguments.at(*schema.find(name));
  };
  CHECK(argument("aten::cat", "tensors").kind == ArgumentKind::TensorList);
  CHECK(argument("aten::index.Tensor", "indices").kind == ArgumentKind::OptionalTensorList);
  CHECK(argument("aten::embedding", "padding_idx").kind == ArgumentKind::Int);  // SymInt
  CHECK(std::get<Expr>(*argument("aten::embedding", "padding_idx").default_value).is(-1));
  CHECK(argument("aten::view", "size").kind == ArgumentKind::IntList);
  CHECK(argument("aten::dropout", "p").kind == ArgumentKind::Float);
  CHECK(argument("aten::upsample_nearest2d.vec", "scale_factors").kind == ArgumentKind::FloatList);
  CHECK(argument("aten::upsample_nearest2d.vec", "scale_factors").optional);
  CHECK(argument("aten::dropout", "train").kind == ArgumentKind::Bool);
  CHECK(argument("aten::convolution_backward", "output_mask").kind == ArgumentKind::BoolList);
  CHECK(argument("aten::gelu", "approximate").kind == ArgumentKind::String);
  CHECK(std::get<std::string>(*argument("aten::gelu", "approximate").default_value) == "none");
  CHECK(argument("aten::to.dtype", "dtype").kind == ArgumentKind::ScalarType);
  CHECK(argument("aten::sum.dim_IntList", "dtype").kind == ArgumentKind::ScalarType);
  CHECK(argument("aten::sum.dim_IntList", "dtype").optional);
  CHECK(std::holds_alternative<None>(*argument("aten::sum.dim_IntList", "dtype").default_value));
  CHECK(argument("aten::empty.memory_format", "layout").kind == ArgumentKind::Layout);
  CHECK(argument("aten::empty.memory_format", "device").kind == ArgumentKind::Device);
  CHECK(argument("aten::clone", "memory_format").kind == ArgumentKind::MemoryFormat);
  CHECK(std::get<MemoryFormat>(*argument("aten::contiguous", "memory_format").default_value).name ==
        "contiguous_format");
  CHECK(argument("aten::bernoulli", "generator").kind == ArgumentKind::Other);
  // int[2] stride=1 is a list of two.
  CHECK((std::get<std::vector<Expr>>(*argument("aten::conv2d", "stride").default_value) == std::vector<Expr>{1, 1}));
  CHECK(std::get<std::vector<Expr>>(*argument("aten::max_pool2d", "stride").default_value).empty());
}

TEST_CASE("writes, views, randomness and side effects are told apart") {
  CHECK(get_schema("aten::add_.Tensor").is_mutable());
  CHECK(get_schema("aten::add.out").is_mutable());
  CHECK_FALSE(get_schema("aten::add.Tensor").is_mutable());
  CHECK(get_schema("aten::view").is_view());
  CHECK(get_schema("aten::view").arguments[0].alias_set == "a");
  CHECK(get_schema("aten::split.Tensor").is_view());
  CHECK_FALSE(get_schema("aten::add_.Tensor").is_view());
  CHECK_FALSE(get_schema("aten::relu").is_view());
  CHECK(get_schema("aten::rand_like").is_random);
  CHECK_FALSE(get_schema("aten::relu").is_random);
  CHECK(get_schema("aten::_assert_scalar").has_side_effects());
  CHECK(get_schema("aten::_assert_async.msg").has_side_effects());
  CHECK_FALSE(get_schema("aten::relu").has_side_effects());
}

TEST_CASE("returns are read") {
  CHECK(get_schema("aten::split.Tensor").returns.at(0).kind == ArgumentKind::TensorList);
  CHECK(get_schema("aten::native_layer_norm").returns.size() == 3);
  CHECK(get_schema("aten::item").returns.at(0).kind == ArgumentKind::Scalar);
  CHECK(get_schema("aten::sym_size.int").returns.at(0).kind == ArgumentKind::Int);
}

TEST_CASE("an unknown op is answered with near names or with the overloads there are") {
  CHECK(find_schema("aten::no_such_op") == nullptr);
  CHECK_THROWS_WITH_AS(get_schema("aten::sotfmax"), doctest::Contains("did you mean 'aten::softmax'"), Error);
  CHECK_THROWS_WITH_AS(get_schema("aten::add.Tenso"), doctest::Contains("its overloads are"), Error);
  CHECK_THROWS_WITH_AS(get_schema("aten::add.Tenso"), doctest::Contains("'aten::add.Tensor'"), Error);
}

TEST_CASE("schemas are one object from every thread") {
  std::vector<const OpSchema*> found(8);
  std::vector<std::thread> threads;
  for (auto& slot : found) threads.emplace_back([&slot] { slot = find_schema("aten::grid_sampler_2d"); });
  for (auto& thread : threads) thread.join();
  for (const auto* schema : found) CHECK(schema == found[0]);
  CHECK(found[0] == &get_schema("aten::grid_sampler_2d"));
}

TEST_CASE("every schema of the dispatcher can be read") {
  size_t count = 0;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    if (const auto* schema = find_schema(full)) {
      CHECK(schema->name == full);
      ++count;
    }
  }
  CHECK(count > 3000);
}

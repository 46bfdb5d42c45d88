#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/error.h"
#include "transporters/onnx/reader.h"
#include "transporters/onnx/writer.h"
#include "transporters/runners/onnxruntime.h"

using namespace transporters;
namespace fs = std::filesystem;
using tests::TemporaryFolder;

namespace {

// sum = x + y and copy = x, with a batch axis.
fs::path add_model(const TemporaryFolder& folder) {
  onnx::Model model;
  model.ir_version = 9;
  model.opsets[""] = 20;
  auto& graph = *model.graph;
  const onnx::Shape shape{onnx::Dim::named("batch"), onnx::Dim::of(3)};
  auto* x = graph.add_input("x", onnx::DataType::FLOAT, shape);
  auto* y = graph.add_input("y", onnx::DataType::FLOAT, shape);
  for (const auto& [op, inputs, name] :
       {std::tuple("Add", std::vector{x, y}, "sum"), std::tuple("Identity", std::vector{x}, "copy")}) {
    auto* output = graph.insert(nullptr, op, inputs, {}, {name})->output();
    output->type = onnx::DataType::FLOAT;
    output->shape = shape;
    graph.add_output(output);
  }
  const fs::path file = folder / "ü add.onnx";
  onnx::save(model, file);
  return file;
}

template <typename Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a model runs through ONNX Runtime") {
  const TemporaryFolder folder;
  OnnxRuntimeSession session(add_model(folder));
  CHECK(session.input_names() == std::vector<std::string>{"x", "y"});
  CHECK(session.output_names() == std::vector<std::string>{"sum", "copy"});
  CHECK(session.version().find('.') != std::string::npos);

  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  const at::Tensor strided = at::arange(6, at::kFloat).view({3, 2}).t();
  const auto outputs = session.run({{"x", x}, {"y", strided}});
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].equal(x + strided));
  CHECK(outputs[1].equal(x));
  const auto empty = session.run({{"x", at::empty({0, 3})}, {"y", at::empty({0, 3})}});
  CHECK(empty[0].sizes() == at::IntArrayRef({0, 3}));
}

TEST_CASE("outputs stay valid when the session and its inputs are gone") {
  const TemporaryFolder folder;
  at::Tensor sum;
  {
    OnnxRuntimeSession session(add_model(folder));
    sum = session.run({{"x", at::ones({1, 3})}, {"y", at::ones({1, 3})}})[0];
  }
  CHECK(sum.equal(at::full({1, 3}, 2.0)));
}

TEST_CASE("wrong inputs, models and libraries are errors that say so") {
  const TemporaryFolder folder;
  const fs::path file = add_model(folder);
  OnnxRuntimeSession session(file);
  const at::Tensor x = at::ones({1, 3});
  CHECK(error_text([&] { session.run({{"x", x}}); }).find("input 'y' is missing") != std::string::npos);
  CHECK(error_text([&] { session.run({{"x", x}, {"yy", x}}); }).find("did you mean 'y'") != std::string::npos);
  CHECK(error_text([&] { session.run({{"x", x}, {"y", at::ones({1, 4})}}); }).find("[onnxruntime]") == 0);
  CHECK(error_text([&] { session.run({{"x", x}, {"y", at::ones({1, 3}, at::kLong)}}); }).find("[onnxruntime]") == 0);
  CHECK(error_text([&] { OnnxRuntimeSession(folder / "none.onnx"); }).find("no such file") != std::string::npos);

  std::ofstream(folder / "broken.onnx") << "no model";
  CHECK(error_text([&] { OnnxRuntimeSession(folder / "broken.onnx"); }).find("broken.onnx") != std::string::npos);

  CHECK(error_text([&] {
          OnnxRuntimeSession(file, {.library = "/no/such/libonnxruntime.so"});
        }).find("TRANSPORTERS_ONNXRUNTIME") != std::string::npos);
  CHECK(error_text([&] { OnnxRuntimeSession(file, {.library = "libdl.so.2"}); }).find("not the ONNX Runtime library") !=
        std::string::npos);
}

TEST_CASE("sizes outside the recorded range, and different ones under one name, are refused") {
  const TemporaryFolder folder;
  const fs::path file = add_model(folder);
  onnx::Model model = onnx::load(file);
  model.metadata["range.batch"] = "[2, 4]";
  onnx::save(model, file);
  OnnxRuntimeSession session(file);
  const auto of = [](int64_t batch) { return at::ones({batch, 3}); };
  CHECK(session.run({{"x", of(4)}, {"y", of(4)}})[0].size(0) == 4);
  CHECK(error_text([&] {
          session.run({{"x", of(5)}, {"y", of(5)}});
        }).find("input 'x' dim 0: expected 'batch' to be 2 to 4, got 5") != std::string::npos);
  CHECK(error_text([&] { session.run({{"x", of(1)}, {"y", of(1)}}); }).find("got 1") != std::string::npos);
  CHECK(error_text([&] {
          session.run({{"x", of(3)}, {"y", of(2)}});
        }).find("input 'y' dim 0: expected 'batch' = 3 (input 'x' dim 0), got 2") != std::string::npos);
}

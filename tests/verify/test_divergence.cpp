#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "transporters/graph/tensor_torch.h"
#include "transporters/onnx/lower.h"
#include "transporters/onnx/writer.h"
#include "transporters/verify/divergence.h"
#include "transporters/verify/temporary_folder.h"

using namespace transporters;

namespace {

// Two layers of two ops; the text of the second one's activation can be another op's.
Program network(const at::Tensor& second_weight, const std::string& second_activation = "aten::relu") {
  Program program = parse_program(R"(program
symbol batch in [1, 8]
input %w0: f32[4, 4] = parameter "layers.0.weight"
input %w1: f32[4, 4] = parameter "layers.1.weight"
input %x: f32[batch, 4] = user "x"
%linear: f32[batch, 4] = aten::linear(input=%x, weight=%w0)  @ layers.0
%relu: f32[batch, 4] = aten::relu(self=%linear)  @ layers.0
%linear_1: f32[batch, 4] = aten::linear(input=%relu, weight=%w1)  @ layers.1
%act: f32[batch, 4] = )" + second_activation +
                                  R"((self=%linear_1)  @ layers.1
output %act = user "y"
)");
  at::manual_seed(1);
  program.state["layers.0.weight"] = to_tensor_data(at::randn({4, 4}));
  program.state["layers.1.weight"] = to_tensor_data(second_weight);
  verify(program);
  return program;
}

at::Tensor weight() { return at::arange(16).to(at::kFloat).view({4, 4}) / 10 - 0.6; }

const std::map<std::string, at::Tensor>& inputs() {
  static const std::map<std::string, at::Tensor> made{{"x", at::linspace(-1, 1, 12).view({3, 4})}};
  return made;
}

// The program as it is, and as an ONNX file.
std::vector<DivergenceReport> reports(const Program& artefact, const Program& reference,
                                      const DivergenceOptions& options = {}) {
  const TemporaryFolder folder;
  onnx::save(onnx::lower(artefact), folder.path() / "model.onnx");
  return {find_divergence(artefact, reference, inputs(), options),
          find_divergence(folder.path() / "model.onnx", reference, inputs(), options)};
}

}  // namespace

TEST_CASE("equal programs do not diverge, however few values a run keeps") {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{100}, uint64_t{1} << 20})
    for (const auto& report : reports(network(weight()), network(weight()), {.bytes_per_run = bytes})) {
      CHECK_FALSE(report.first);
      CHECK(report.compared == 4);
      CHECK(report.values == 4);
      CHECK(report.weights.empty());
    }
}

TEST_CASE("another weight is found at the node that reads it first") {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{1} << 20}) {
    for (const auto& report : reports(network(weight() + 1), network(weight()), {.bytes_per_run = bytes})) {
      REQUIRE(report.first);
      CHECK(report.first->value == "linear_1");
      CHECK(report.first->module == "layers.1");
      CHECK(report.first->reference_op == "aten::linear");
      CHECK((report.first->sizes == std::vector<int64_t>{3, 4}));
      REQUIRE(report.first->inputs.size() == 2);
      CHECK(report.first->inputs[0].name == "relu");
      CHECK(report.first->inputs[0].difference->relative <= 1e-5);
      CHECK(report.first->inputs[1].name == "layers.1.weight");
      CHECK(report.first->inputs[1].difference->absolute == doctest::Approx(1));
      CHECK(report.compared == 3);
      REQUIRE(report.weights.size() == 1);
      CHECK(report.weights[0].name == "layers.1.weight");
    }
  }
}

TEST_CASE("an output is compared whatever op makes it") {
  for (const auto& report : reports(network(weight(), "aten::neg"), network(weight()))) {
    REQUIRE(report.first);
    CHECK(report.first->module == "layers.1");
    CHECK((report.first->op == "aten::neg" || report.first->op == "Neg"));
    CHECK(report.first->reference_op == "aten::relu");
    CHECK(report.compared == 4);
  }
}

TEST_CASE("differences are measured against the largest finite value") {
  const auto of = [](std::vector<double> actual, std::vector<double> expected) {
    return largest_difference(at::tensor(actual), at::tensor(expected));
  };
  CHECK(of({1, 2}, {1, 4}).absolute == 2);
  CHECK(of({1, 2}, {1, 4}).relative == 0.5);
  CHECK(of({NAN, -INFINITY}, {NAN, -INFINITY}).relative == 0);
  CHECK(std::isinf(of({NAN, 1}, {1, 1}).relative));
  CHECK(std::isinf(of({1}, {1, 1}).relative));
  CHECK(largest_difference(at::empty({0}), at::empty({0})).relative == 0);
  const auto complex = at::complex(at::ones({2}), at::ones({2}));
  CHECK(largest_difference(complex, at::conj(complex)).absolute == 2);
}

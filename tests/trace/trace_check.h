// Tracing code and comparing the program with eager at several sizes.
#pragma once

#include <doctest/doctest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "transporters/export/module_call.h"
#include "transporters/registry/registry.h"
#include "transporters/runners/interpreter.h"
#include "transporters/trace/tracer.h"

namespace transporters::test {

using Tensors = std::vector<at::Tensor>;

// Traces `module` with `samples`, whose dims are given per input; the shape rules are checked on the way.
template <typename Module>
Program trace_module(Module& module, const Tensors& samples, const std::vector<std::vector<Dim>>& dims,
                     TraceNotes* notes = nullptr, TraceOptions options = {}) {
  const TracedModule traced = traced_module(module);
  std::vector<TraceInput> inputs;
  for (size_t i = 0; i < samples.size(); ++i)
    inputs.push_back({"x" + std::to_string(i), samples[i], i < dims.size() ? dims[i] : std::vector<Dim>{}});
  options.check_shape_rules = true;
  for (OpPatch& patch : Registry::global().op_patches("dynamo")) options.patches.push_back(std::move(patch));
  Program program = trace(traced.forward, inputs, traced.state, options, notes);
  verify(program);
  return program;
}

// A module made of a function, for code without parameters.
template <typename Function>
struct FunctionModule : torch::nn::Module {
  explicit FunctionModule(Function function) : function(std::move(function)) {}
  template <typename... T>
    requires std::is_invocable_v<Function, const T&...>
  auto forward(const T&... inputs) {
    return function(inputs...);
  }
  Function function;
};

inline double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  const auto x = a.to(at::kDouble), y = b.to(at::kDouble);
  return ((x - y).abs().max() / y.abs().max().clamp_min(1e-6)).item<double>();
}

// Runs the program and the module on each set of inputs: same types, same shapes, equal values.
template <typename Module>
void check_against_eager(const Program& program, Module& module, const std::vector<Tensors>& runs) {
  const torch::NoGradGuard no_grad;
  Interpreter interpreter(program);
  for (const Tensors& inputs : runs) {
    std::string shapes;
    for (const auto& input : inputs) shapes += (shapes.empty() ? "" : ", ") + c10::str(input.sizes());
    CAPTURE(shapes);
    Tensors for_eager;
    for (const auto& input : inputs) for_eager.push_back(input.clone());
    const TraceResult expected = traced_module(module).forward(for_eager);
    const auto actual = interpreter.run(inputs);
    REQUIRE(actual.size() == expected.outputs.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      const at::Tensor output = actual[i].toTensor();
      CHECK(output.sizes().vec() == expected.outputs[i].tensor.sizes().vec());
      CHECK(std::string(c10::toString(output.scalar_type())) ==
            c10::toString(expected.outputs[i].tensor.scalar_type()));
      CHECK(relative_difference(output, expected.outputs[i].tensor) <= 1e-4);
    }
  }
}

}  // namespace transporters::test

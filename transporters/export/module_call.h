// Calling any torch::nn module's forward with a list of tensors, and flattening what it returns.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "transporters/error.h"
#include "transporters/trace/tracer.h"

namespace transporters {

namespace detail {

// ── Flattening results: tensors, optionals, tuples, pairs, vectors and arrays of them, nested ──

inline TreeSpec flatten_result(const at::Tensor& tensor, const std::string& path, std::vector<TraceOutput>& out) {
  out.push_back({path, tensor});
  return TreeSpec::leaf();
}

template <typename T>
TreeSpec flatten_result(const std::optional<T>& value, const std::string& path, std::vector<TraceOutput>& out) {
  if (value) return flatten_result(*value, path, out);
  out.push_back({path, {}});
  return TreeSpec::leaf();
}

template <typename... T>
TreeSpec flatten_result(const std::tuple<T...>& values, const std::string& path, std::vector<TraceOutput>& out);
template <typename A, typename B>
TreeSpec flatten_result(const std::pair<A, B>& values, const std::string& path, std::vector<TraceOutput>& out);

template <typename T>
TreeSpec flatten_result(const std::vector<T>& values, const std::string& path, std::vector<TraceOutput>& out) {
  std::vector<TreeSpec> children;
  for (size_t i = 0; i < values.size(); ++i)
    children.push_back(flatten_result(values[i], path + "." + std::to_string(i), out));
  return TreeSpec::list(std::move(children));
}

template <typename... T>
TreeSpec flatten_result(const std::tuple<T...>& values, const std::string& path, std::vector<TraceOutput>& out) {
  std::vector<TreeSpec> children;
  size_t index = 0;
  std::apply(
      [&](const auto&... value) {
        (children.push_back(flatten_result(value, path + "." + std::to_string(index++), out)), ...);
      },
      values);
  return TreeSpec::tuple(std::move(children));
}

template <typename A, typename B>
TreeSpec flatten_result(const std::pair<A, B>& values, const std::string& path, std::vector<TraceOutput>& out) {
  return flatten_result(std::tie(values.first, values.second), path, out);
}

// ── Calling forward with as many tensors as there are inputs ──

template <size_t>
using TensorAt = const at::Tensor&;

constexpr size_t kMaxForwardInputs = 12;

template <typename Module, size_t... I>
constexpr bool accepts(std::index_sequence<I...>) {
  return requires(Module& module, TensorAt<I>... tensors) { module.forward(tensors...); };
}

template <typename Module, size_t Count = 0>
TraceResult call_forward(Module& module, const std::vector<at::Tensor>& inputs) {
  if constexpr (Count <= kMaxForwardInputs) {
    if (inputs.size() == Count) {
      if constexpr (accepts<Module>(std::make_index_sequence<Count>())) {
        return [&]<size_t... I>(std::index_sequence<I...>) {
          TraceResult result;
          result.spec = flatten_result(module.forward(inputs[I]...), "output", result.outputs);
          return result;
        }(std::make_index_sequence<Count>());
      }
    } else {
      return call_forward<Module, Count + 1>(module, inputs);
    }
  }
  throw Error(ErrorContext{.stage = "trace"}, "the module's forward does not take " + std::to_string(inputs.size()) +
                                                  " tensors; give one sample for each of its inputs");
}

}  // namespace detail

// A module as the tracer needs it: something to call, its parameters and buffers by dotted name, its class.
struct TracedModule {
  TracedFunction forward;
  std::vector<TraceState> state;
  std::string class_name;
  bool is_training = false;  // it, or a module inside it
};

// Parameters and buffers of a module under their dotted names.
std::vector<TraceState> module_state(const torch::nn::Module& module);
// Whether the module or one inside it is in training mode.
bool any_is_training(const torch::nn::Module& module);

// Wraps a module whose forward takes tensors: by reference, as torch::nn's module holders, or as shared_ptr. The module
// must outlive the result unless it is a holder or a pointer.
template <typename Module>
  requires std::is_base_of_v<torch::nn::Module, Module>
TracedModule traced_module(Module& module) {
  return {[&module](const std::vector<at::Tensor>& inputs) { return detail::call_forward(module, inputs); },
          module_state(module), module.name(), any_is_training(module)};
}

template <typename Module>
TracedModule traced_module(const std::shared_ptr<Module>& module) {
  TracedModule traced = traced_module(*module);
  traced.forward = [module](const std::vector<at::Tensor>& inputs) { return detail::call_forward(*module, inputs); };
  return traced;
}

template <typename Contained>
TracedModule traced_module(const torch::nn::ModuleHolder<Contained>& holder) {
  return traced_module(std::shared_ptr<Contained>(holder.ptr()));
}

}  // namespace transporters

// Base of every module here: a torch::nn::Module that knows its path in the model.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transporters/layers/weights.h"
#include "transporters/trace/module_scope.h"

namespace transporters {

// Modules take their tensors from `weights` while they are constructed, and register members under the names that
// transformers' checkpoints use. Their forward opens a `ModuleScope scope(path())` first.
class Module : public torch::nn::Module {
 public:
  explicit Module(const Weights& weights) : path_(weights.path()) {}
  // "model.layers.0.self_attn"; "" for the whole model.
  const std::string& path() const { return path_; }

 protected:
  // A parameter of that name and these sizes. It is no leaf of autograd: weights are read-only.
  at::Tensor parameter(const Weights& weights, const std::string& name, at::IntArrayRef sizes) {
    return register_parameter(name, weights.take(name, sizes), /*requires_grad=*/false);
  }
  // A member module made from `arguments`, taking its tensors under `name`.
  template <typename M, typename... Arguments>
  std::shared_ptr<M> member(const Weights& weights, const std::string& name, Arguments&&... arguments) {
    return register_module(name, std::make_shared<M>(weights.at(name), std::forward<Arguments>(arguments)...));
  }
  // A ModuleList of `count` modules; `make(weights, index)` makes one.
  template <typename M, typename Make>
  std::vector<std::shared_ptr<M>> members(const Weights& weights, const std::string& name, int64_t count, Make make) {
    auto list = register_module(name, std::make_shared<torch::nn::ModuleListImpl>());
    std::vector<std::shared_ptr<M>> modules;
    for (int64_t i = 0; i < count; ++i) {
      modules.push_back(make(weights.at(name).at(i), i));
      list->push_back(modules.back());
    }
    return modules;
  }

 private:
  std::string path_;
};

}  // namespace transporters

#include "transporters/layers/activations.h"

#include <cmath>

#include "transporters/error.h"

namespace transporters {
namespace {

using at::Tensor;

struct Row {
  const char* name;
  Activation function;
};

Tensor gelu(const Tensor& x) { return at::gelu(x); }
Tensor gelu_tanh(const Tensor& x) { return at::gelu(x, "tanh"); }
Tensor silu(const Tensor& x) { return at::silu(x); }

constexpr Row kActivations[] = {
    {"gelu", gelu},
    {"gelu_10", [](const Tensor& x) { return at::clamp(at::gelu(x), -10, 10); }},
    {"gelu_accurate", gelu_tanh},
    {"gelu_fast", gelu_tanh},
    {"gelu_new", gelu_tanh},
    {"gelu_python", gelu},
    {"gelu_python_tanh", gelu_tanh},
    {"gelu_pytorch_tanh", gelu_tanh},
    {"hardswish", [](const Tensor& x) { return at::hardswish(x); }},
    {"laplace", [](const Tensor& x) { return 0.5 * (1.0 + at::erf((x - 0.707107) / (0.282095 * std::sqrt(2.0)))); }},
    {"leaky_relu", [](const Tensor& x) { return at::leaky_relu(x); }},
    {"linear", [](const Tensor& x) { return x; }},
    {"mish", [](const Tensor& x) { return at::mish(x); }},
    {"quick_gelu", [](const Tensor& x) { return x * at::sigmoid(1.702 * x); }},
    {"relu", [](const Tensor& x) { return at::relu(x); }},
    {"relu2", [](const Tensor& x) { return at::square(at::relu(x)); }},
    {"relu6", [](const Tensor& x) { return at::clamp(x, 0, 6); }},
    {"sigmoid", [](const Tensor& x) { return at::sigmoid(x); }},
    {"silu", silu},
    {"sqrtsoftplus", [](const Tensor& x) { return at::sqrt(at::softplus(x)); }},
    {"swish", silu},
    {"tanh", [](const Tensor& x) { return at::tanh(x); }},
};

}  // namespace

Activation activation(const Config& config, const std::string& key, const std::string& missing) {
  const std::string name = config.string(key, missing);
  std::vector<std::string> known;
  for (const auto& row : kActivations) {
    if (name == row.name) return row.function;
    known.emplace_back(row.name);
  }
  const std::string near = did_you_mean(name, known);
  std::string list;
  for (const auto& other : known) list += (list.empty() ? "" : ", ") + other;
  config.fail(key, "names an unknown activation '" + name + "'" + (near.empty() ? "; known are " + list : near));
}

}  // namespace transporters

// Traces code that runs ATen ops into a Program: nothing is computed, no activation is allocated.
//
// The code runs once on fake tensors while a dispatcher mode sees every op (see ARCHITECTURE.md, "Tracing"). Code that
// reads sizes as plain integers (Tensor::size, Tensor::sizes), as much of torch::nn does, is traced a second time with
// other example sizes: integers that followed the sizes become symbolic, and any that can't be told is an error.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transporters/export/dim.h"
#include "transporters/graph/program.h"
#include "transporters/registry/op_patch.h"
#include "transporters/symbolic/shape_env.h"

namespace transporters {

struct TraceInput {
  std::string path;   // "input_ids", "cache.layers.0.keys"
  at::Tensor sample;  // only its sizes and dtype are read; undefined for a leaf that is the constant below
  // One per dim, or empty: all static. Auto dims may carry a name; equal names with equal sample sizes are one symbol.
  std::vector<Dim> dims;
  Argument constant = None{};  // None, a number or a string, which the signature records
};

struct TraceState {
  std::string name;  // "model.embed_tokens.weight"
  at::Tensor tensor;
  InputKind kind = InputKind::Parameter;  // or Buffer
  bool persistent = true;
};

struct TraceOutput {
  std::string path;            // "logits"
  at::Tensor tensor;           // undefined: the output is the constant below
  Argument constant = None{};  // None, a number (symbolic sizes included) or a string
};

struct TraceOptions {
  bool prefer_deferred_runtime_asserts_over_guards = false;
  // Ops kept whole besides the built-in list, and ops of that list to decompose all the same, by full name.
  std::set<std::string> preserve;
  std::set<std::string> decompose;
  // Replacements of ATen ops while tracing.
  std::vector<OpPatch> patches;
  // Answer questions that only data decides (`if mask.all()`, `range(lengths.max())`) as for the samples, which are
  // then computed with as far as it takes; the program asserts that the data it gets has the same answers. Otherwise
  // such questions are errors.
  bool answer_from_samples = false;
  // The user's source line that runs now ("modeling_llama.py:120"), for nodes and messages; "" when it is not known.
  std::function<std::string()> source;
  // The number that a 0-dim tensor made of one stands for, where the caller knows it better than the tensor's bytes do
  // (a symbolic one); nullopt otherwise.
  std::function<std::optional<c10::Scalar>(const at::Tensor&)> wrapped_number;
  // Compare every shape rule's answer with ATen's meta kernel at the example sizes (slow; for tests).
  bool check_shape_rules = false;
};

// Notes of a trace that a user should see: "axis 'x_dim1' was fixed to 7 by aten::view at net.2".
using TraceNotes = std::vector<std::string>;

struct TraceResult {
  std::vector<TraceOutput> outputs;
  TreeSpec spec;  // how the outputs nest
};

using TracedFunction = std::function<TraceResult(const std::vector<at::Tensor>& inputs)>;

// Runs `function` on fakes of the `inputs` that have samples and returns the program. Tensors of `state` become
// parameters and buffers, other real tensors that the code reads become constants. Not reentrant; one trace a thread at
// a time. Throws Error (stage "trace") naming the op and the module path, and what `function` throws.
Program trace(const TracedFunction& function, const std::vector<TraceInput>& inputs,
              const std::vector<TraceState>& state, const TraceOptions& options = {}, TraceNotes* notes = nullptr);

}  // namespace transporters

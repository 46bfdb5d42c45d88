// The dispatcher's side of tracing: sees every op, decides how it enters the graph, records it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/symbolic/shape_env.h"
#include "transporters/trace/concrete_sizes.h"
#include "transporters/trace/tracer.h"
#include "transporters/trace/value_evaluator.h"

namespace transporters {

// One trace. While a Recorder is active on a thread, ATen calls of that thread are recorded into its graph.
class Recorder {
 public:
  Recorder(Graph& graph, std::shared_ptr<symbolic::ShapeEnv> env, const TraceOptions& options);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Runs code with recording on.
  void run(const std::function<void()>& code);

  // A functional fake for a graph input.
  at::Tensor make_input(Value* value);
  // Makes a real tensor stand for a graph input from here on (parameters, buffers). `module` is the path of the module
  // that owns it: ops of modules that don't tell their path are placed by the parameters they read.
  void bind(const at::Tensor& real, Value* value, const std::string& module = "");

  // Says what an input or a parameter holds, for TraceOptions::answer_from_samples.
  void set_sample(const Value* value, const at::Tensor& sample) { sampled_.add(value, sample); }

  // The value that a tensor holds now, pending mutations through views included. Lifts unknown real tensors.
  Value* value_of(const at::Tensor& tensor);
  // The value that a bound real tensor holds now.
  Value* value_of_bound(const at::Tensor& real);

  // Real tensors that the code read and that nobody bound, with their graph inputs.
  struct Constant {
    at::Tensor tensor;
    Value* value;
  };
  const std::vector<Constant>& constants() const { return constants_; }

  // True once code has read a dynamic size as a plain integer; `decoder` then makes such integers symbolic again.
  bool read_concrete_sizes() const { return read_concrete_sizes_; }
  void set_decoder(const ConcreteSizes* decoder) { decoder_ = decoder; }

  // What the trace took for granted besides what the ShapeEnv knows.
  const TraceNotes& notes() const { return notes_; }
  void add_note(std::string note) { notes_.push_back(std::move(note)); }

  // "aten::view at model.layers.0".
  std::string location() const;
  ErrorContext error_context() const;

  // Called by the dispatcher's fallbacks.
  void intercept(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  void record(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  static Recorder* current();
  // The data of a tensor that depends on constants alone; nullopt when it depends on inputs.
  std::optional<at::Tensor> known_value(const at::Tensor& tensor);

 private:
  struct OpInfo {
    const OpSchema* schema;
    enum class Route : uint8_t { Decompose, Preserve, Functionalize, AnswerNow } route;
    const BoxedOp* patch = nullptr;
  };
  const OpInfo& info(const c10::OperatorHandle& op);
  bool rewritten_above(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  at::Tensor functional(const at::Tensor& tensor);
  void wrap_arguments(torch::jit::Stack& stack, size_t count);
  void record_whole(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  struct SymbolSource {
    const Value* value;
    std::optional<size_t> dim;  // of the value that the symbol is the size of; nullopt: the value is the number
  };
  void note_symbols(const Value* value);
  std::optional<int64_t> sample_of(std::string_view symbol);
  // Of a slice at places that the data gives, without computing what is sliced.
  std::optional<int64_t> slice_length(const SymbolSource& source);
  std::optional<symbolic::Number> ask_samples(const Expr& expr);
  bool answer_now(const c10::OperatorHandle& op, const OpSchema& schema, torch::jit::Stack& stack);
  bool preserve_applies(const OpSchema& schema, const torch::jit::Stack& stack) const;
  std::vector<ValueType> infer_types(const c10::OperatorHandle& op, const Node& node, const torch::jit::Stack& stack);
  std::vector<NamedArgument> to_arguments(const OpSchema& schema, const torch::jit::Stack& stack);
  Argument to_argument(const c10::IValue& value, const SchemaArgument& argument);
  Expr decode(int64_t value) const;
  Value* input_of(const at::Tensor& tensor);

  Graph& graph_;
  std::shared_ptr<symbolic::ShapeEnv> env_;
  const TraceOptions& options_;
  const ConcreteSizes* decoder_ = nullptr;
  std::function<void()> on_concrete_read_;
  bool read_concrete_sizes_ = false;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> bound_;  // real tensor -> its functional fake
  std::vector<at::Tensor> kept_alive_;                            // so that no address of bound_ is used again
  std::vector<Constant> constants_;
  ValueEvaluator known_;                                          // from constants alone
  ValueEvaluator sampled_;                                        // from the samples
  std::unordered_map<std::string, SymbolSource> symbol_sources_;  // of symbols that the graph computes
  TraceNotes notes_;
  std::unordered_map<c10::OperatorName, OpInfo> infos_;
  std::unordered_map<std::string, BoxedOp> patches_;
  std::unordered_map<std::string, int> patches_running_;
  std::unordered_map<const Value*, std::string> owner_;  // of a parameter: its module's path
  std::string current_op_;
};

}  // namespace transporters

// Programs into ONNX models: one translation per ATen op (onnx/ops), which says in ONNX ops what the node computes.
//
// A translation reads its arguments through a Lowering, emits ONNX nodes and returns one value per output of the node:
//
//   Outputs softmax(Lowering& l, const AtenNode& n) {
//     Value* x = l.input(n, "self", n.output()->dtype());
//     return {l.emit("Softmax", {x}, {{"axis", l.dim(n, "dim", "self")}})};
//   }
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transporters/error.h"
#include "transporters/graph/program.h"
#include "transporters/graph/symbol_sources.h"
#include "transporters/onnx/ir_fixes.h"
#include "transporters/onnx/model.h"

namespace transporters::onnx {

using AtenNode = transporters::Node;
using AtenValue = transporters::Value;
using Outputs = std::vector<Value*>;  // null for an output that has no uses and was not made

class Lowering;
// Throws Error for what the target can't express.
using OnnxTranslation = std::function<Outputs(Lowering&, const AtenNode&)>;
// By op name; "aten::add" stands for all its overloads that are not listed themselves.
using TranslationTable = std::map<std::string, OnnxTranslation, std::less<>>;

// Opset 20 by default: the first one with Gelu, still matched by every fusion of ONNX Runtime 1.32 (those know the op
// versions before 21 best), and what transformers' exporter writes.
constexpr int64_t kDefaultOpset = 20, kOldestOpset = 18, kNewestOpset = 24;

struct LowerOptions {
  int64_t opset = kDefaultOpset;
  // Translations of the user's own; they win over the built-in ones.
  TranslationTable translations = {};
  // Fixes of the user's own, after those of onnx/ir_fixes.
  std::vector<IrFix> ir_fixes = {};
  // Also run the fixes that only make the model smaller or faster.
  bool optimize = true;
};

// The program as an ONNX model. Inputs and outputs carry their leaf paths as names; a name that is both becomes
// "input.<name>" and "output.<name>", as in transformers' exports. A mutated buffer becomes such a pair, too: its input
// has the buffer's initial value as default, so that callers can carry the state from call to call or ignore it.
// Throws Error (stage "onnx") that lists every op without a translation, parameters without data, and what a
// translation can't express.
Model lower(const Program& program, const LowerOptions& options = {});

// The translation of an op in `table` (by full name, then by base name), or null.
const OnnxTranslation* find_translation(const TranslationTable& table, std::string_view op);
// The built-in translation of an op, by full name, then by base name; null when there is none.
const OnnxTranslation* find_translation(std::string_view op);
// The keys of the built-in table, sorted.
std::vector<std::string> translated_ops();

class Lowering {
 public:
  Lowering(const Program& program, Model& model, int64_t opset);
  Lowering(const Lowering&) = delete;
  Lowering& operator=(const Lowering&) = delete;

  const Program& program() const { return program_; }
  Model& model() const { return model_; }
  int64_t opset() const { return opset_; }

  // ── A node's arguments ──
  // The tensor argument, converted to `dtype` where given. A number that stands where the schema has a tensor or Scalar
  // becomes a constant of that type (without one: of the type torch gives it).
  Value* input(const AtenNode& node, std::string_view argument, std::optional<ScalarType> dtype = std::nullopt);
  // Null for None.
  Value* input_or_null(const AtenNode& node, std::string_view argument, std::optional<ScalarType> dtype = std::nullopt);
  // A Tensor[] argument.
  std::vector<Value*> inputs(const AtenNode& node, std::string_view argument,
                             std::optional<ScalarType> dtype = std::nullopt);
  // The value that a value of the program became. Parameters become initializers at their first use.
  Value* value(const AtenValue* value);
  // value[index] of a parameter, buffer or constant as an initializer of its own, a view of the same bytes; null for
  // what is computed or fed.
  Value* parameter_row(const AtenValue* value, int64_t index);
  // A dimension argument counted from the front.
  int64_t dim(const AtenNode& node, std::string_view argument, std::string_view tensor = "self") const;
  // A list of dimensions counted from the front; all of them when the list is empty or None.
  std::vector<int64_t> dims(const AtenNode& node, std::string_view argument, std::string_view tensor = "self") const;
  // The type torch computes in for these arguments: tensors by rank class and category, numbers by category.
  // https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
  ScalarType result_type(const AtenNode& node, std::initializer_list<std::string_view> arguments) const;

  // ── Emitting ──
  Value* emit(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {});
  Outputs emit_many(std::string_view op, std::vector<Value*> inputs, Attributes attributes, size_t outputs);
  Value* cast(Value* value, ScalarType dtype);
  // What is computed once and read by many nodes (a mask's bias in every layer): the value made at the first call with
  // this key. The key must name all that the value depends on.
  Value* once(const std::string& key, const std::function<Value*()>& make);
  // Runs `body` with emit() going into a new subgraph, and returns it; `body` adds inputs and outputs itself.
  std::shared_ptr<Graph> subgraph(std::string_view name, const std::function<void(Graph&)>& body);

  // ── Constants, each stored once ──
  Value* constant(const TensorData& data);
  Value* scalar(double value, ScalarType dtype);
  Value* integer(int64_t value, ScalarType dtype = ScalarType::Long);
  Value* vector(const std::vector<int64_t>& values);  // 1-D int64
  Value* vector(const std::vector<double>& values, ScalarType dtype);
  // A tensor with one value everywhere; for small ones, the value is stored for each element.
  Value* filled(double value, ScalarType dtype, std::vector<int64_t> dims);
  // The elements of a small constant of the given torch type, else nullopt.
  template <typename T>
  static std::optional<std::vector<T>> elements(const Value* value);

  // ── Sizes ──
  // A symbolic size as a 1-D tensor of one int64, as a scalar, or as a scalar of another type.
  Value* size_vector(const Expr& size);
  Value* size(const Expr& size);
  Value* number(const Expr& number, ScalarType dtype);
  // Sizes as one 1-D int64 tensor: constants where they can be, otherwise parts joined by Concat.
  Value* shape(std::span<const Expr> sizes);
  // True when the ranges of the symbols make it so.
  bool is_at_least(const Expr& size, int64_t bound) const;
  symbolic::Range bounds(const Expr& size) const;

  // ── Layout ──
  // A tensor of sizes `from`, given the sizes `to`; shape arithmetic is avoided where 0 and -1 of Reshape say the same.
  Value* reshape(Value* value, std::span<const Expr> from, std::span<const Expr> to);
  Value* expand(Value* value, std::span<const Expr> from, std::span<const Expr> to);
  Value* unsqueeze(Value* value, const std::vector<int64_t>& dims);
  Value* squeeze(Value* value, const std::vector<int64_t>& dims);
  Value* transpose(Value* value, const std::vector<int64_t>& order);
  // value[..., start:end:step, ...] along `dim`; the bounds are given as 1-D tensors of one element.
  Value* slice(Value* value, int64_t dim, Value* start, Value* end, int64_t step = 1);
  Value* slice(Value* value, int64_t dim, const Expr& start, const Expr& end, int64_t step = 1);
  Value* concat(const std::vector<Value*>& values, int64_t dim);
  Value* reduce(std::string_view op, Value* value, const std::vector<int64_t>& dims, bool keepdims);

  // Error for the node at hand, with op, module path and stage.
  Error error(const AtenNode& node, const std::string& message) const;

  // The program's type of a value: its torch dtype. Throws InternalError when `value` has no torch type.
  static ScalarType dtype(const Value* value);

 private:
  friend class ProgramLowering;

  Value* add_constant(ScalarType dtype, std::vector<int64_t> dims, std::string bytes);
  Value* evaluate(const Expr& expr);
  Value* evaluate_symbol(const std::string& name);
  Value* evaluate_number(const Expr& expr);
  Value* parameter(const InputSpec& spec);
  Value* initializer(const TensorData& data, const std::string& name);
  const Program& program_;
  Model& model_;
  int64_t opset_;
  Graph* current_;                  // where emit() adds nodes
  const AtenNode* node_ = nullptr;  // being translated
  std::unordered_map<const AtenValue*, Value*> values_;
  std::map<std::string, Value*> constants_;       // by type, dimensions and bytes
  std::map<std::string, Value*> parameters_;      // by where their bytes lie: tied ones are one
  std::unordered_map<Expr, Value*> expressions_;  // as 1-D tensors of one element
  std::map<std::string, Value*> once_;
  std::map<std::string, SymbolSource> sources_;
  symbolic::ShapeEnv ranges_;
};

}  // namespace transporters::onnx

// The walk over a program: inputs, nodes in order, outputs.
#include <algorithm>
#include <set>

#include "transporters/onnx/ir_fixes.h"
#include "transporters/onnx/lower.h"
#include "transporters/onnx/op_table.h"
#include "transporters/onnx/shared_buffers.h"
#include "transporters/onnx/size_ranges.h"

namespace transporters::onnx {
namespace {

// Names of the model's inputs and outputs, with the pairs of names that stand on both sides told apart.
struct IoNames {
  std::vector<std::string> inputs;   // parallel to Program::inputs; empty for constants and for state that is not fed
  std::vector<std::string> outputs;  // parallel to Program::outputs; empty for what is no output
};

IoNames name_io(const Program& program) {
  IoNames names;
  std::set<std::string> user_outputs, mutated, in, out;
  for (const auto& output : program.outputs) {
    if (output.kind == OutputKind::UserOutput) user_outputs.insert(output.target);
    if (output.kind == OutputKind::BufferMutation) mutated.insert(output.target);
  }
  for (const auto& input : program.inputs) {
    const bool is_fed = input.kind == InputKind::UserInput || mutated.contains(input.target);
    names.inputs.push_back(is_fed && input.value ? input.target : "");
    if (!names.inputs.back().empty()) in.insert(input.target);
  }
  for (const auto& output : program.outputs) {
    // Constant leaves are in the result's description, not in the graph; symbolic sizes are computed.
    const auto* expr = std::get_if<Expr>(&output.constant);
    const bool is_made = output.value != nullptr || (expr && !expr->is_constant());
    // A model that returns the cache it mutated gives the new value once, under the returned name.
    const bool is_repeated = output.kind == OutputKind::UserInputMutation && user_outputs.contains(output.target);
    // A tensor that is the whole result has an empty path.
    const std::string name = output.target.empty() ? "output" : output.target;
    names.outputs.push_back(is_made && !is_repeated ? name : "");
    if (!names.outputs.back().empty()) out.insert(name);
  }
  for (auto& name : names.inputs) {
    if (out.contains(name)) name = "input." + name;
  }
  for (auto& name : names.outputs) {
    if (in.contains(name)) name = "output." + name;
  }
  return names;
}

Shape to_shape(const std::vector<Expr>& sizes) {
  Shape shape;
  for (const Expr& size : sizes) {
    const auto constant = size.as_integer();
    shape.push_back(constant ? Dim::of(*constant) : Dim::named(size.str()));
  }
  return shape;
}

DataType data_type(const ValueType& type) {
  if (const auto* tensor = std::get_if<TensorType>(&type)) return to_data_type(tensor->dtype);
  switch (std::get<NumberType>(type).expr.type()) {
    case symbolic::Type::Integer:
      return DataType::INT64;
    case symbolic::Type::Boolean:
      return DataType::BOOL;
    case symbolic::Type::Real:
      return DataType::FLOAT;
  }
  throw InternalError("unknown number type");
}

bool is_complex(const AtenValue* value) { return value->is_tensor() && c10::isComplexType(value->dtype()); }

// Complex tensors are pairs of reals.
Shape shape_of(const ValueType& type) {
  const auto* tensor = std::get_if<TensorType>(&type);
  if (tensor == nullptr) return {};
  Shape shape = to_shape(tensor->sizes);
  if (c10::isComplexType(tensor->dtype)) shape.push_back(Dim::of(2));
  return shape;
}

}  // namespace

class ProgramLowering {
 public:
  ProgramLowering(const Program& program, Model& model, const LowerOptions& options)
      : program_(program), model_(model), options_(options), lowering_(program, model, options.opset) {}

  void run() {
    check_translations();
    check_data();
    const IoNames names = name_io(program_);
    for (size_t i = 0; i < program_.inputs.size(); ++i) add_input(program_.inputs[i], names.inputs[i]);
    for (const auto& name : names.outputs) {
      if (!name.empty()) model_.graph->reserve(name);
    }
    for (const AtenNode& node : *program_.graph) translate(node);
    assert_conditions();
    // What the caller asked for first, then the state that was changed.
    for (const bool is_user : {true, false}) {
      for (size_t i = 0; i < program_.outputs.size(); ++i) {
        const bool is_user_output = program_.outputs[i].kind == OutputKind::UserOutput;
        if (!names.outputs[i].empty() && is_user_output == is_user) add_output(program_.outputs[i], names.outputs[i]);
      }
    }
    for (const auto& [name, range] : program_.ranges) {
      model_.metadata[kRangePrefix + name] = range_text(range);
    }
  }

 private:
  const OnnxTranslation* find(const AtenNode& node) const {
    if (const OnnxTranslation* own = find_translation(options_.translations, node.op())) return own;
    return find_translation(node.op());
  }

  // All missing ops at once, each with where it is used.
  void check_translations() const {
    std::map<std::string, std::vector<std::string>> missing;
    for (const AtenNode& node : *program_.graph) {
      if (!find(node)) missing[node.op()].push_back(node.module_path);
    }
    if (missing.empty()) return;
    std::string text = missing.size() == 1 ? "no ONNX translation for " : "no ONNX translations for ";
    bool first = true;
    for (const auto& [op, modules] : missing) {
      text += (first ? "'" : "; '") + op + "'";
      if (!modules.front().empty()) text += " at " + modules.front();
      if (modules.size() > 1) text += " and " + std::to_string(modules.size() - 1) + " more";
      text += did_you_mean(op, translated_ops());
      first = false;
    }
    text += "; decompose the op, or give a translation of your own";
    throw Error({.stage = "onnx"}, text);
  }

  void check_data() const {
    std::string missing;
    size_t count = 0;
    for (const auto& input : program_.inputs) {
      if (input.kind == InputKind::UserInput ||
          (input.value->uses().empty() && !program_.graph->is_output(input.value))) {
        continue;
      }
      const auto entry = program_.state.find(input.target);
      const bool has_data =
          entry != program_.state.end() && (entry->second.data != nullptr || entry->second.numel() == 0);
      if (has_data) continue;
      if (++count <= 5) missing += (missing.empty() ? "'" : ", '") + input.target + "'";
    }
    if (count == 0) return;
    if (count > 5) missing += " and " + std::to_string(count - 5) + " more";
    throw Error(
        {.stage = "onnx"},
        "no data for " + missing + "; load these parameters (they may still be on the meta device) before exporting");
  }

  void add_input(const InputSpec& spec, const std::string& name) {
    if (name.empty()) return;
    const ValueType& type = spec.value->type();
    if (is_complex(spec.value)) {
      throw Error({.stage = "onnx"}, "input '" + name +
                                         "' is complex, which ONNX Runtime can't take; give its real and "
                                         "imaginary parts (torch.view_as_real) and join them in the model");
    }
    Value* value = model_.graph->add_input(name, data_type(type), shape_of(type));
    if (spec.kind != InputKind::UserInput) value->initializer = Tensor::of(program_.state.at(spec.target));
    lowering_.values_[spec.value] = value;
  }

  void translate(const AtenNode& node) {
    for (const AtenValue* output : node.outputs()) {
      if (!is_complex(output)) continue;
      if (!reads_pairs(node.op()) || program_.graph->is_output(output)) {
        throw lowering_.error(node,
                              "makes a complex tensor ('" + output->name() +
                                  "'), which ONNX's ops can't take; compute with real and imaginary parts instead");
      }
    }
    const AtenNode* const outer = std::exchange(lowering_.node_, &node);
    Node* const last = last_node();
    Outputs outputs;
    try {
      outputs = (*find(node))(lowering_, node);
    } catch (const Error& error) {
      if (!error.context().op.empty() && !error.context().stage.empty()) throw;
      throw lowering_.error(node, error.message());
    }
    if (outputs.size() < node.outputs().size()) outputs.resize(node.outputs().size());
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const AtenValue* output = node.outputs()[i];
      if (outputs[i] == nullptr) {
        if (!output->uses().empty() || program_.graph->is_output(output)) {
          throw lowering_.error(node, "output " + std::to_string(i) + " is used, but has no ONNX form");
        }
        continue;
      }
      Value* value = outputs[i];
      if (output->is_tensor()) value = lowering_.cast(value, c10::toRealValueType(output->dtype()));
      lowering_.values_[output] = value;
      describe(value, *output);
    }
    lowering_.node_ = outer;
    name_nodes(last, node);
  }

  // The program's name and type, for a value that this node made and that has none of its own.
  void describe(Value* value, const AtenValue& output) {
    if (value->producer() == nullptr || value->shape) return;
    value->shape = shape_of(output.type());
    model_.graph->rename(value, output.name());
  }

  Node* last_node() const { return model_.graph->nodes().empty() ? nullptr : model_.graph->nodes().back().get(); }

  void name_nodes(Node* last, const AtenNode& node) {
    for (Node* made = last ? last->next() : model_.graph->front(); made; made = made->next()) {
      made->name = (node.module_path.empty() ? "" : node.module_path + "/") +
                   (made->outputs().empty() ? made->op : made->output()->name());
    }
  }

  void add_output(const OutputSpec& spec, const std::string& name) {
    Graph& graph = *model_.graph;
    Value* value = spec.value ? lowering_.value(spec.value) : lowering_.size(std::get<Expr>(spec.constant));
    value = asserting(value, spec);
    const bool needs_copy = graph.is_output(value) || value->producer() == nullptr;
    if (needs_copy) {
      Node* copy = graph.insert(nullptr, "Identity", {value}, {}, {"copy"});
      copy->name = name;
      copy->output()->type = value->type;
      value = copy->output();
    }
    value->shape = spec.value ? shape_of(spec.value->type()) : Shape{};
    graph.rename_to_reserved(value, name);
    graph.add_output(value);
  }

  // Conditions on sizes and data that the traced code took for granted. ONNX has no op that stops a run, but reading
  // past the end of a constant does: the zero that is read becomes part of an output.
  void assert_conditions() {
    Value* holds = nullptr;
    for (const AtenNode& node : *program_.graph) {
      const Expr* condition = node.is("aten::_assert_scalar") ? std::get_if<Expr>(&node.get("self")) : nullptr;
      if (condition == nullptr || !is_told(*condition) || is_range(*condition)) continue;
      Value* next = lowering_.number(*condition, ScalarType::Bool);
      holds = holds ? lowering_.emit("And", {holds, next}) : next;
    }
    if (holds == nullptr) return;
    Value* violated = lowering_.cast(lowering_.emit("Not", {holds}), ScalarType::Long);
    zero_ = lowering_.emit("Gather", {lowering_.vector(std::vector<int64_t>{0}), violated});
  }

  // Whether every symbol's value can be had.
  bool is_told(const Expr& expr) const {
    for (const std::string& symbol : expr.symbols())
      if (!lowering_.sources_.contains(symbol)) return false;
    return true;
  }

  // What narrows one size of an input, like the ranges in the metadata: no file holds those, a size below often works.
  bool is_range(const Expr& condition) const {
    const auto symbols = condition.symbols();
    return condition.kind() != symbolic::Kind::Equal && symbols.size() == 1 &&
           lowering_.sources_.at(*symbols.begin()).value->producer() == nullptr;
  }

  // The output, made to need the conditions on the data.
  Value* asserting(Value* value, const OutputSpec& spec) {
    if (zero_ == nullptr || spec.value == nullptr || !spec.value->is_tensor()) return value;
    const ScalarType dtype = spec.value->dtype();
    Value* zero = lowering_.cast(std::exchange(zero_, nullptr), dtype);
    return lowering_.emit(dtype == ScalarType::Bool ? "Or" : "Add", {value, zero});
  }

  const Program& program_;
  Model& model_;
  const LowerOptions& options_;
  Lowering lowering_;
  Value* zero_ = nullptr;  // a number that can be read when the conditions hold
};

Model lower(const Program& program, const LowerOptions& options) {
  if (options.opset < kOldestOpset || options.opset > kNewestOpset) {
    throw Error({.stage = "onnx"}, "opset " + std::to_string(options.opset) + " is not supported; choose one from " +
                                       std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset));
  }
  Model model;
  model.ir_version = ir_version_for(options.opset);
  model.opsets[""] = options.opset;
  if (!program.architecture.empty()) model.graph->name = program.architecture;
  ProgramLowering(program, model, options).run();
  for (const IrFix& fix : ir_fixes())
    if (options.optimize || fix.is_needed) fix.apply(model);
  for (const IrFix& fix : options.ir_fixes) fix.apply(model);
  record_shared_buffers(model);
  return model;
}

}  // namespace transporters::onnx

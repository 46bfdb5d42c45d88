#include "transporters/dynamo/functionalize.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

[[noreturn]] void fail(const Node& node, const std::string& message) {
  throw Error({.stage = "dynamo", .op = node.op(), .module = node.module_path}, message);
}

// The argument that a view looks at, and whose memory its output shares.
std::optional<std::string> viewed_argument(const OpSchema& schema) {
  if (schema.is_mutable()) return std::nullopt;
  for (const SchemaReturn& r : schema.returns)
    for (const SchemaArgument& argument : schema.arguments)
      if (!r.alias_set.empty() && argument.alias_set == r.alias_set && argument.kind == ArgumentKind::Tensor)
        return argument.name;
  return std::nullopt;
}

// Ops that give their input back where that already is as asked, and a copy otherwise.
enum class Sharing : uint8_t { Always, Never, Unknown };
Sharing sharing(const Node& node) {
  static const std::unordered_set<std::string_view> kMaybe = {"aten::reshape", "aten::contiguous", "aten::flatten",
                                                              "aten::to",      "aten::reshape_as", "aten::type_as"};
  const std::string_view base = node.schema().base_name();
  if (!kMaybe.contains(base.substr(0, base.find('.')))) return Sharing::Always;
  const Value* from = node.tensor("self");
  const Value* to = node.output();
  if (from->dtype() != to->dtype()) return Sharing::Never;
  if (node.try_get("copy") != nullptr && node.boolean("copy")) return Sharing::Never;
  return from->tensor().is_contiguous() ? Sharing::Always : Sharing::Unknown;
}

// Norms in training mode move their running statistics, which their schemas do not say.
bool moves_statistics(const Node& node) {
  static const std::unordered_map<std::string_view, const char*> kModes = {{"aten::batch_norm", "training"},
                                                                           {"aten::native_batch_norm", "training"},
                                                                           {"aten::instance_norm", "use_input_stats"}};
  const auto mode = kModes.find(node.op());
  return mode != kModes.end() && node.boolean(mode->second) && node.tensor_or_null("running_mean") != nullptr;
}

class Functionalizer {
 public:
  explicit Functionalizer(Program& program) : program_(program), graph_(*program.graph) {}

  void run() {
    const bool needed = std::any_of(graph_.begin(), graph_.end(), [](const Node& node) {
      return node.schema().is_mutable() || moves_statistics(node);
    });
    if (!needed) return;
    for (Node* node = graph_.front(); node != nullptr;) {
      Node* const next = node->next();
      visit(node);
      node = next;
    }
    finish();
  }

 private:
  // How a value was made from the tensor whose memory it shares.
  struct View {
    Value* root = nullptr;
    Node* op = nullptr;       // null for the root itself
    Value* source = nullptr;  // what `op` views, itself a view or the root
    size_t output = 0;
    Sharing sharing = Sharing::Always;
  };
  // The value that now stands for one of the original graph, and the writes to its root that it has seen.
  struct Current {
    Value* value;
    int version;
  };

  const View& view_of(Value* value) { return views_.try_emplace(value, View{.root = value}).first->second; }
  Value* original(Value* value) const {
    const auto found = same_as_.find(value);
    return found == same_as_.end() ? value : found->second;
  }

  // What `value` of the original graph is at this point.
  Value* latest(Value* value, Node* before) {
    value = original(value);
    const View view = view_of(value);
    const int version = versions_[view.root];
    const auto known = current_.find(value);
    if (known != current_.end() && known->second.version == version) return known->second.value;
    if (known == current_.end() && version == created_[value]) return value;
    if (view.op == nullptr) throw InternalError("a written tensor without a current value");
    if (view.sharing == Sharing::Unknown)
      fail(*view.op, "its input is written to later, and whether its output shares that memory depends on the layout");
    Value* made = apply(view, latest(view.source, before), before);
    current_[value] = {made, version};
    return made;
  }

  // The view taken again, of another value.
  Value* apply(const View& view, Value* of, Node* before) {
    std::vector<NamedArgument> arguments(view.op->arguments().begin(), view.op->arguments().end());
    for (NamedArgument& argument : arguments)
      if (argument.name == *viewed_argument(view.op->schema())) argument.value = of;
    std::vector<ValueType> types;
    for (const Value* output : view.op->outputs()) types.push_back(output->type());
    return copy_place(graph_.insert(before, view.op->op(), std::move(arguments), std::move(types)), *view.op)
        ->outputs()[view.output];
  }

  static Node* copy_place(Node* made, const Node& from) {
    made->module_path = from.module_path;
    made->source = from.source;
    return made;
  }

  void visit(Node* node) {
    std::vector<NamedArgument> arguments(node->arguments().begin(), node->arguments().end());
    const bool writes = node->schema().is_mutable();
    const auto viewed = viewed_argument(node->schema());
    Value* target = nullptr;
    Value* source = nullptr;
    for (NamedArgument& argument : arguments) {
      const bool written = node->schema().arguments[*node->schema().find(argument.name)].is_write;
      if (auto* value = std::get_if<Value*>(&argument.value)) {
        if (written && target != nullptr) fail(*node, "writes to several tensors, which is not supported");
        if (written) target = original(*value);
        if (viewed == argument.name) source = original(*value);
        *value = latest(*value, node);
      } else if (auto* values = std::get_if<Values>(&argument.value)) {
        if (written) fail(*node, "writes to a list of tensors, which is not supported");
        for (Value*& element : *values)
          if (element != nullptr) element = latest(element, node);
      }
    }
    if (moves_statistics(*node)) return move_statistics(node, std::move(arguments));
    if (!writes) {
      for (const NamedArgument& argument : arguments)
        if (!(argument.value == node->get(argument.name))) node->set(argument.name, argument.value);
      record_view(node, source);
      return;
    }
    if (target == nullptr) fail(*node, "writes to no tensor that the graph has");
    Value* written = functional(node, std::move(arguments), target);
    write(target, written, node);
    for (Value* output : node->outputs()) same_as_[output] = target;
    written_nodes_.push_back(node);
  }

  void move_statistics(Node* node, std::vector<NamedArgument> arguments) {
    if (node->op() != "aten::batch_norm")
      fail(*node,
           "changes its running statistics, which is not supported; call eval() on the module before exporting it");
    Value* const mean = original(node->tensor("running_mean"));
    Value* const variance = original(node->tensor("running_var"));
    std::erase_if(arguments, [](const NamedArgument& argument) { return argument.name == "cudnn_enabled"; });
    // Result, statistics of the batch, running statistics.
    Node* made = copy_place(
        graph_.insert(node, "aten::_native_batch_norm_legit_functional", std::move(arguments),
                      {node->output()->type(), mean->type(), variance->type(), mean->type(), variance->type()}),
        *node);
    write(mean, made->outputs()[3], node);
    write(variance, made->outputs()[4], node);
    same_as_[node->output()] = made->outputs()[0];
    written_nodes_.push_back(node);
  }

  // `source` is the value of the original graph that the node views; null when it views none.
  void record_view(Node* node, Value* source) {
    if (source != nullptr) {
      const Sharing shares = sharing(*node);
      if (shares != Sharing::Never)
        for (size_t i = 0; i < node->outputs().size(); ++i)
          views_[node->outputs()[i]] = {view_of(source).root, node, source, i, shares};
    }
    for (Value* output : node->outputs()) created_[output] = versions_[view_of(output).root];
  }

  // "aten::add_.Tensor" -> "aten::add.Tensor", "aten::__iand__.Tensor" -> "aten::__and__.Tensor".
  static std::string functional_name(const OpSchema& schema) {
    std::string base(schema.base_name());
    if (base.ends_with("__")) {
      const auto i = base.find("__i");
      if (i != std::string::npos) base.erase(i + 2, 1);
    } else if (base.ends_with("_")) {
      base.pop_back();
    }
    return schema.overload().empty() ? base : base + "." + std::string(schema.overload());
  }

  // The type of the functional form's result, before it is cast to the written tensor's.
  static ScalarType result_type(const Node& node, ScalarType self) {
    static const std::unordered_set<std::string_view> kComparisons = {
        "aten::eq_", "aten::ne_",          "aten::lt_",         "aten::le_",          "aten::gt_",
        "aten::ge_", "aten::logical_and_", "aten::logical_or_", "aten::logical_xor_", "aten::logical_not_"};
    static const std::unordered_set<std::string_view> kKeepsType = {
        "aten::copy_",        "aten::index_put_", "aten::masked_fill_", "aten::masked_scatter_", "aten::scatter_",
        "aten::scatter_add_", "aten::index_add_", "aten::index_copy_",  "aten::index_fill_",     "aten::fill_"};
    if (kComparisons.contains(node.schema().base_name())) return ScalarType::Bool;
    if (kKeepsType.contains(node.schema().base_name())) return self;
    ScalarType type = self;
    node.for_each_input([&](Value* value) {
      // Tensors without dimensions take part by category alone.
      const bool counts =
          value->is_tensor() && (value->rank() > 0 || c10::isFloatingType(value->dtype()) != c10::isFloatingType(self));
      if (counts) type = c10::promoteTypes(type, value->dtype());
    });
    return type;
  }

  // Puts the functional form before `node`, and gives its value in the written tensor's type.
  Value* functional(Node* node, std::vector<NamedArgument> arguments, Value* target) {
    const std::string name = functional_name(node->schema());
    const OpSchema* schema = find_schema(name);
    if (schema == nullptr || schema->is_mutable() || schema->returns.size() != 1)
      fail(*node, "writes to its input and has no functional form '" + name + "'");
    for (const NamedArgument& argument : arguments)
      if (!schema->find(argument.name)) fail(*node, "its functional form '" + name + "' has other arguments");
    TensorType type = target->tensor();
    const ScalarType wanted = type.dtype;
    type.dtype = result_type(*node, wanted);
    type.strides.clear();
    Node* made = copy_place(graph_.insert(node, name, std::move(arguments), {type}), *node);
    if (type.dtype == wanted) return made->output();
    type.dtype = wanted;
    return copy_place(graph_.insert(node, "aten::_to_copy", {{"self", made->output()}, {"dtype", wanted}}, {type}),
                      *node)
        ->output();
  }

  // Makes `written` the content of `target`, and of everything that shares its memory.
  void write(Value* target, Value* written, Node* before) {
    const View view = view_of(target);
    Value* whole = written;
    for (Value* part = target; view_of(part).op != nullptr;) {
      const View step = view_of(part);
      if (step.sharing == Sharing::Unknown)
        fail(*step.op, "its output is written to, and whether it shares its input's memory depends on the layout");
      whole = undo(step, latest(step.source, before), whole, before);
      part = step.source;
    }
    const int version = ++versions_[view.root];
    current_[view.root] = {whole, version};
    current_[target] = {written, version};
  }

  // `source` with the part that the view shows replaced.
  Value* undo(const View& view, Value* source, Value* part, Node* before) {
    const Node& op = *view.op;
    const std::string_view base = op.schema().base_name();
    const auto name = std::string(base.substr(base.find("::") + 2));
    const TensorType type{source->dtype(), source->sizes(), {}};
    const auto make = [&](std::string_view made, std::vector<NamedArgument> arguments) {
      return copy_place(graph_.insert(before, made, std::move(arguments), {type}), op)->output();
    };
    const auto given = [&](const char* argument) { return NamedArgument{argument, op.get(argument)}; };
    if (name == "select")
      return make("aten::select_scatter", {{"self", source}, {"src", part}, given("dim"), given("index")});
    if (name == "slice")
      return make("aten::slice_scatter",
                  {{"self", source}, {"src", part}, given("dim"), given("start"), given("end"), given("step")});
    if (name == "narrow") {
      const Expr start = op.size("start");
      return make(
          "aten::slice_scatter",
          {{"self", source}, {"src", part}, given("dim"), {"start", start}, {"end", start + op.size("length")}});
    }
    if (name == "diagonal")
      return make("aten::diagonal_scatter",
                  {{"self", source}, {"src", part}, given("offset"), given("dim1"), given("dim2")});
    if (name == "as_strided")
      return make("aten::as_strided_scatter",
                  {{"self", source}, {"src", part}, given("size"), given("stride"), given("storage_offset")});
    if (name == "transpose") return make("aten::transpose.int", {{"self", part}, given("dim0"), given("dim1")});
    if (name == "t" || name == "alias" || name == "detach") return make("aten::" + name, {{"self", part}});
    if (name == "permute") {
      const auto dims = op.integers("dims");
      const auto rank = static_cast<int64_t>(dims.size());
      std::vector<Expr> inverse(dims.size());
      for (int64_t i = 0; i < rank; ++i) {
        const int64_t dim = dims[static_cast<size_t>(i)];
        if (dim < -rank || dim >= rank) fail(op, "permutes dimensions that are not there");
        inverse[static_cast<size_t>(dim < 0 ? dim + rank : dim)] = Expr(i);
      }
      return make("aten::permute", {{"self", part}, {"dims", inverse}});
    }
    if (name == "unbind")
      return make("aten::select_scatter",
                  {{"self", source}, {"src", part}, given("dim"), {"index", Expr(static_cast<int64_t>(view.output))}});
    if (name == "split" || name == "split_with_sizes" || name == "chunk") {
      int64_t dim = op.integer("dim");
      const auto rank = static_cast<int64_t>(source->rank());
      if (dim < -rank || dim >= rank || part->rank() != source->rank())
        fail(op, "splits along a dimension that is not there");
      if (dim < 0) dim += rank;
      Expr start = 0;
      for (size_t i = 0; i < view.output; ++i) start = start + op.outputs()[i]->sizes().at(static_cast<size_t>(dim));
      return make("aten::slice_scatter", {{"self", source},
                                          {"src", part},
                                          {"dim", Expr(dim)},
                                          {"start", start},
                                          {"end", start + part->sizes().at(static_cast<size_t>(dim))}});
    }
    static const std::unordered_set<std::string> kReshapes = {"view",       "reshape",   "flatten",     "unflatten",
                                                              "squeeze",    "unsqueeze", "view_as",     "reshape_as",
                                                              "contiguous", "to",        "_unsafe_view"};
    if (kReshapes.contains(name) && source->dtype() == part->dtype())
      return make("aten::reshape", {{"self", part}, {"shape", source->sizes()}});
    fail(op, "is written through, which is not supported for this view");
  }

  void finish() {
    for (OutputSpec& output : program_.outputs)
      if (output.value != nullptr) output.value = latest(output.value, nullptr);
    std::vector<OutputSpec> mutations;
    for (const InputKind kind : {InputKind::Parameter, InputKind::Constant, InputKind::Buffer, InputKind::UserInput}) {
      for (const InputSpec& input : program_.inputs) {
        if (input.kind != kind || input.value == nullptr || versions_[input.value] == 0) continue;
        if (kind == InputKind::Parameter || kind == InputKind::Constant)
          throw Error({.stage = "dynamo"}, "the program writes to '" + input.target +
                                               "'; only buffers and inputs can change, register it as a buffer");
        mutations.push_back(
            {.kind = kind == InputKind::Buffer ? OutputKind::BufferMutation : OutputKind::UserInputMutation,
             .value = latest(input.value, nullptr),
             .target = input.target});
      }
    }
    program_.outputs.insert(program_.outputs.begin(), mutations.begin(), mutations.end());
    for (size_t i = graph_.outputs().size(); i-- > 0;) graph_.erase_output(i);
    for (const OutputSpec& output : program_.outputs)
      if (output.value != nullptr) graph_.add_output(output.value);
    // Later nodes first: they may use what earlier ones returned.
    for (auto node = written_nodes_.rbegin(); node != written_nodes_.rend(); ++node) graph_.erase(*node);
  }

  Program& program_;
  Graph& graph_;
  std::unordered_map<Value*, View> views_;
  std::unordered_map<Value*, Value*> same_as_;  // results of nodes that go, and what they are
  std::unordered_map<Value*, Current> current_;
  std::unordered_map<Value*, int> versions_;  // writes so far, by root
  std::unordered_map<Value*, int> created_;   // the root's version when the value was made
  std::vector<Node*> written_nodes_;
};

}  // namespace

void functionalize(Program& program) { Functionalizer(program).run(); }

}  // namespace transporters::dynamo

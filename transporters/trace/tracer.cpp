#include "transporters/trace/tracer.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "transporters/error.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/trace/recorder.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters {
namespace {

using symbolic::Range;
using symbolic::ShapeEnv;

// ── Symbols of the dynamic axes ──

struct AxisSymbol {
  std::string name;
  Range range;
  int64_t sample;
  bool explicit_dim;
  std::string source;
  std::string group;  // axes of one group get one example size
};

std::string identifier(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) text = "_" + text;
  return text;
}

std::string position(const TraceInput& input, size_t dim) { return input.path + " dim " + std::to_string(dim); }

// One symbol per name; which symbol each axis has.
struct AxisSymbols {
  std::vector<AxisSymbol> symbols;
  std::vector<std::vector<std::optional<size_t>>> of_axis;  // [input][dim]
};

AxisSymbols collect_symbols(const std::vector<TraceInput>& inputs) {
  AxisSymbols result;
  std::map<std::string, size_t> by_name;
  for (const TraceInput& input : inputs) {
    if (!input.sample.defined()) {
      result.of_axis.emplace_back();
      continue;
    }
    const auto sizes = input.sample.sizes();
    if (input.dims.size() > sizes.size())
      throw Error(ErrorContext{.stage = "dynamic shapes"},
                  "input '" + input.path + "' has " + std::to_string(sizes.size()) + " dims, but axes are given for " +
                      std::to_string(input.dims.size()));
    std::vector<std::optional<size_t>> of_input(sizes.size());
    for (size_t dim = 0; dim < input.dims.size(); ++dim) {
      const Dim& axis = input.dims[dim];
      if (axis.kind == Dim::Kind::Static) continue;
      const bool explicit_dim = axis.kind == Dim::Kind::Named;
      std::string name = identifier(axis.name.empty() ? input.path + "_dim" + std::to_string(dim) : axis.name);
      const Range range{axis.min, axis.max};
      if (range.min < 0 || range.min > range.max)
        throw Error(ErrorContext{.stage = "dynamic shapes"}, "Dim '" + name + "' has the empty range [" +
                                                                 std::to_string(range.min) + ", " +
                                                                 std::to_string(range.max) + "]");
      if (explicit_dim && !range.contains(sizes[dim]))
        throw Error(ErrorContext{.stage = "dynamic shapes"},
                    position(input, dim) + " has size " + std::to_string(sizes[dim]) +
                        " in the sample, outside of Dim('" + name + "', min=" + std::to_string(range.min) +
                        ", max=" + std::to_string(range.max) + "); widen the range or give another sample");
      auto found = by_name.find(name);
      if (found != by_name.end()) {
        AxisSymbol& known = result.symbols[found->second];
        if (known.sample == sizes[dim]) {
          known.range.min = std::max(known.range.min, range.min);
          known.range.max = std::min(known.range.max, range.max);
          of_input[dim] = found->second;
          continue;
        }
        if (explicit_dim)
          throw Error(ErrorContext{.stage = "dynamic shapes"},
                      "Dim '" + name + "' is " + std::to_string(known.sample) + " at " + known.source + " and " +
                          std::to_string(sizes[dim]) + " at " + position(input, dim) +
                          " in the sample; use two Dims, or a sample where they agree");
        name = identifier(input.path + "_" + name);
      }
      // Equal sample sizes at the same dim are likely one size seen twice: where an example must decide, they are
      // equal.
      std::string group = explicit_dim ? "name " + name : std::to_string(dim) + ":" + std::to_string(sizes[dim]);
      by_name[name] = result.symbols.size();
      of_input[dim] = result.symbols.size();
      result.symbols.push_back({name, range, sizes[dim], explicit_dim, position(input, dim), std::move(group)});
    }
    result.of_axis.push_back(std::move(of_input));
  }
  return result;
}

// Example sizes near the sample: a size of 0 or 1 says nothing about larger ones, so such axes get a size that no other
// axis has.
std::vector<int64_t> sample_hints(const std::vector<AxisSymbol>& symbols) {
  std::set<int64_t> used;
  for (const AxisSymbol& symbol : symbols) used.insert(symbol.sample);
  std::map<std::string, int64_t> by_group;
  std::vector<int64_t> hints;
  int64_t next = 2;
  for (const AxisSymbol& symbol : symbols) {
    int64_t hint = symbol.sample;
    if (hint < 2) {
      if (auto it = by_group.find(symbol.group); it != by_group.end()) {
        hint = it->second;
      } else {
        while (used.contains(next)) ++next;
        hint = next;
        used.insert(hint);
        by_group[symbol.group] = hint;
      }
      hint = std::clamp(hint, symbol.range.min, symbol.range.max);
    }
    hints.push_back(hint);
  }
  return hints;
}

// ── One run of the code ──

struct Attempt {
  Program program;
  std::shared_ptr<ShapeEnv> env;
  TraceNotes notes;
  bool read_concrete_sizes = false;
};

struct Job {
  const TracedFunction& function;
  const std::vector<TraceInput>& inputs;
  const std::vector<TraceState>& state;
  const TraceOptions& options;
  const AxisSymbols& axes;
};

TensorType static_type(const at::Tensor& tensor) {
  TensorType type{.dtype = tensor.scalar_type()};
  for (int64_t size : tensor.sizes()) type.sizes.emplace_back(size);
  return type;
}

// Adds the outputs: mutations of buffers, mutations of user inputs, then what the code returned.
void add_outputs(const Job& job, Recorder& recorder, const std::vector<at::Tensor>& fakes,
                 const std::vector<Value*>& user_values, const std::vector<TraceOutput>& outputs, const ShapeEnv& env,
                 Program& program) {
  Graph& graph = *program.graph;
  const auto add = [&](OutputSpec spec) {
    if (spec.value != nullptr) graph.add_output(spec.value);
    program.outputs.push_back(std::move(spec));
  };
  for (const InputSpec& input : std::vector<InputSpec>(program.inputs)) {
    if (input.kind != InputKind::Parameter && input.kind != InputKind::Buffer) continue;
    const auto state =
        std::find_if(job.state.begin(), job.state.end(), [&](const TraceState& s) { return s.name == input.target; });
    Value* now = recorder.value_of_bound(state->tensor);
    if (now == nullptr || now == input.value) continue;
    // A tied tensor is bound under its first name only.
    if (program.find_input(now) != nullptr) continue;
    if (input.kind == InputKind::Parameter)
      throw Error(ErrorContext{.stage = "trace"},
                  "the code writes to parameter '" + input.target + "'; only buffers may change during a call");
    add({.kind = OutputKind::BufferMutation, .value = now, .target = input.target});
  }
  for (size_t i = 0, next = 0; i < job.inputs.size(); ++i) {
    if (user_values[i] == nullptr) continue;
    Value* now = recorder.value_of(fakes[next++]);
    if (now == user_values[i]) continue;
    add({.kind = OutputKind::UserInputMutation, .value = now, .target = job.inputs[i].path});
  }
  for (const TraceOutput& output : outputs) {
    OutputSpec spec{.kind = OutputKind::UserOutput, .value = nullptr, .target = output.path};
    if (output.tensor.defined())
      spec.value = recorder.value_of(output.tensor);
    else if (const Expr* number = std::get_if<Expr>(&output.constant))
      spec.constant = env.simplify(*number);
    else
      spec.constant = output.constant;
    add(std::move(spec));
  }
}

// The expression with equalities and specialisations applied, and nothing that conditions say: for the conditions
// themselves, which would make each other true.
Expr resolve(const ShapeEnv& env, Expr expr) {
  std::unordered_map<std::string, Expr> replacements;
  for (const auto& equality : env.equalities()) replacements.emplace(equality.symbol, equality.by);
  for (const auto& fixed : env.specializations()) replacements.insert_or_assign(fixed.symbol, Expr(fixed.value));
  for (size_t i = 0; i <= replacements.size(); ++i) {  // what a symbol was replaced by may have been replaced since
    Expr next = expr.substitute(replacements);
    if (next == expr) break;
    expr = std::move(next);
  }
  return expr;
}

// Sizes written with symbols that were unified or fixed are brought to their final form.
void simplify_sizes(Graph& graph, const ShapeEnv& env) {
  // A symbol that the graph computes keeps its source, whatever conditions say of it: they are asserted of it.
  const auto is_computed = [&](const Expr& expr) { return expr.kind() == symbolic::Kind::Symbol && !env.hint(expr); };
  const auto simplify = [&](std::vector<Expr>& sizes) {
    for (Expr& size : sizes)
      if (!size.is_constant()) size = is_computed(resolve(env, size)) ? resolve(env, size) : env.simplify(size);
  };
  const auto simplify_type = [&](Value* value) {
    ValueType type = value->type();
    if (auto* tensor = std::get_if<TensorType>(&type)) {
      simplify(tensor->sizes);
      simplify(tensor->strides);
      if (tensor->strides == contiguous_strides(tensor->sizes)) tensor->strides.clear();
    } else {
      auto& number = std::get<NumberType>(type);
      number.expr = resolve(env, number.expr);
    }
    value->set_type(std::move(type));
  };
  for (Value* input : graph.inputs()) simplify_type(input);
  for (Node& node : graph) {
    const std::vector<NamedArgument> arguments(node.arguments().begin(), node.arguments().end());
    for (const NamedArgument& argument : arguments) {
      if (const Expr* expr = std::get_if<Expr>(&argument.value)) {
        if (!expr->is_constant()) node.set(argument.name, env.simplify(*expr));
      } else if (const auto* list = std::get_if<std::vector<Expr>>(&argument.value)) {
        std::vector<Expr> sizes = *list;
        simplify(sizes);
        node.set(argument.name, std::move(sizes));
      }
    }
    for (Value* output : node.outputs()) simplify_type(output);
  }
}

// Ranges of the symbols that are still in the graph, and the asserts as nodes.
// Whether the condition is false at the sizes of the example itself, which have other hints where they are 0 or 1.
bool contradicts_sample(const ShapeEnv& env, const Expr& condition) {
  const auto value = condition.evaluate([&](std::string_view name) -> std::optional<int64_t> {
    const auto* known = env.try_info(name);
    if (known == nullptr) return std::nullopt;
    return known->sample ? known->sample : known->hint;
  });
  const bool* truth = value ? std::get_if<bool>(&*value) : nullptr;
  return truth != nullptr && !*truth;
}

void record_constraints(Program& program, const ShapeEnv& env) {
  std::set<std::string> answers;
  for (const auto& answer : env.data_answers()) answers.insert(answer.condition.str());
  for (const symbolic::RuntimeAssert& assertion : env.runtime_asserts()) {
    // An answer must hold as it stands, but that for larger sizes which an example of size 1 got serves that example.
    const bool is_required = assertion.condition.kind() == symbolic::Kind::Equal ||
                             answers.contains(assertion.condition.str()) ||
                             !contradicts_sample(env, assertion.condition);
    const Expr condition = is_required ? resolve(env, assertion.condition) : env.simplify(assertion.condition);
    if (condition.as_boolean() == true) continue;
    program.graph->append(
        "aten::_assert_scalar",
        {{"self", condition}, {"assert_msg", "expected " + condition.str() + " (needed by " + assertion.where + ")"}},
        {});
  }
  std::set<std::string> used;
  const auto use = [&](const Expr& expr) {
    if (expr.is_constant()) return;
    for (const std::string& name : expr.symbols()) used.insert(name);
  };
  const auto use_type = [&](const Value* value) {
    if (value->is_tensor())
      for (const Expr& size : value->sizes()) use(size);
    else
      use(std::get<NumberType>(value->type()).expr);
  };
  for (Value* input : program.graph->inputs()) use_type(input);
  for (Node& node : *program.graph) {
    for (Value* output : node.outputs()) use_type(output);
    for (const NamedArgument& argument : node.arguments()) {
      if (const Expr* expr = std::get_if<Expr>(&argument.value)) use(*expr);
      if (const auto* list = std::get_if<std::vector<Expr>>(&argument.value))
        for (const Expr& expr : *list) use(expr);
    }
  }
  for (const std::string& name : used) {
    const Expr symbol = Expr::symbol(name);
    program.ranges[name] = env.bounds(symbol);
    if (auto hint = env.hint(symbol)) program.hints[name] = *hint;
  }
}

Attempt run(const Job& job, const std::vector<int64_t>& hints, bool concrete) {
  Attempt attempt;
  attempt.env = std::make_shared<ShapeEnv>(ShapeEnv::Options{
      .prefer_deferred_runtime_asserts_over_guards = job.options.prefer_deferred_runtime_asserts_over_guards});
  ShapeEnv& env = *attempt.env;
  Program& program = attempt.program;
  Graph& graph = *program.graph;

  std::vector<Expr> symbols;
  std::vector<ConcreteSizes::Symbol> decodable;
  std::map<std::string, Expr> by_group;
  for (size_t i = 0; i < job.axes.symbols.size(); ++i) {
    const AxisSymbol& axis = job.axes.symbols[i];
    // Plain integers can't tell two symbols of one example size apart: there they are one symbol.
    if (auto it = by_group.find(axis.group); concrete && it != by_group.end()) {
      symbols.push_back(it->second);
      continue;
    }
    symbols.push_back(env.add_symbol({.name = axis.name,
                                      .range = axis.range,
                                      .hint = hints[i],
                                      .sample = axis.sample,
                                      .source = axis.source,
                                      .explicit_dim = axis.explicit_dim}));
    by_group[axis.group] = symbols.back();
    decodable.push_back({symbols.back().name(), hints[i]});
  }
  const ConcreteSizes decoder(std::move(decodable));

  Recorder recorder(graph, attempt.env, job.options);
  if (concrete) recorder.set_decoder(&decoder);
  for (const TraceState& state : job.state) {
    Value* value = graph.add_input((state.kind == InputKind::Parameter ? "p_" : "b_") + identifier(state.name),
                                   static_type(state.tensor));
    const auto dot = state.name.rfind('.');
    recorder.set_sample(value, state.tensor);
    recorder.bind(state.tensor, value, dot == std::string::npos ? "" : state.name.substr(0, dot));
    program.inputs.push_back(
        {.kind = state.kind, .value = value, .target = state.name, .persistent = state.persistent});
  }
  std::vector<at::Tensor> fakes;
  std::vector<Value*> user_values;
  for (size_t i = 0; i < job.inputs.size(); ++i) {
    const TraceInput& input = job.inputs[i];
    if (!input.sample.defined()) {
      user_values.push_back(nullptr);
      continue;
    }
    TensorType type = static_type(input.sample);
    for (size_t dim = 0; dim < type.sizes.size(); ++dim)
      if (job.axes.of_axis[i][dim]) type.sizes[dim] = symbols[*job.axes.of_axis[i][dim]];
    Value* value = graph.add_input(identifier(input.path), type);
    user_values.push_back(value);
    if (!input.sample.is_meta()) recorder.set_sample(value, input.sample);
    fakes.push_back(recorder.make_input(value));
  }

  TraceResult result;
  try {
    recorder.run([&] {
      result = job.function(fakes);
      add_outputs(job, recorder, fakes, user_values, result.outputs, env, program);
    });
  } catch (const Error&) {
    attempt.read_concrete_sizes = recorder.read_concrete_sizes();
    if (!concrete && attempt.read_concrete_sizes) return attempt;  // to be tried again with sizes that can be told
    throw;
  } catch (const c10::Error& error) {
    attempt.read_concrete_sizes = recorder.read_concrete_sizes();
    if (!concrete && attempt.read_concrete_sizes) return attempt;
    throw Error(recorder.error_context(), error.what_without_backtrace());
  } catch (const std::exception&) {
    // What the caller's function throws in its own way: an error of ATen's may be behind it.
    attempt.read_concrete_sizes = recorder.read_concrete_sizes();
    if (!concrete && attempt.read_concrete_sizes) return attempt;
    throw;
  }
  attempt.read_concrete_sizes = recorder.read_concrete_sizes();
  attempt.notes = recorder.notes();

  // Signature: lifted constants stand between buffers and user inputs.
  for (const Recorder::Constant& constant : recorder.constants()) {
    program.inputs.push_back({.kind = InputKind::Constant, .value = constant.value, .target = constant.value->name()});
    program.state[constant.value->name()] = to_tensor_data(constant.tensor.contiguous());
  }
  for (size_t i = 0; i < job.inputs.size(); ++i)
    program.inputs.push_back({.kind = InputKind::UserInput,
                              .value = user_values[i],
                              .target = job.inputs[i].path,
                              .constant = job.inputs[i].constant});
  std::vector<Value*> order;
  for (const InputSpec& input : program.inputs)
    if (input.value != nullptr) order.push_back(input.value);
  graph.reorder_inputs(order);

  program.out_spec = std::move(result.spec);
  simplify_sizes(graph, env);
  record_constraints(program, env);
  return attempt;
}

// Two runs with different example sizes must have become the same program, or some integer did not follow the sizes.
void check_same(const Program& first, const Program& second) {
  const auto differing = [](const std::string& what, const Node& node) {
    return Error(ErrorContext{.stage = "trace", .op = node.op(), .module = node.module_path, .file = ""},
                 what +
                     " follows a dynamic size that the code read as a plain integer, in a way that can't be told; "
                     "read it with sym_size/sym_sizes there, or make the axis static");
  };
  auto b = second.graph->begin();
  for (Node& a : *first.graph) {
    if (b == second.graph->end() || b->op() != a.op()) throw differing("which op runs here", a);
    if (a.arguments().size() != b->arguments().size()) throw differing("the set of arguments", a);
    for (size_t i = 0; i < a.arguments().size(); ++i) {
      const Argument& x = a.arguments()[i].value;
      const Argument& y = b->arguments()[i].value;
      const bool values = std::holds_alternative<Value*>(x) || std::holds_alternative<Values>(x);
      if (x.index() != y.index() || (!values && x != y)) throw differing("argument '" + a.arguments()[i].name + "'", a);
    }
    ++b;
  }
}

}  // namespace

Program trace(const TracedFunction& function, const std::vector<TraceInput>& inputs,
              const std::vector<TraceState>& state, const TraceOptions& options, TraceNotes* notes) {
  const AxisSymbols axes = collect_symbols(inputs);
  const Job job{function, inputs, state, options, axes};
  Attempt attempt = run(job, sample_hints(axes.symbols), /*concrete=*/false);
  if (attempt.read_concrete_sizes) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    std::vector<std::string> groups;
    for (const AxisSymbol& symbol : axes.symbols) {
      ranges.emplace_back(symbol.range.min, symbol.range.max);
      groups.push_back(symbol.group);
    }
    attempt = run(job, prime_hints(ranges, groups, 0), /*concrete=*/true);
    const Attempt again = run(job, prime_hints(ranges, groups, 1), /*concrete=*/true);
    check_same(attempt.program, again.program);
    for (size_t i = 0; i < axes.symbols.size(); ++i)
      if (attempt.program.hints.contains(axes.symbols[i].name))
        attempt.program.hints[axes.symbols[i].name] = std::max<int64_t>(axes.symbols[i].sample, 2);
  }
  Program program = std::move(attempt.program);
  for (const TraceState& entry : state)
    if (!program.state.contains(entry.name)) program.state[entry.name] = to_tensor_data(entry.tensor);
  for (const TraceInput& input : inputs)
    if (input.sample.defined() && !input.sample.is_meta())
      program.example_inputs.push_back({input.path, to_tensor_data(input.sample)});
  if (notes != nullptr) {
    *notes = attempt.notes;
    for (const auto& fixed : attempt.env->specializations()) {
      const auto* info = attempt.env->try_info(fixed.symbol);
      notes->push_back("axis '" + fixed.symbol + "' (" + (info ? info->source : "") + ") was fixed to " +
                       std::to_string(fixed.value) + " by " + fixed.where);
    }
    for (const auto& answer : attempt.env->data_answers())
      notes->push_back("the data decides " + answer.where +
                       ": taken from the sample, and asserted when the program runs: " + answer.condition.str());
    for (const auto& equality : attempt.env->equalities())
      notes->push_back("axis '" + equality.symbol + "' equals " + equality.by.str() + ", as " + equality.where +
                       " needs");
  }
  return program;
}

}  // namespace transporters

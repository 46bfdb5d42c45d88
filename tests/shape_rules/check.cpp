#include "tests/shape_rules/check.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "tests/shape_rules/call.h"
#include "transporters/error.h"
#include "transporters/graph/ivalue_torch.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters::testing {
namespace {

using Assignment = std::map<std::string, int64_t, std::less<>>;

std::optional<symbolic::Number> evaluate(const Expr& expr, const Assignment& values) {
  return expr.evaluate([&](std::string_view name) -> std::optional<int64_t> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  });
}

std::optional<int64_t> evaluate_size(const Expr& expr, const Assignment& values) {
  const auto number = evaluate(expr, values);
  if (!number || !std::holds_alternative<int64_t>(*number)) return std::nullopt;
  return std::get<int64_t>(*number);
}

Expr constant(const symbolic::Number& number) {
  if (const auto* real = std::get_if<double>(&number)) return Expr::real(*real);
  if (const auto* boolean = std::get_if<bool>(&number)) return Expr::boolean(*boolean);
  return Expr(std::get<int64_t>(number));
}

Expr evaluate_to_constant(const Expr& expr, const Assignment& values) {
  const auto number = evaluate(expr, values);
  if (!number) throw Error("the test gives no value to " + expr.str());
  return constant(*number);
}

// ── ATen's answer ──

struct Answer {
  // One per output, lists flattened.
  std::vector<c10::IValue> values;
  bool is_real = false;  // computed on the CPU, because there is no meta kernel
};

class Concrete {
 public:
  Concrete(const Call& call, const Assignment& values, bool is_meta)
      : call_(call), values_(values), is_meta_(is_meta) {}

  torch::jit::Stack stack(const c10::FunctionSchema& schema) {
    torch::jit::Stack stack;
    const OpSchema& ours = get_schema(call_.op);
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto& argument = schema.arguments()[i];
      const ValueText* given = find(argument.name(), i);
      if (argument.name() == "device" && is_meta_) {
        stack.emplace_back(c10::Device(c10::kMeta));
      } else if (given) {
        stack.push_back(to_ivalue(*given, ours.arguments[i].kind));
      } else if (argument.default_value()) {
        stack.push_back(*argument.default_value());
      } else {
        stack.emplace_back();
      }
    }
    return stack;
  }

 private:
  const ValueText* find(const std::string& name, size_t position) const {
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      const auto& [given, value] = call_.arguments[i];
      if (given.empty() ? i == position : given == name) return &value;
    }
    return nullptr;
  }

  at::Tensor make(const TensorText& text) const {
    std::vector<int64_t> sizes, strides;
    for (const Expr& size : text.type.sizes) sizes.push_back(evaluate_size(size, values_).value());
    for (const Expr& stride : strides_of(text.type)) strides.push_back(evaluate_size(stride, values_).value());
    const auto options = at::TensorOptions().dtype(text.type.dtype);
    if (is_meta_) return at::empty_strided(sizes, strides, options.device(at::kMeta));
    const at::Tensor tensor = at::empty_strided(sizes, strides, options);
    if (!text.values.empty()) {
      tensor.copy_(at::tensor(text.values, at::kDouble).reshape(sizes));
    } else if (tensor.scalar_type() == at::kBool) {
      tensor.copy_(at::arange(tensor.numel()).remainder(2).reshape(sizes));
    } else if (tensor.is_floating_point() || tensor.is_complex()) {
      // Between 0 and 1, so that the values can be probabilities too.
      tensor.copy_(at::arange(tensor.numel(), at::kDouble).sin().mul(0.45).add(0.5).reshape(sizes));
      const bool square = sizes.size() >= 2 && sizes.back() == sizes[sizes.size() - 2] && needs_positive_definite();
      if (square) tensor.add_(at::eye(sizes.back(), at::kDouble).mul(10));
    } else {
      tensor.zero_();
    }
    return tensor;
  }

  bool needs_positive_definite() const {
    for (const auto* part : {"linalg", "cholesky", "inverse", "det", "lu", "solve"})
      if (call_.op.find(part) != std::string::npos) return true;
    return false;
  }

  c10::IValue to_ivalue(const ValueText& text, ArgumentKind kind) const {
    if (const auto* tensor = std::get_if<TensorText>(&text.value)) return make(*tensor);
    if (const auto* list = std::get_if<ListText>(&text.value)) return to_list(*list, kind);
    Argument argument = std::get<Argument>(text.value);
    if (const auto* expr = std::get_if<Expr>(&argument)) {
      argument = evaluate_to_constant(*expr, values_);
      if (kind == ArgumentKind::IntList) return std::vector<int64_t>{std::get<Expr>(argument).as_integer().value()};
      if (kind == ArgumentKind::FloatList)
        return std::vector<double>{static_cast<double>(std::get<Expr>(argument).as_integer().value())};
    }
    const bool is_number = !std::holds_alternative<None>(argument);
    const c10::IValue value = transporters::to_ivalue(argument, kind);
    if (kind != ArgumentKind::Tensor || !is_number) return value;
    at::Tensor wrapped = at::native::wrapped_scalar_tensor(value.toScalar());
    if (!is_meta_) return wrapped;
    // A copy counts as a tensor in promotion unless it is marked again.
    wrapped = wrapped.to(at::kMeta);
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
    return wrapped;
  }

  c10::IValue to_list(const ListText& list, ArgumentKind kind) const {
    if (kind == ArgumentKind::TensorList) {
      std::vector<at::Tensor> tensors;
      for (const auto& element : list) tensors.push_back(make(std::get<TensorText>(element.value)));
      return tensors;
    }
    if (kind == ArgumentKind::OptionalTensorList) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const auto& element : list) {
        const auto* tensor = std::get_if<TensorText>(&element.value);
        tensors.push_back(tensor ? std::optional(make(*tensor)) : std::nullopt);
      }
      return tensors;
    }
    if (kind == ArgumentKind::FloatList) {
      std::vector<double> reals;
      for (const auto& element : list) {
        const auto& argument = std::get<Argument>(element.value);
        const auto* real = std::get_if<double>(&argument);
        reals.push_back(real ? *real : static_cast<double>(*std::get<Expr>(argument).as_integer()));
      }
      return reals;
    }
    if (kind == ArgumentKind::BoolList) {
      c10::List<bool> booleans;
      for (const auto& element : list) booleans.push_back(std::get<bool>(std::get<Argument>(element.value)));
      return booleans;
    }
    std::vector<int64_t> integers;
    for (const auto& element : list) {
      const Expr& expr = std::get<Expr>(std::get<Argument>(element.value));
      integers.push_back(evaluate_to_constant(expr, values_).as_integer().value());
    }
    return integers;
  }

  const Call& call_;
  const Assignment& values_;
  bool is_meta_;
};

c10::OperatorHandle find_op(const std::string& name) {
  const size_t dot = name.find('.', name.find("::"));
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(), overload.c_str());
}

std::optional<Answer> ask_aten(const Call& call, const Assignment& values, bool computed, std::string* failure) {
  const auto op = find_op(call.op);
  for (const bool is_meta : {true, false}) {
    if (is_meta && computed) continue;
    try {
      torch::jit::Stack stack = Concrete(call, values, is_meta).stack(op.schema());
      op.callBoxed(stack);
      Answer answer;
      answer.is_real = !is_meta;
      for (auto& value : stack) {
        if (value.isTensorList()) {
          for (const at::Tensor& tensor : value.toTensorVector()) answer.values.emplace_back(tensor);
        } else if (value.isIntList()) {
          for (const int64_t number : value.toIntVector()) answer.values.emplace_back(number);
        } else {
          answer.values.push_back(value);
        }
      }
      return answer;
    } catch (const c10::Error& error) {
      if (failure) *failure += std::string(is_meta ? "meta: " : "; cpu: ") + error.what_without_backtrace();
    }
  }
  return std::nullopt;
}

// ── The rule's answer ──

Argument to_argument(const ValueText& text, ArgumentKind kind, const std::function<Value*(const TensorText&)>& add) {
  if (const auto* tensor = std::get_if<TensorText>(&text.value)) return add(*tensor);
  if (const auto* argument = std::get_if<Argument>(&text.value)) return *argument;
  const auto& list = std::get<ListText>(text.value);
  if (kind == ArgumentKind::TensorList || kind == ArgumentKind::OptionalTensorList) {
    Values values;
    for (const auto& element : list) {
      const auto* tensor = std::get_if<TensorText>(&element.value);
      values.push_back(tensor ? add(*tensor) : nullptr);
    }
    return values;
  }
  if (kind == ArgumentKind::FloatList) {
    std::vector<double> reals;
    for (const auto& element : list) {
      const auto& argument = std::get<Argument>(element.value);
      const auto* real = std::get_if<double>(&argument);
      reals.push_back(real ? *real : static_cast<double>(*std::get<Expr>(argument).as_integer()));
    }
    return reals;
  }
  if (kind == ArgumentKind::BoolList) {
    std::vector<bool> booleans;
    for (const auto& element : list) booleans.push_back(std::get<bool>(std::get<Argument>(element.value)));
    return booleans;
  }
  std::vector<Expr> exprs;
  for (const auto& element : list) exprs.push_back(std::get<Expr>(std::get<Argument>(element.value)));
  return exprs;
}

std::vector<ValueType> apply_rule(const Call& call, symbolic::ShapeEnv& env) {
  Graph graph;
  const OpSchema& schema = get_schema(call.op);
  std::vector<NamedArgument> arguments;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const auto& [name, text] = call.arguments[i];
    const auto position = name.empty() ? std::optional(i) : schema.find(name);
    if (!position || *position >= schema.arguments.size()) throw Error("the op has no argument '" + name + "'");
    const auto& argument = schema.arguments[*position];
    arguments.push_back({argument.name, to_argument(text, argument.kind, [&](const TensorText& tensor) {
                           return graph.add_input("x", tensor.type);
                         })});
  }
  return infer_types(*graph.append(call.op, std::move(arguments), {}), env);
}

// ── Variants of a call ──

void for_each_expr(ValueText& text, const std::function<void(Expr&, bool is_size)>& f) {
  if (auto* tensor = std::get_if<TensorText>(&text.value)) {
    for (auto& size : tensor->type.sizes) f(size, tensor->values.empty());
    for (auto& stride : tensor->type.strides) f(stride, false);
  } else if (auto* list = std::get_if<ListText>(&text.value)) {
    for (auto& element : *list) for_each_expr(element, f);
  } else if (auto* expr = std::get_if<Expr>(&std::get<Argument>(text.value))) {
    f(*expr, false);
  }
}

Call with_constants(Call call) {
  const Assignment values(call.examples.begin(), call.examples.end());
  for (auto& [name, text] : call.arguments)
    for_each_expr(text, [&](Expr& expr, bool) { expr = evaluate_to_constant(expr, values); });
  call.examples.clear();
  return call;
}

// Every constant size of 2 or more becomes a symbol; named sizes stay.
Call with_symbols(Call call) {
  int next = 0;
  for (auto& [name, text] : call.arguments) {
    for_each_expr(text, [&](Expr& expr, bool is_size) {
      const auto value = expr.as_integer();
      if (!is_size || !value || *value < 2) return;
      const std::string symbol = "d" + std::to_string(next++);
      call.examples[symbol] = *value;
      expr = Expr::symbol(symbol);
    });
  }
  return call;
}

bool has_strides(const Call& call) {
  for (const auto& [name, text] : call.arguments) {
    const auto* tensor = std::get_if<TensorText>(&text.value);
    if (tensor && !tensor->type.strides.empty()) return true;
  }
  return false;
}

void add_symbols(const Call& call, symbolic::ShapeEnv& env) {
  for (const auto& [name, example] : call.examples) {
    symbolic::SymbolInfo info;
    info.name = name;
    info.hint = example;
    info.source = "test size " + name;
    env.add_symbol(std::move(info));
  }
}

// ── Comparison ──

std::string shape_text(at::IntArrayRef sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

// "" when the rule's types are what ATen gave.
std::string difference(const Call& call, const std::vector<ValueType>& types, const Answer& answer,
                       const Assignment& values, const symbolic::ShapeEnv& env) {
  if (types.size() != answer.values.size()) {
    return std::to_string(types.size()) + " outputs, ATen gives " + std::to_string(answer.values.size());
  }
  const bool is_view = get_schema(call.op).is_view();
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string which = types.size() > 1 ? "output " + std::to_string(i) + ": " : "";
    const c10::IValue& expected = answer.values[i];
    if (const auto* number = std::get_if<NumberType>(&types[i])) {
      if (expected.isTensor()) return which + "a number, ATen gives a tensor";
      const auto value = evaluate(number->expr, values);
      const auto type = number->expr.type();
      const bool type_agrees = expected.isDouble() ? type == symbolic::Type::Real
                               : expected.isBool() ? type == symbolic::Type::Boolean
                                                   : type == symbolic::Type::Integer;
      if (!type_agrees) return which + "a number of another type than ATen's";
      if (value && expected.isInt() && std::get<int64_t>(*value) != expected.toInt())
        return which + number->expr.str() + ", ATen gives " + std::to_string(expected.toInt());
      if (value && expected.isBool() && std::get<bool>(*value) != expected.toBool())
        return which + number->expr.str() + ", ATen gives the opposite";
      continue;
    }
    const auto& type = std::get<TensorType>(types[i]);
    if (!expected.isTensor()) return which + "a tensor, ATen gives a number";
    const at::Tensor& tensor = expected.toTensor();
    if (!tensor.defined()) continue;
    const std::string both =
        to_text({type}) + ", ATen gives " + dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes());
    if (type.dtype != tensor.scalar_type()) return which + "dtype: " + both;
    if (type.sizes.size() != static_cast<size_t>(tensor.dim())) return which + "rank: " + both;
    for (size_t d = 0; d < type.sizes.size(); ++d) {
      const int64_t actual = tensor.size(static_cast<int64_t>(d));
      const auto size = evaluate_size(type.sizes[d], values);
      if (size ? *size != actual : !env.bounds(type.sizes[d]).contains(actual)) return which + "sizes: " + both;
    }
    if (!is_view || tensor.numel() == 0) continue;
    const auto strides = strides_of(type);
    for (size_t d = 0; d < strides.size(); ++d) {
      if (tensor.size(static_cast<int64_t>(d)) == 1) continue;
      const auto stride = evaluate_size(strides[d], values);
      if (stride && *stride != tensor.stride(static_cast<int64_t>(d)))
        return which + "strides: " + both + " with strides " + shape_text(tensor.strides());
    }
  }
  return "";
}

bool holds(const symbolic::ShapeEnv& env, const Assignment& values) {
  for (const auto& [name, value] : values) {
    const auto* info = env.try_info(name);
    if (info && !info->range.contains(value)) return false;
  }
  for (const auto& runtime_assert : env.runtime_asserts()) {
    const auto value = evaluate(runtime_assert.condition, values);
    if (value && std::holds_alternative<bool>(*value) && !std::get<bool>(*value)) return false;
  }
  return true;
}

// Values for the symbols that keep what the rule recorded; nullopt when this draw does not.
std::optional<Assignment> draw(const Call& call, const symbolic::ShapeEnv& env, int64_t least, std::mt19937& random) {
  Assignment free;
  for (const auto& [name, example] : call.examples) {
    // Some sizes must exceed others (a window, a kernel), so large examples are varied in proportion.
    std::uniform_int_distribution<int64_t> sizes(least, std::max<int64_t>(7, 2 * example));
    free[name] = sizes(random);
  }
  Assignment values;
  for (const auto& [name, example] : call.examples) {
    const auto value = evaluate_size(env.simplify(Expr::symbol(name)), free);
    if (!value || *value < least) return std::nullopt;
    values[name] = *value;
  }
  return holds(env, values) ? std::optional(values) : std::nullopt;
}

std::string outcome(const std::string& text, const std::string& mode, const std::string& message) {
  return text + " with " + mode + ": " + message;
}

// Runs the rule with the call's named sizes symbolic and compares at the examples, then at other sizes.
void check_symbolic(const std::string& text, const Call& call, const CheckOptions& options, bool strict,
                    const std::string& mode) {
  symbolic::ShapeEnv env;
  add_symbols(call, env);
  std::vector<ValueType> types;
  try {
    types = apply_rule(call, env);
  } catch (const std::exception& error) {
    FAIL_CHECK(outcome(text, mode, error.what()));
    return;
  }
  const Assignment examples(call.examples.begin(), call.examples.end());
  std::string failure;
  const auto answer = ask_aten(call, examples, options.computed, &failure);
  if (!answer) {
    FAIL_CHECK(outcome(text, mode, "ATen refuses: " + failure));
    return;
  }
  const std::string at_examples = difference(call, types, *answer, examples, env);
  CHECK_MESSAGE(at_examples.empty(), outcome(text, mode, at_examples));
  if (call.examples.empty()) return;
  if (strict) {
    CHECK_MESSAGE(env.specializations().empty(), outcome(text, mode, "a size was specialised"));
  }

  constexpr int kDraws = 40, kWanted = 5;
  std::mt19937 random(7);
  int compared = 0;
  for (int i = 0; i < kDraws && compared < kWanted; ++i) {
    const auto values = draw(call, env, options.least, random);
    if (!values || *values == examples) continue;
    const auto other = ask_aten(call, *values, options.computed, nullptr);
    if (!other) continue;
    ++compared;
    const std::string at_others = difference(call, types, *other, *values, env);
    std::string at;
    for (const auto& [name, value] : *values) at += " " + name + "=" + std::to_string(value);
    CHECK_MESSAGE(at_others.empty(), outcome(text, mode, "at" + at + ": " + at_others));
  }
  if (strict) CHECK_MESSAGE(compared > 0, outcome(text, mode, "ATen accepted no other sizes"));
}

}  // namespace

void check_call(std::string_view text, const CheckOptions& options) {
  const std::string shown(text);
  Call call;
  try {
    call = parse_call(text);
    check_symbolic(shown, with_constants(call), options, true, "constants");
  } catch (const std::exception& error) {
    FAIL_CHECK(outcome(shown, "constants", error.what()));
    return;
  }
  if (!call.examples.empty()) check_symbolic(shown, call, options, !options.may_specialize, "symbols");
  if (!options.all_symbolic || has_strides(call)) return;
  const Call symbolic = with_symbols(call);
  if (symbolic.examples.size() > call.examples.size())
    check_symbolic(shown, symbolic, options, false, "every size symbolic");
}

void check_calls(std::initializer_list<std::string_view> calls, const CheckOptions& options) {
  for (const auto call : calls) check_call(call, options);
}

std::vector<ValueType> run_rule(std::string_view text, symbolic::ShapeEnv& env) {
  const Call call = parse_call(text);
  for (const auto& [name, example] : call.examples) {
    if (env.try_info(name)) continue;
    symbolic::SymbolInfo info;
    info.name = name;
    info.hint = example;
    info.source = "test size " + name;
    env.add_symbol(std::move(info));
  }
  return apply_rule(call, env);
}

std::string to_text(const std::vector<ValueType>& types) {
  std::string text;
  const auto list = [](const std::vector<Expr>& exprs) {
    std::string result;
    for (size_t i = 0; i < exprs.size(); ++i) result += (i ? ", " : "") + exprs[i].str();
    return result;
  };
  for (const auto& type : types) {
    if (!text.empty()) text += ", ";
    if (const auto* number = std::get_if<NumberType>(&type)) {
      text += number->expr.str();
      continue;
    }
    const auto& tensor = std::get<TensorType>(type);
    text += dtype_text(tensor.dtype) + "[" + list(tensor.sizes) + "]";
    if (!tensor.strides.empty()) text += "{" + list(tensor.strides) + "}";
  }
  return text;
}

void check_error(std::string_view text, std::string_view expected) {
  symbolic::ShapeEnv env;
  try {
    const auto types = run_rule(text, env);
    FAIL_CHECK(std::string(text) << ": expected an error, got " << to_text(types));
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK_MESSAGE(message.find(expected) != std::string::npos, std::string(text) << ": " << message);
  }
}

}  // namespace transporters::testing

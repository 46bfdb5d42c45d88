#include "transporters/trace/probe.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "transporters/error.h"
#include "transporters/symbolic/sym_node.h"
#include "transporters/trace/fake_tensor.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters {
namespace {

using Assignment = std::map<std::string, int64_t, std::less<>>;

struct ConcreteType {
  ScalarType dtype;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

ErrorContext context(const Node& node) {
  return {.stage = "trace", .op = node.op(), .module = node.module_path, .file = ""};
}

std::optional<int64_t> evaluate(const Expr& expr, const Assignment& assignment) {
  const auto number = expr.evaluate([&](std::string_view name) -> std::optional<int64_t> {
    auto it = assignment.find(name);
    return it == assignment.end() ? std::nullopt : std::optional(it->second);
  });
  if (!number || !std::holds_alternative<int64_t>(*number)) return std::nullopt;
  return std::get<int64_t>(*number);
}

// Replaces fakes by meta tensors and symbolic numbers by plain ones; nullopt when a size has no value.
class Concretizer {
 public:
  explicit Concretizer(const Assignment& assignment) : assignment_(assignment) {}

  std::optional<c10::IValue> operator()(const c10::IValue& value) {
    if (value.isTensor()) return tensor(value.toTensor());
    if (value.isSymInt()) return wrap(evaluate(symbolic::to_expr(value.toSymInt()), assignment_));
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& element : value.toTensorVector()) {
        auto converted = tensor(element);
        if (!converted) return std::nullopt;
        list.push_back(converted->toTensor());
      }
      return c10::IValue(std::move(list));
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& element : value.toOptionalTensorVector()) {
        if (!element) {
          list.push_back(std::nullopt);
          continue;
        }
        auto converted = tensor(*element);
        if (!converted) return std::nullopt;
        list.push_back(converted->toTensor());
      }
      return c10::IValue(std::move(list));
    }
    if (value.isList() && !value.isIntList() && !value.isDoubleList() && !value.isBoolList()) {
      c10::List<int64_t> list;
      for (const c10::IValue& element : value.toListRef()) {
        if (element.isInt()) {
          list.push_back(element.toInt());
          continue;
        }
        if (!element.isSymInt()) return value;
        auto size = evaluate(symbolic::to_expr(element.toSymInt()), assignment_);
        if (!size) return std::nullopt;
        list.push_back(*size);
      }
      return c10::IValue(std::move(list));
    }
    if (value.isSymFloat() || value.isSymBool()) return std::nullopt;
    return value;
  }

 private:
  static std::optional<c10::IValue> wrap(std::optional<int64_t> value) {
    return value ? std::optional(c10::IValue(*value)) : std::nullopt;
  }

  std::optional<c10::IValue> tensor(const at::Tensor& tensor) {
    FakeTensorImpl* fake = as_fake(tensor);
    if (fake == nullptr) return c10::IValue(tensor);
    const TensorType& type = fake->value()->tensor();
    std::vector<int64_t> sizes, strides;
    for (const Expr& size : type.sizes) {
      auto value = evaluate(size, assignment_);
      if (!value) return std::nullopt;
      sizes.push_back(*value);
    }
    for (const Expr& stride : strides_of(type)) {
      auto value = evaluate(stride, assignment_);
      if (!value) return std::nullopt;
      strides.push_back(*value);
    }
    return c10::IValue(at::empty_strided(sizes, strides, at::TensorOptions().dtype(type.dtype).device(at::kMeta)));
  }

  const Assignment& assignment_;
};

// The meta kernel's answer; nullopt when it can't be asked at these sizes. `failure` takes the kernel's words.
std::optional<std::vector<ConcreteType>> ask(const c10::OperatorHandle& op, const Node& node,
                                             const torch::jit::Stack& stack, const Assignment& assignment,
                                             std::string* failure) {
  const c10::impl::ExcludeDispatchKeyGuard outside_trace(c10::DispatchKeySet(
      {c10::DispatchKey::TESTING_ONLY_GenericMode, c10::DispatchKey::Functionalize, c10::DispatchKey::Fake}));
  const size_t count = node.schema().arguments.size();
  torch::jit::Stack concrete;
  Concretizer concretize(assignment);
  std::optional<size_t> device;
  for (size_t i = 0; i < node.schema().arguments.size(); ++i)
    if (node.schema().arguments[i].kind == ArgumentKind::Device) device = i;
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    auto value = concretize(stack[i]);
    if (!value) return std::nullopt;
    concrete.push_back(std::move(*value));
  }
  if (device) concrete[*device] = c10::Device(c10::kMeta);
  try {
    op.callBoxed(concrete);
  } catch (const c10::Error& error) {
    if (failure != nullptr) *failure = error.what_without_backtrace();
    return std::nullopt;
  }
  std::vector<ConcreteType> types;
  const auto add = [&](const at::Tensor& t) { types.push_back({t.scalar_type(), t.sizes().vec(), t.strides().vec()}); };
  for (const c10::IValue& value : concrete) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) add(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& element : value.toTensorVector()) add(element);
    } else {
      return std::nullopt;  // a number: depends on data
    }
  }
  return types;
}

Assignment at_hints(const symbolic::ShapeEnv& env, int64_t shift = 0) {
  Assignment assignment;
  int64_t step = shift;
  for (const std::string& name : env.symbols()) {
    const auto hint = env.hint(Expr::symbol(name));
    if (!hint) continue;
    const auto range = env.bounds(Expr::symbol(name));
    int64_t value = *hint + step;
    if (value > range.max) value = std::max(range.min, *hint - step);
    assignment.emplace(name, value);
    step += shift;
  }
  return assignment;
}

std::vector<Expr> candidates(const Node& node) {
  std::vector<Expr> exprs;
  const auto add = [&](const Expr& expr) {
    if (!expr.is_constant() && std::find(exprs.begin(), exprs.end(), expr) == exprs.end()) exprs.push_back(expr);
  };
  node.for_each_input([&](Value* value) {
    if (value->is_tensor())
      for (const Expr& size : value->sizes()) add(size);
  });
  for (const NamedArgument& argument : node.arguments()) {
    if (const Expr* expr = std::get_if<Expr>(&argument.value)) add(*expr);
    if (const auto* list = std::get_if<std::vector<Expr>>(&argument.value))
      for (const Expr& expr : *list) add(expr);
  }
  return exprs;
}

// The simplest of: a constant, c*e + d, e1*e2*c for candidate sizes e, that gives `values` at the assignments.
std::optional<Expr> fit(const std::vector<int64_t>& values, const std::vector<Assignment>& assignments,
                        const std::vector<Expr>& sizes) {
  const auto matches = [&](const Expr& expr) {
    for (size_t i = 0; i < values.size(); ++i)
      if (evaluate(expr, assignments[i]) != values[i]) return false;
    return true;
  };
  if (matches(Expr(values[0]))) return Expr(values[0]);
  for (const Expr& size : sizes)
    if (matches(size)) return size;
  for (const Expr& size : sizes) {
    const auto first = evaluate(size, assignments[0]), second = evaluate(size, assignments[1]);
    if (!first || !second || *first == *second) continue;
    const int64_t rise = values[1] - values[0], run = *second - *first;
    if (rise % run == 0) {
      const Expr line = size * Expr(rise / run) + Expr(values[0] - rise / run * *first);
      if (matches(line)) return line;
    } else if (rise != 0 && run % rise == 0) {
      const Expr quotient = symbolic::floor_div(size, Expr(run / rise));
      const auto at_first = evaluate(quotient, assignments[0]);
      if (at_first && matches(quotient + Expr(values[0] - *at_first))) return quotient + Expr(values[0] - *at_first);
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t j = i; j < sizes.size(); ++j) {
      const Expr area = sizes[i] * sizes[j];
      const auto at_first = evaluate(area, assignments[0]);
      if (!at_first || *at_first == 0 || values[0] % *at_first != 0) continue;
      const Expr product = area * Expr(values[0] / *at_first);
      if (matches(product)) return product;
      if (matches(sizes[i] + sizes[j])) return sizes[i] + sizes[j];
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<ValueType> probe_types(const c10::OperatorHandle& op, const Node& node, const torch::jit::Stack& stack,
                                   symbolic::ShapeEnv& env) {
  // Shifts are distinct per symbol (shift, 2*shift, ...), so that sizes with equal hints come apart.
  const std::vector<int64_t> shifts = {0, 3, 7, 16};
  std::vector<Assignment> assignments;
  std::vector<std::vector<ConcreteType>> answers;
  std::string failure;
  for (int64_t shift : shifts) {
    Assignment assignment = at_hints(env, shift);
    auto answer = ask(op, node, stack, assignment, &failure);
    if (!answer) continue;
    assignments.push_back(std::move(assignment));
    answers.push_back(std::move(*answer));
  }
  if (answers.size() < 2 || (answers[0].empty() && !node.schema().returns.empty()))
    throw Error(context(node), "there is no shape rule for this op and its meta kernel gives no answer" +
                                   (failure.empty() ? std::string() : ": " + failure) +
                                   "; register a patch that replaces it");
  const std::vector<Expr> sizes = candidates(node);
  std::vector<ValueType> types;
  for (size_t output = 0; output < answers[0].size(); ++output) {
    TensorType type{.dtype = answers[0][output].dtype};
    for (size_t dim = 0; dim < answers[0][output].sizes.size(); ++dim) {
      std::vector<int64_t> values;
      for (const auto& answer : answers) {
        if (answer.size() != answers[0].size() || answer[output].sizes.size() != answers[0][output].sizes.size())
          throw Error(context(node), "the rank or number of its outputs depends on the sizes of its inputs");
        values.push_back(answer[output].sizes[dim]);
      }
      auto expr = fit(values, assignments, sizes);
      if (!expr)
        throw Error(context(node), "there is no shape rule for this op, and its output size in dim " +
                                       std::to_string(dim) + " follows no simple expression of its input sizes");
      type.sizes.push_back(std::move(*expr));
    }
    types.emplace_back(std::move(type));
  }
  return types;
}

void check_types(const c10::OperatorHandle& op, const Node& node, const torch::jit::Stack& stack,
                 const std::vector<ValueType>& types, symbolic::ShapeEnv& env) {
  const Assignment assignment = at_hints(env);
  const auto answer = ask(op, node, stack, assignment, nullptr);
  if (!answer) return;
  const auto fail = [&](const std::string& what) {
    throw InternalError("the shape rule of " + node.op() + " disagrees with ATen's meta kernel: " + what);
  };
  if (answer->size() != types.size())
    fail(std::to_string(types.size()) + " outputs, expected " + std::to_string(answer->size()));
  for (size_t i = 0; i < types.size(); ++i) {
    const auto* type = std::get_if<TensorType>(&types[i]);
    if (type == nullptr) fail("a number, expected a tensor");
    if (type->dtype != (*answer)[i].dtype)
      fail(std::string(c10::toString(type->dtype)) + ", expected " + c10::toString((*answer)[i].dtype));
    if (type->rank() != (*answer)[i].sizes.size()) fail("rank " + std::to_string(type->rank()));
    for (size_t dim = 0; dim < type->rank(); ++dim) {
      const auto size = evaluate(type->sizes[dim], assignment);
      if (size && *size != (*answer)[i].sizes[dim])
        fail("size " + type->sizes[dim].str() + " = " + std::to_string(*size) + " in dim " + std::to_string(dim) +
             ", expected " + std::to_string((*answer)[i].sizes[dim]));
    }
  }
}

}  // namespace transporters

// Symbolic sizes as ONNX values: Shape of the tensor that has them, and integer arithmetic.
//
// Every expression is held as a 1-D tensor of one element, the form that Shape gives and Concat, Slice and Expand take;
// scalars are made where an op wants one. An expression is computed once per model.
#include "transporters/onnx/lower.h"

namespace transporters::onnx {

using symbolic::Kind;

bool Lowering::is_at_least(const Expr& size, int64_t bound) const { return bounds(size).min >= bound; }

symbolic::Range Lowering::bounds(const Expr& size) const {
  for (const auto& symbol : size.symbols()) {
    // A symbol without a range is a size.
    if (ranges_.try_info(symbol) == nullptr) return {.min = 0};
  }
  return ranges_.bounds(size);
}

Value* Lowering::size_vector(const Expr& size) { return evaluate(size); }

Value* Lowering::size(const Expr& size) { return number(size, ScalarType::Long); }

Value* Lowering::number(const Expr& number, ScalarType dtype) {
  if (const auto value = number.as_integer()) return integer(*value, dtype);
  if (const auto value = number.as_boolean()) return integer(*value, dtype);
  if (const auto value = number.as_real()) return scalar(*value, dtype);
  return once("number " + number.str() + " " + c10::toString(dtype), [&] {
    if (number.kind() == Kind::Symbol) {
      const auto source = sources_.find(number.name());
      const bool is_number =
          source != sources_.end() && !source->second.dim && source->second.scale == 1 && source->second.offset == 0;
      if (is_number) return cast(value(source->second.value), dtype);
    }
    return cast(squeeze(evaluate(number), {0}), dtype);
  });
}

Value* Lowering::shape(std::span<const Expr> sizes) {
  std::string key = "shape";
  bool is_constant = true;
  for (const Expr& size : sizes) {
    key += " " + size.str() + ",";
    is_constant = is_constant && size.as_integer();
  }
  const auto make = [&] {
    std::vector<Value*> parts;
    std::vector<int64_t> run;  // constants that stand next to each other
    const auto end_run = [&] {
      if (!run.empty()) parts.push_back(vector(run));
      run.clear();
    };
    for (const Expr& size : sizes) {
      if (const auto constant = size.as_integer()) {
        run.push_back(*constant);
      } else {
        end_run();
        parts.push_back(evaluate(size));
      }
    }
    end_run();
    return parts.empty() ? vector(std::vector<int64_t>{}) : concat(parts, 0);
  };
  return is_constant ? make() : once(key, make);
}

Value* Lowering::evaluate(const Expr& expr) {
  if (const auto constant = expr.as_integer()) return vector(std::vector<int64_t>{*constant});
  const auto known = expressions_.find(expr);
  if (known != expressions_.end()) return known->second;
  Graph* const current = std::exchange(current_, model_.graph.get());
  const AtenNode* const node = std::exchange(node_, nullptr);
  Value* value = expr.kind() == Kind::Symbol ? evaluate_symbol(expr.name()) : evaluate_number(expr);
  if (!value->is_initializer() && value->producer()->output() == value) {
    model_.graph->rename(value, expr.kind() == Kind::Symbol ? "size/" + expr.name() : "size/" + expr.str());
  }
  current_ = current;
  node_ = node;
  return expressions_[expr] = value;
}

Value* Lowering::evaluate_symbol(const std::string& name) {
  const auto entry = sources_.find(name);
  if (entry == sources_.end()) {
    throw Error({.stage = "onnx"}, "the size '" + name + "' is needed, but no input or node tells its value");
  }
  const auto& [source, dim, scale, offset] = entry->second;
  Value* value = nullptr;
  if (dim) {
    const auto axis = static_cast<int64_t>(*dim);
    value = emit("Shape", {this->value(source)}, {{"start", axis}, {"end", axis + 1}});
  } else {
    value = emit("Reshape", {cast(this->value(source), ScalarType::Long), vector(std::vector<int64_t>{1})});
  }
  if (offset != 0) value = emit("Sub", {value, vector(std::vector<int64_t>{offset})});
  if (scale != 1) value = emit("Div", {value, vector(std::vector<int64_t>{scale})});  // without remainder
  return value;
}

Value* Lowering::evaluate_number(const Expr& expr) {
  const auto operands = expr.operands();
  const auto operand = [&](size_t index) { return evaluate(operands[index]); };
  // A real operand, as double.
  const auto real = [&](size_t index) {
    Value* value = operand(index);
    return cast(value, ScalarType::Double);
  };
  const bool is_real = expr.type() == symbolic::Type::Real;
  const auto fold = [&](std::string_view op) {
    Value* value = is_real ? real(0) : operand(0);
    for (size_t i = 1; i < operands.size(); ++i) value = emit(op, {value, is_real ? real(i) : operand(i)});
    return value;
  };
  const auto compare = [&](std::string_view op) {
    const bool any_real = operands[0].type() == symbolic::Type::Real || operands[1].type() == symbolic::Type::Real;
    return any_real ? emit(op, {real(0), real(1)}) : emit(op, {operand(0), operand(1)});
  };
  const auto to_integer = [&](std::string_view op) {
    return cast(op.empty() ? real(0) : emit(op, {real(0)}), ScalarType::Long);
  };
  switch (expr.kind()) {
    case Kind::Real:
      return vector(std::vector<double>{*expr.as_real()}, ScalarType::Double);
    case Kind::Boolean:
      return emit("Cast", {vector(std::vector<int64_t>{*expr.as_boolean()})}, {{"to", int64_t{9}}});
    case Kind::Add:
      return fold("Add");
    case Kind::Mul:
      return fold("Mul");
    case Kind::Pow:
      return fold("Pow");
    case Kind::Min:
      return fold("Min");
    case Kind::Max:
      return fold("Max");
    case Kind::FloorDiv:
      // ONNX rounds toward zero: the same unless a side is negative.
      if (is_at_least(operands[0], 0) && is_at_least(operands[1], 1)) return fold("Div");
      return emit("Div", {emit("Sub", {operand(0), emit("Mod", {operand(0), operand(1)})}), operand(1)});
    case Kind::Mod:
      return fold("Mod");
    case Kind::Floor:
      return to_integer("Floor");
    case Kind::Ceil:
      return to_integer("Ceil");
    case Kind::Round:
      return to_integer("Round");
    case Kind::Trunc:
      return to_integer("");
    case Kind::ToReal:
      return real(0);
    case Kind::TrueDiv:
      return emit("Div", {real(0), real(1)});
    case Kind::Sqrt:
      return emit("Sqrt", {real(0)});
    case Kind::Equal:
      return compare("Equal");
    case Kind::NotEqual:
      return emit("Not", {compare("Equal")});
    case Kind::Less:
      return compare("Less");
    case Kind::LessEqual:
      return compare("LessOrEqual");
    case Kind::And:
      return fold("And");
    case Kind::Or:
      return fold("Or");
    case Kind::Not:
      return emit("Not", {operand(0)});
    case Kind::Select:
      return emit("Where", {operand(0), is_real ? real(1) : operand(1), is_real ? real(2) : operand(2)});
    case Kind::Integer:
    case Kind::Symbol:
      break;
  }
  throw InternalError("no ONNX form for '" + expr.str() + "'");
}

}  // namespace transporters::onnx

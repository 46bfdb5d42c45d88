#include "transporters/onnx/ops/support.h"

#include <numeric>

namespace transporters::onnx {

std::vector<int64_t> iota(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

std::vector<int64_t> moved(int64_t rank, int64_t from, int64_t to) {
  auto order = iota(rank);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return order;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return result;
}

std::vector<Expr> broadcast(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  std::vector<Expr> result(std::max(a.size(), b.size()));
  for (size_t i = 1; i <= result.size(); ++i) {
    const Expr from_a = i <= a.size() ? a[a.size() - i] : Expr(1);
    const Expr from_b = i <= b.size() ? b[b.size() - i] : Expr(1);
    result[result.size() - i] = from_a.is(1) ? from_b : from_a;
  }
  return result;
}

Value* range(Lowering& l, const Expr& start, const Expr& end, int64_t step) {
  const auto first = start.as_integer(), last = end.as_integer();
  if (first && last && (*last - *first) / step <= 1024) {
    std::vector<int64_t> numbers;
    for (int64_t i = *first; step > 0 ? i < *last : i > *last; i += step) numbers.push_back(i);
    return l.vector(numbers);
  }
  return l.once("range " + start.str() + ", " + end.str() + ", " + std::to_string(step),
                [&] { return l.emit("Range", {l.size(start), l.size(end), l.integer(step)}); });
}

Value* truncate(Lowering& l, Value* value) {
  Value* is_negative = l.emit("Less", {value, l.scalar(0, Lowering::dtype(value))});
  return l.emit("Where", {is_negative, l.emit("Ceil", {value}), l.emit("Floor", {value})});
}

Value* floor_divide_integers(Lowering& l, Value* a, Value* b) {
  // Mod takes the divisor's sign, so the difference divides without remainder.
  return l.emit("Div", {l.emit("Sub", {a, l.emit("Mod", {a, b})}), b});
}

Value* wrap_index(Lowering& l, Value* index, const Expr& size) {
  const ScalarType dtype = Lowering::dtype(index);
  Value* from_end = l.emit("Add", {index, l.number(size, dtype)});
  return l.emit("Where", {l.emit("Less", {index, l.integer(0, dtype)}), from_end, index});
}

Value* along(Lowering& l, Value* value, int64_t dim, int64_t rank) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(dim)] = -1;
  return rank == 1 ? value : l.emit("Reshape", {value, l.vector(sizes)});
}

std::vector<int64_t> per_dimension(const AtenNode& node, std::string_view argument, size_t count) {
  auto list = node.integers(argument);
  if (list.size() == 1) list.resize(count, list[0]);
  return list;
}

}  // namespace transporters::onnx

#include "transporters/graph/argument.h"

#include <bit>
#include <functional>

namespace transporters {
namespace {

size_t mix(size_t seed, size_t hash) { return seed ^ (hash + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2)); }

bool identical(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

struct Hash {
  size_t operator()(const None&) const { return 0; }
  size_t operator()(Value* value) const { return std::hash<Value*>()(value); }
  size_t operator()(const Expr& expr) const { return expr.hash(); }
  size_t operator()(double value) const { return std::hash<uint64_t>()(std::bit_cast<uint64_t>(value)); }
  size_t operator()(bool value) const { return value ? 2 : 1; }
  size_t operator()(const std::string& text) const { return std::hash<std::string>()(text); }
  size_t operator()(ScalarType type) const { return static_cast<size_t>(type); }
  size_t operator()(const Layout& layout) const { return (*this)(layout.name); }
  size_t operator()(const MemoryFormat& format) const { return (*this)(format.name); }
  size_t operator()(const Device& device) const { return (*this)(device.name); }
  template <typename T>
  size_t operator()(const std::vector<T>& list) const {
    size_t seed = list.size();
    for (const auto& element : list) seed = mix(seed, (*this)(static_cast<const T&>(element)));
    return seed;
  }
};

}  // namespace

bool identical(const Argument& a, const Argument& b) {
  if (a.index() != b.index()) return false;
  if (const auto* value = std::get_if<double>(&a)) return identical(*value, std::get<double>(b));
  if (const auto* list = std::get_if<std::vector<double>>(&a)) {
    const auto& other = std::get<std::vector<double>>(b);
    if (list->size() != other.size()) return false;
    for (size_t i = 0; i < list->size(); ++i)
      if (!identical((*list)[i], other[i])) return false;
    return true;
  }
  return a == b;
}

size_t hash_argument(const Argument& argument) { return mix(argument.index(), std::visit(Hash{}, argument)); }

void for_each_value(const Argument& argument, const std::function<void(Value*)>& f) {
  if (auto* const* value = std::get_if<Value*>(&argument)) {
    f(*value);
  } else if (const auto* values = std::get_if<Values>(&argument)) {
    for (auto* element : *values)
      if (element != nullptr) f(element);
  }
}

void for_each_expr(const Argument& argument, const std::function<void(const Expr&)>& f) {
  if (const auto* expr = std::get_if<Expr>(&argument)) {
    f(*expr);
  } else if (const auto* exprs = std::get_if<std::vector<Expr>>(&argument)) {
    for (const auto& element : *exprs) f(element);
  }
}

}  // namespace transporters

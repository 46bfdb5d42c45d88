#include "transporters/symbolic/expr.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <set>

#include "transporters/error.h"
#include "transporters/symbolic/node.h"

namespace transporters::symbolic {

namespace {

constexpr int64_t kSmallestShared = -128;
constexpr int64_t kLargestShared = 1024;

size_t mix(size_t seed, uint64_t value) {
  uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15ULL + (uint64_t{seed} << 6) + (uint64_t{seed} >> 2));
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  return x;
}

// FNV-1a: the same in every run and library, unlike std::hash.
uint64_t hash_name(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

size_t start_hash(Kind kind) { return mix(0x51ed270b, static_cast<uint64_t>(kind)); }

std::shared_ptr<const Expr::Node> integer_node(int64_t value) {
  auto node = std::make_shared<Expr::Node>();
  node->kind = Kind::Integer;
  node->type = Type::Integer;
  node->value = value;
  node->hash = mix(start_hash(Kind::Integer), static_cast<uint64_t>(value));
  return node;
}

// Most sizes are small numbers: they share their nodes.
const std::shared_ptr<const Expr::Node>& shared_integer(int64_t value) {
  static const auto* table = [] {
    auto* nodes = new std::vector<std::shared_ptr<const Expr::Node>>;
    for (int64_t i = kSmallestShared; i <= kLargestShared; ++i) nodes->push_back(integer_node(i));
    return nodes;
  }();
  return (*table)[static_cast<size_t>(value - kSmallestShared)];
}

bool is_name_character(char c, bool first) {
  auto u = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || u >= 0x80 || (!first && c >= '0' && c <= '9');
}

void check_name(std::string_view name) {
  bool valid = !name.empty();
  for (size_t i = 0; i < name.size(); ++i) valid = valid && is_name_character(name[i], i == 0);
  static constexpr std::array<std::string_view, 7> kReserved = {"True", "False", "inf", "nan", "and", "or", "not"};
  if (!valid || std::ranges::find(kReserved, name) != kReserved.end()) {
    throw Error(
        "'" + std::string(name) +
        "' cannot name a symbolic size: expected letters, digits and underscores, no digit first, and not a word "
        "of the expression syntax (True, False, inf, nan, and, or, not)");
  }
}

template <typename T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

// Orders doubles by their bits' numeric order, NaN included.
int compare_reals(double a, double b) {
  if (int order = three_way(a, b)) return order;
  return three_way(std::bit_cast<int64_t>(a), std::bit_cast<int64_t>(b));
}

int compare_constants(const Expr::Node& a, const Expr::Node& b) {
  if (a.kind == Kind::Real) return compare_reals(std::get<double>(a.value), std::get<double>(b.value));
  return three_way(a.value, b.value);
}

void collect_symbols(const Expr& e, std::set<std::string>& names) {
  if (!has_symbols(e)) return;
  if (e.kind() == Kind::Symbol) names.insert(e.name());
  for (const Expr& operand : e.operands()) collect_symbols(operand, names);
}

const char* type_name(Type type) {
  switch (type) {
    case Type::Integer:
      return "an integer";
    case Type::Real:
      return "a real";
    case Type::Boolean:
      return "a boolean";
  }
  return "";
}

template <typename Predicate>
void require(const char* operation, std::span<const Expr> operands, const char* expected, Predicate is_valid) {
  for (const Expr& e : operands) {
    if (!is_valid(e.type())) {
      throw InternalError(std::string(operation) + " expects " + expected + ", got " + type_name(e.type()) + ": " +
                          e.str());
    }
  }
}

}  // namespace

uint64_t symbol_bit(std::string_view name) { return uint64_t{1} << (hash_name(name) % 64); }

Expr make_node(Kind kind, Type type, std::vector<Expr> operands) {
  auto node = std::make_shared<Expr::Node>();
  node->kind = kind;
  node->type = type;
  size_t hash = start_hash(kind);
  for (const Expr& operand : operands) {
    hash = mix(hash, operand.hash());
    node->symbol_mask |= operand.node()->symbol_mask;
  }
  node->hash = hash;
  node->operands = std::move(operands);
  return Expr(std::move(node));
}

Expr::Expr(int64_t value)
    : node_(value >= kSmallestShared && value <= kLargestShared ? shared_integer(value) : integer_node(value)) {}

Expr Expr::symbol(std::string_view name) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<std::string, std::shared_ptr<const Node>>;
  std::lock_guard lock(mutex);
  auto [it, inserted] = known->try_emplace(std::string(name));
  if (inserted) {
    try {
      check_name(name);
    } catch (...) {
      known->erase(it);
      throw;
    }
    auto node = std::make_shared<Node>();
    node->kind = Kind::Symbol;
    node->type = Type::Integer;
    node->name = name;
    node->hash = mix(start_hash(Kind::Symbol), hash_name(name));
    node->symbol_mask = symbol_bit(name);
    it->second = std::move(node);
  }
  return Expr(it->second);
}

Expr Expr::real(double value) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::Real;
  node->type = Type::Real;
  node->value = value;
  node->hash = mix(start_hash(Kind::Real), std::bit_cast<uint64_t>(value));
  return Expr(std::move(node));
}

Expr Expr::boolean(bool value) {
  static const auto make = [](bool v) {
    auto node = std::make_shared<Node>();
    node->kind = Kind::Boolean;
    node->type = Type::Boolean;
    node->value = v;
    node->hash = mix(start_hash(Kind::Boolean), v ? 1 : 0);
    return Expr(std::move(node));
  };
  static const auto* constants = new std::array<Expr, 2>{make(false), make(true)};
  return (*constants)[value ? 1 : 0];
}

Kind Expr::kind() const { return node_->kind; }
Type Expr::type() const { return node_->type; }
std::span<const Expr> Expr::operands() const { return node_->operands; }
const std::string& Expr::name() const { return node_->name; }
size_t Expr::hash() const { return node_->hash; }

std::optional<int64_t> Expr::as_integer() const {
  if (node_->kind != Kind::Integer) return std::nullopt;
  return std::get<int64_t>(node_->value);
}
std::optional<double> Expr::as_real() const {
  if (node_->kind != Kind::Real) return std::nullopt;
  return std::get<double>(node_->value);
}
std::optional<bool> Expr::as_boolean() const {
  if (node_->kind != Kind::Boolean) return std::nullopt;
  return std::get<bool>(node_->value);
}
bool Expr::is_constant() const {
  return node_->kind == Kind::Integer || node_->kind == Kind::Real || node_->kind == Kind::Boolean;
}

std::vector<std::string> Expr::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return {names.begin(), names.end()};
}

bool Expr::contains(std::string_view symbol) const {
  if ((node_->symbol_mask & symbol_bit(symbol)) == 0) return false;
  if (node_->kind == Kind::Symbol) return node_->name == symbol;
  return std::ranges::any_of(node_->operands, [&](const Expr& operand) { return operand.contains(symbol); });
}

bool operator==(const Expr& a, const Expr& b) {
  if (a.node_ == b.node_) return true;
  return a.node_->hash == b.node_->hash && Expr::compare(a, b) == 0;
}

int Expr::compare(const Expr& a, const Expr& b) {
  const Node& x = *a.node_;
  const Node& y = *b.node_;
  if (&x == &y) return 0;
  if (int order = three_way(x.kind, y.kind)) return order;
  if (a.is_constant()) return compare_constants(x, y);
  if (x.kind == Kind::Symbol) return three_way(x.name, y.name);
  if (int order = three_way(x.operands.size(), y.operands.size())) return order;
  for (size_t i = 0; i < x.operands.size(); ++i) {
    if (int order = compare(x.operands[i], y.operands[i])) return order;
  }
  return 0;
}

void require_numbers(const char* operation, std::span<const Expr> operands) {
  require(operation, operands, "numbers", [](Type type) { return type != Type::Boolean; });
}
void require_booleans(const char* operation, std::span<const Expr> operands) {
  require(operation, operands, "booleans", [](Type type) { return type == Type::Boolean; });
}
void require_integers(const char* operation, std::span<const Expr> operands) {
  require(operation, operands, "integers", [](Type type) { return type == Type::Integer; });
}

void promote(Expr& a, Expr& b) {
  if (a.type() == b.type()) return;
  if (a.type() == Type::Integer && b.type() == Type::Real) a = to_real(a);
  if (b.type() == Type::Integer && a.type() == Type::Real) b = to_real(b);
}

}  // namespace transporters::symbolic

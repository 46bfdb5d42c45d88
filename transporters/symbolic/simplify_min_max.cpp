// Minimum and maximum: flattened, sorted, each operand once. Integer operands that differ by a constant are decided,
// what all operands share (a factor, an offset, a sign) is taken outside.
#include <algorithm>
#include <array>
#include <limits>

#include "transporters/symbolic/arithmetic.h"
#include "transporters/symbolic/node.h"
#include "transporters/symbolic/terms.h"

namespace transporters::symbolic {

namespace {

// Operands are compared pairwise; with more than this only equal ones are dropped.
constexpr size_t kMaxPairwise = 16;

Kind opposite(Kind kind) { return kind == Kind::Min ? Kind::Max : Kind::Min; }

bool same_terms(const LinearForm& a, const LinearForm& b) {
  return std::ranges::equal(a.terms, b.terms, [](const Term& x, const Term& y) {
    return x.coefficient == y.coefficient && compare_factors(x.factors, y.factors) == 0;
  });
}

// Which of two operands is never needed: +1 the first, -1 the second, 0 neither is known.
int redundant(Kind kind, const Expr& a, const Expr& b) {
  // Min(x, Max(x, y)) is x.
  auto absorbed = [&](const Expr& x, const Expr& y) {
    return y.kind() == opposite(kind) && std::ranges::find(operands_of(y), x) != operands_of(y).end();
  };
  if (absorbed(a, b)) return -1;
  if (absorbed(b, a)) return 1;
  LinearForm left = linear_form(a);
  LinearForm right = linear_form(b);
  if (!same_terms(left, right)) return 0;
  return (left.constant < right.constant) == (kind == Kind::Min) ? -1 : 1;
}

void drop_redundant(Kind kind, std::vector<Expr>& operands) {
  if (operands.size() > kMaxPairwise) return;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t j = i + 1; j < operands.size();) {
      int which = redundant(kind, operands[i], operands[j]);
      if (which > 0) operands[i] = operands[j];
      if (which != 0) {
        operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(j));
        j = which > 0 ? i + 1 : j;
      } else {
        ++j;
      }
    }
  }
}

// c*Max(x, y) + k is Max(c*x + k, c*y + k), and Min for a negative c.
void flatten(Kind kind, const Expr& e, std::vector<Expr>& operands) {
  LinearForm form = e.type() == Type::Integer ? linear_form(e) : LinearForm{};
  if (form.terms.size() == 1 && form.terms[0].factors.size() == 1) {
    const Expr& inner = form.terms[0].factors[0];
    if (inner.kind() == (form.terms[0].coefficient > 0 ? kind : opposite(kind))) {
      for (const Expr& x : operands_of(inner)) operands.push_back(scale(x, form.terms[0].coefficient) + form.constant);
      return;
    }
  }
  if (e.type() == Type::Real && e.kind() == kind) {
    operands.insert(operands.end(), e.operands().begin(), e.operands().end());
  } else {
    operands.push_back(e);
  }
}

void sort_and_deduplicate(std::vector<Expr>& operands) {
  std::ranges::sort(operands, [](const Expr& a, const Expr& b) { return Expr::compare(a, b) < 0; });
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
}

Expr build(Kind kind, Type type, std::vector<Expr> operands) {
  sort_and_deduplicate(operands);
  return operands.size() == 1 ? operands[0] : make_node(kind, type, std::move(operands));
}

std::vector<Expr> map(const std::vector<Expr>& operands, const std::function<Expr(const Expr&)>& f) {
  std::vector<Expr> results;
  results.reserve(operands.size());
  for (const Expr& e : operands) results.push_back(f(e));
  return results;
}

Expr extremum_of_integers(Kind kind, std::vector<Expr> operands) {
  sort_and_deduplicate(operands);
  drop_redundant(kind, operands);
  if (operands.size() == 1) return operands[0];

  int64_t common = 0;
  bool all_negative = true;
  bool has_constant = false;
  int64_t smallest_offset = std::numeric_limits<int64_t>::max();
  for (const Expr& e : operands) {
    LinearForm form = linear_form(e);
    common = common_divisor(common, form.constant);
    for (const Term& term : form.terms) common = common_divisor(common, term.coefficient);
    has_constant = has_constant || form.terms.empty();
    all_negative = all_negative && (form.terms.empty() || form.terms[0].coefficient < 0);
    smallest_offset = std::min(smallest_offset, form.constant);
  }
  if (all_negative) {
    return -extremum_of_integers(opposite(kind), map(operands, [](const Expr& e) { return -e; }));
  }
  if (common > 1) {
    CommonFactor factor{common, {}};
    auto divided = [&](const Expr& e) { return divide_exactly(e, factor); };
    return extremum_of_integers(kind, map(operands, divided)) * common;
  }
  if (!has_constant && smallest_offset != 0) {
    auto without = [&](const Expr& e) { return e - smallest_offset; };
    return extremum_of_integers(kind, map(operands, without)) + smallest_offset;
  }
  return build(kind, Type::Integer, std::move(operands));
}

Expr extremum_of_reals(Kind kind, std::vector<Expr> operands) {
  std::optional<double> constant;
  std::erase_if(operands, [&](const Expr& e) {
    auto value = e.as_real();
    if (!value) return false;
    if (!constant || (kind == Kind::Min ? *value < *constant : *value > *constant)) constant = value;
    return true;
  });
  if (constant) operands.push_back(Expr::real(*constant));
  return build(kind, Type::Real, std::move(operands));
}

}  // namespace

Expr extremum(Kind kind, std::span<const Expr> operands) {
  require_numbers(kind == Kind::Min ? "minimum" : "maximum", operands);
  bool real = std::ranges::any_of(operands, [](const Expr& e) { return e.type() == Type::Real; });
  std::vector<Expr> flat;
  for (const Expr& e : operands) flatten(kind, real ? to_real(e) : e, flat);
  return real ? extremum_of_reals(kind, std::move(flat)) : extremum_of_integers(kind, std::move(flat));
}

Expr min(const Expr& a, const Expr& b) { return extremum(Kind::Min, std::array{a, b}); }
Expr max(const Expr& a, const Expr& b) { return extremum(Kind::Max, std::array{a, b}); }

}  // namespace transporters::symbolic

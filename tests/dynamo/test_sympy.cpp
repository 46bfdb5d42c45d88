#include "tests/dynamo/support.h"
#include "transporters/dynamo/sympy.h"

namespace transporters::dynamo {
namespace {

using symbolic::Expr;

const SympyNames kNames{[](const std::string& name) { return Expr::symbol(name); },
                        [](const std::vector<std::string>& path, int dim) {
                          std::string name;
                          for (const auto& step : path) name += (name.empty() ? "" : "_") + step;
                          return Expr::symbol(dim < 0 ? name : name + "_" + std::to_string(dim));
                        }};

Expr read(const std::string& text) { return from_sympy(text, kNames); }
std::string error(const std::string& text) {
  return error_of([&] { read(text); });
}

TEST_CASE("constructor form, written and read") {
  const auto write = [](const Expr& expr) {
    return to_sympy(expr,
                    [](const std::string& name) { return "Symbol('" + name + "', positive=True, integer=True)"; });
  };
  const Expr a = Expr::symbol("s0"), b = Expr::symbol("s1");
  CHECK(write(Expr(99) * a) == "Mul(Integer(99), Symbol('s0', positive=True, integer=True))");
  const std::vector<Expr> exprs = {Expr(-3),
                                   a,
                                   a + b - Expr(2),
                                   a * b * Expr(5),
                                   symbolic::pow(a, Expr(2)),
                                   symbolic::floor_div(a, Expr(2)),
                                   symbolic::mod(a * b, Expr(7)),
                                   symbolic::min(a, b),
                                   symbolic::max(a, Expr(5)),
                                   symbolic::to_real(a),
                                   symbolic::floor(symbolic::to_real(a) * Expr::real(1.5)),
                                   symbolic::ceil(symbolic::true_div(a, b)),
                                   symbolic::trunc(symbolic::sqrt(symbolic::to_real(a))),
                                   symbolic::round(symbolic::to_real(a) * Expr::real(0.3)),
                                   symbolic::equal(a, b),
                                   symbolic::not_equal(a, Expr(3)),
                                   symbolic::less(a, b),
                                   symbolic::less_equal(a, b),
                                   symbolic::logical_and(symbolic::less(a, b), symbolic::less(b, Expr(9))),
                                   symbolic::logical_or(symbolic::less(a, b), symbolic::less(b, Expr(9))),
                                   symbolic::logical_not(symbolic::equal(a, b)),
                                   symbolic::select(symbolic::less(a, b), a, Expr(2) * b),
                                   Expr::real(0.1),
                                   Expr::boolean(true)};
  for (const Expr& expr : exprs) {
    CAPTURE(write(expr));
    CHECK(read(write(expr)) == expr);
  }
}

TEST_CASE("what torch and sympy write besides") {
  const Expr a = Expr::symbol("s0"), b = Expr::symbol("s1");
  CHECK(read("2*s0 + s1 - 1") == Expr(2) * a + b - Expr(1));
  CHECK(read("s0**2 // 3 % 4") == symbolic::mod(symbolic::floor_div(a * a, Expr(3)), Expr(4)));
  CHECK(read("-s0 + (s1 + 1)*2") == Expr(2) * b + Expr(2) - a);
  CHECK(read("ModularIndexing(s0, 2, 3)") == symbolic::mod(symbolic::floor_div(a, Expr(2)), Expr(3)));
  CHECK(read("LShift(s0, 3)") == Expr(8) * a);
  CHECK(read("CleanDiv(s0, 2)") == symbolic::floor_div(a, Expr(2)));
  CHECK(read("Ge(s0, 2)") == symbolic::less_equal(Expr(2), a));
  CHECK(read("StrictGreaterThan(Symbol('s0', positive=True, integer=True), Integer(2))") == symbolic::less(Expr(2), a));
  CHECK(read("9223372036854775807") == Expr(std::numeric_limits<int64_t>::max()));
  CHECK(read("1e3").as_real() == 1000.0);
}

TEST_CASE("guards of torch.export") {
  CHECK(read("L['x'].size()[1] + ((-1)*L['y'].size()[0]) <= 0") ==
        symbolic::less_equal(Expr::symbol("x_1"), Expr::symbol("y_0")));
  CHECK(read("(L['past'][0]['k'].size()[2] % 2) == 0") ==
        symbolic::equal(symbolic::mod(Expr::symbol("past_0_k_2"), Expr(2)), Expr(0)));
  CHECK(read("math.trunc(1.5*torch.sym_float(L['n'])) == 6") ==
        symbolic::equal(symbolic::trunc(Expr::real(1.5) * symbolic::to_real(Expr::symbol("n"))), Expr(6)));
  CHECK(read("2 <= L['x'].size()[0] <= 9 and not L['x'].size()[0] == 5") ==
        symbolic::logical_and(symbolic::logical_and(symbolic::less_equal(Expr(2), Expr::symbol("x_0")),
                                                    symbolic::less_equal(Expr::symbol("x_0"), Expr(9))),
                              symbolic::not_equal(Expr::symbol("x_0"), Expr(5))));
}

TEST_CASE("text that is not understood names its place") {
  CHECK(error("s0 +") == "[dynamo] column 5 of expression 's0 +': expected a number, a name or '('");
  CHECK(error("Add(s0, s1") == "[dynamo] column 11 of expression 'Add(s0, s1': expected ')'");
  CHECK(error("s0 s1") == "[dynamo] column 4 of expression 's0 s1': expected the end");
  CHECK(error("Mod(s0)") == "[dynamo] column 8 of expression 'Mod(s0)': 'Mod' got 1 operands");
  CHECK(error("Symbol('s0") == "[dynamo] column 11 of expression 'Symbol('s0': expected the end of a quoted name");
  CHECK(error("99999999999999999999999*s0") == "");  // a real number, as Python's would not fit either
  CHECK(error("s0 and s1").find("expected conditions") != std::string::npos);
  CHECK(error("And(s0, s1)") != "");
  CHECK(error(std::string(5000, '(')).find("nested too deeply") != std::string::npos);
  CHECK(error(std::string(5000, '-') + "1").find("nested too deeply") != std::string::npos);
  CHECK(error(std::string(50'000, '+') + "1").find("nested too deeply") != std::string::npos);
  std::string powers = "s0";
  for (int i = 0; i < 50'000; ++i) powers += "**1";
  CHECK(error(powers).find("nested too deeply") != std::string::npos);
  std::string chain = "s0";
  for (int i = 0; i < 50'000; ++i) chain += "//s1 + 0.5";
  CHECK(error(chain).find("more than 1000 numbers and names") != std::string::npos);
  CHECK(error("Float('1.x')").find("expected a number") != std::string::npos);
  CHECK(error("") == "[dynamo] column 1 of expression '': expected a number, a name or '('");
}

}  // namespace
}  // namespace transporters::dynamo

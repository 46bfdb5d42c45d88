#include "transporters/dynamo/guard_reader.h"

#include <algorithm>
#include <string>

#include "transporters/dynamo/sympy.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

// Arguments of `*inputs` are called inputs_0, inputs_1, ...; torch's guards say inputs[0], inputs[1], ...
bool is_guard_path(const std::vector<std::string>& steps, const std::vector<std::string>& path) {
  if (steps == path) return true;
  return steps.size() + 1 == path.size() && !steps.empty() && steps[0] == path[0] + "_" + path[1] &&
         std::equal(steps.begin() + 1, steps.end(), path.begin() + 2);
}

// What a guard says of an input: a size of it, or the number that it is (dim < 0).
Expr input_size(const ConstJson& guard, const std::vector<KeyPath>& paths, const Program& program,
                const std::vector<std::string>& path, int dim) {
  // The tracer's own name for the inputs by position.
  const bool by_position = path.size() == 2 && path[0] == "flat_args";
  for (size_t i = 0, user = 0; i < program.inputs.size(); ++i) {
    const InputSpec& input = program.inputs[i];
    if (input.kind != InputKind::UserInput) continue;
    const bool found = by_position ? std::to_string(user) == path[1] : is_guard_path(paths.at(user).steps, path);
    ++user;
    if (!found) continue;
    if (input.value == nullptr) {
      if (const auto* number = std::get_if<Expr>(&input.constant); number != nullptr && dim < 0) return *number;
      if (const auto* number = std::get_if<double>(&input.constant); number != nullptr && dim < 0)
        return Expr::real(*number);
      if (const auto* flag = std::get_if<bool>(&input.constant); flag != nullptr && dim < 0)
        return Expr::boolean(*flag);
    } else if (!input.value->is_tensor()) {
      if (dim < 0) return std::get<NumberType>(input.value->type()).expr;
    } else if (dim >= 0 && static_cast<size_t>(dim) < input.value->rank()) {
      return input.value->sizes()[static_cast<size_t>(dim)];
    }
  }
  json_fail(guard, "the guard reads an input that is not there");
}

}  // namespace

void read_guards(const ConstJson& guards, const std::vector<KeyPath>& paths, const SizeReader& sizes,
                 Program& program) {
  Node* const first = program.graph->front();
  symbolic::ShapeEnv known;
  for (const auto& [name, range] : program.ranges) known.add_symbol({.name = name, .range = range});
  for (const ConstJson& guard : array(guards)) {
    const std::string& text = string(guard);
    // How inputs lie in memory is no part of a program.
    if (text.find(".stride(") != std::string::npos || text.find(".storage_offset(") != std::string::npos) continue;
    Expr condition;
    try {
      condition = from_sympy(text, {[&](const std::string& name) { return sizes.symbol(name); },
                                    [&](const std::vector<std::string>& path, int dim) {
                                      return input_size(guard, paths, program, path, dim);
                                    }});
    } catch (const Error& error) {
      json_fail(guard, error.message());
    }
    if (condition.type() != symbolic::Type::Boolean) json_fail(guard, "expected a condition");
    if (known.decide(condition) == true) continue;
    program.graph->insert(first, "aten::_assert_scalar", {{"self", condition}, {"assert_msg", "Guard failed: " + text}},
                          {});
  }
}

}  // namespace transporters::dynamo

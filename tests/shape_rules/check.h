// Compares shape rules with ATen's own answer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "transporters/graph/graph.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters::testing {

struct CheckOptions {
  // Least value that a symbolic size takes when it is varied.
  int64_t least = 1;
  // Whether the rule may fix or relate the named sizes.
  bool may_specialize = false;
  // Whether ATen is asked on the CPU only, for ops whose meta kernel gives other sizes.
  bool computed = false;
  // Whether every size is also made symbolic in turn.
  bool all_symbolic = true;
};

// Runs each call (see call.h) through its shape rule and through ATen, and fails the test where dtypes, sizes or (of
// views) strides differ:
//   - with all sizes constant;
//   - with the named sizes symbolic, at their example values and at others, whenever ATen accepts those;
//   - with every size of 2 or more its own symbol, likewise.
void check_calls(std::initializer_list<std::string_view> calls, const CheckOptions& options = {});
void check_call(std::string_view call, const CheckOptions& options = {});

// Runs the rule only, and returns its types; `env` takes the named sizes as symbols.
std::vector<ValueType> run_rule(std::string_view call, ShapeEnv& env);
// "f32[a, 2*b]{strides}", "f32[3], i64[3]", "2*b" for a number
std::string to_text(const std::vector<ValueType>& types);
// Fails unless the rule throws Error whose message contains `expected`.
void check_error(std::string_view call, std::string_view expected);

}  // namespace transporters::testing

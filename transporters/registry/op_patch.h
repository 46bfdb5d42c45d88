// Reversible replacement of an ATen op while an export runs.
#pragma once

#include <ATen/core/stack.h>

#include <functional>
#include <string>

namespace transporters {

// Takes the op's arguments from the stack and leaves its results there.
using BoxedOp = std::function<void(torch::jit::Stack&)>;

struct OpPatch {
  std::string op;  // full name: "aten::where.self"
  // Receives the original and returns its replacement; the original called inside is traced as usual.
  std::function<BoxedOp(BoxedOp original)> factory;
};

}  // namespace transporters

// Reversible replacement of an ATen op while an export runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace c10 {
struct IValue;
}

namespace transporters {

// Takes the op's arguments from the end of the stack and leaves its results there (torch::jit::Stack).
using BoxedOp = std::function<void(std::vector<c10::IValue>& stack)>;

// Receives the original and returns its replacement; the original called inside it is traced as usual.
using OpPatchFactory = std::function<BoxedOp(BoxedOp original)>;

struct OpPatch {
  std::string op;  // full name: "aten::where.self"
  OpPatchFactory factory;
};

}  // namespace transporters

#include "transporters/patches/answer_equal.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "transporters/trace/recorder.h"

namespace transporters {

BoxedOp answer_equal(BoxedOp) {
  return [](std::vector<c10::IValue>& stack) {
    const at::Tensor other = torch::jit::pop(stack).toTensor();
    const at::Tensor self = torch::jit::pop(stack).toTensor();
    const bool same = self.is_same(other);
    if (!same)
      if (Recorder* recorder = Recorder::current())
        recorder->add_note(recorder->location() + " compares values; it was taken as false");
    stack.emplace_back(same);
  };
}

}  // namespace transporters

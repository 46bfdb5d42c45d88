// aten::equal is a question about values, which a trace can't answer. torch::nn's multi-head attention asks it of
// query, key and value to choose between one packed projection and three, which give the same
// (torch/csrc/api/include/torch/nn/functional/activation.h, multi_head_attention_forward).
#pragma once

#include "transporters/registry/op_patch.h"

namespace transporters {

// True for one tensor given twice; otherwise false, with a note.
BoxedOp answer_equal(BoxedOp original);

}  // namespace transporters

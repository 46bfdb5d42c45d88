// The image tower of CLIP: https://arxiv.org/abs/2103.00020.
#pragma once

#include <vector>

#include "transporters/models/auto.h"

namespace transporters {

class ClipVisionModel : public PreTrainedModel {
 public:
  // The embeddings and what each layer makes of them, [images, 1 + patches, hidden_size].
  virtual std::vector<at::Tensor> hidden_states(const at::Tensor& pixels) const = 0;
  // Whether forward returns all of them too.
  bool returns_hidden_states = false;

 protected:
  using PreTrainedModel::PreTrainedModel;
};

// The classes of model_type "clip_vision_model".
std::vector<ModelClass> clip_vision_classes();

}  // namespace transporters

// Making a model of a class, as ModelClass::make does.
#pragma once

#include <memory>

#include "transporters/models/pretrained_model.h"

namespace transporters {

template <typename Model>
std::shared_ptr<PreTrainedModel> make_model(const Weights& weights, const ModelContext& context) {
  return std::make_shared<Model>(weights, context);
}

}  // namespace transporters

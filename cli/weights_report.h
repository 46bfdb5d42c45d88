// Where the bytes of a file are.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"

namespace transporters::cli {

struct Weight {
  std::string name;
  c10::ScalarType dtype;
  std::vector<int64_t> sizes;
  uint64_t bytes;
  const void* data;  // equal for tied tensors
};

// "float32[2, 3]".
std::string type_text(const Weight& weight);

// Weights by size, largest first, and what is tied to them.
struct UniqueWeights {
  std::vector<Weight> weights;
  std::vector<std::pair<std::string, std::string>> tied;  // name, and the name it shares bytes with
};
UniqueWeights unique_weights(const std::vector<Weight>& weights);

// Totals, by type and by module (layer numbers as '*'), and the largest ones; tied tensors count once.
Json weights_json(const std::vector<Weight>& weights);

}  // namespace transporters::cli

// Weights and constants of an archive: raw records "weight_0", "weight_1", ..., and the configuration that says which
// tensor lies where (schema.PayloadConfig). Tensors that share memory share a record, so tied weights are written once.
#pragma once

#include <string>
#include <vector>

#include "transporters/dynamo/zip_writer.h"
#include "transporters/graph/tensor_data.h"

namespace transporters::dynamo {

struct PayloadTensor {
  std::string target;
  TensorData data;
  bool is_parameter = false;
};

// Writes FOLDER/PREFIX0, FOLDER/PREFIX1, ... in the order in which their tensors come, straight from memory. `models`
// has one list of tensors for each model of the archive; memory that several of them use is written once. Returns the
// configuration's JSON text of each.
std::vector<std::string> write_payloads(ZipWriter& zip, const std::vector<std::vector<PayloadTensor>>& models,
                                        const std::string& folder, const std::string& prefix);

}  // namespace transporters::dynamo

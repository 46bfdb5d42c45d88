// Weights and constants of an archive, mapped from the file.
#pragma once

#include <map>
#include <string>

#include "transporters/dynamo/zip_reader.h"
#include "transporters/graph/tensor_data.h"

namespace transporters::dynamo {

// Tensors by target of FOLDER/<model>SUFFIX, or of FOLDER/<model>.pt in archives of torch 2.7 and before. Bytes stay
// where they lie in the file, unless they are not aligned for their type. Throws Error for tensors that do not fit
// their record.
std::map<std::string, TensorData> read_payloads(const ZipReader& zip, const std::string& model,
                                                const std::string& folder, const std::string& suffix);

}  // namespace transporters::dynamo

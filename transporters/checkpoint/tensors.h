// Named tensors to and from a safetensors file.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace transporters {

// Writes tensors to a safetensors file, which appears whole or not at all. Throws Error for duplicate names and tensors
// that have no data.
void save_tensors(const std::vector<std::pair<std::string, at::Tensor>>& tensors, const std::filesystem::path& file);

// Reads every tensor of a safetensors file, in the file's order. The tensors are views of the mapped file: clone before
// writing to one.
std::vector<std::pair<std::string, at::Tensor>> load_tensors(const std::filesystem::path& file);

}  // namespace transporters

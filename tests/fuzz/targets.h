// What is fuzzed: readers of files that come from elsewhere.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/random.h"
#include "transporters/graph/tensor_data.h"

namespace transporters::fuzz {

// Contents by file name; a text that is read from memory is the file "".
using Files = std::map<std::string, std::string>;

class Target {
 public:
  explicit Target(std::string name) : name_(std::move(name)) {}
  virtual ~Target() = default;
  const std::string& name() const { return name_; }
  // Good inputs, made by this library's own writers.
  virtual std::vector<Files> seeds() = 0;
  virtual Files mutate(const Files& seed, Random& random) const = 0;
  // Reads the input, and uses what was read as far as a reader promises that it can be used. Throws Error where the
  // input is refused; every other exception is a finding. `folder` holds the files.
  virtual void read(const Files& input, const std::filesystem::path& folder) const = 0;

 private:
  std::string name_;
};

std::vector<std::unique_ptr<Target>> checkpoint_targets();  // safetensors, index, config
std::vector<std::unique_ptr<Target>> dynamo_targets();      // pt2, pickle, sympy, tree_spec
std::vector<std::unique_ptr<Target>> export_targets();      // onnx, manifest

// A tensor for seeds, its bytes counting up from 0.
TensorData tensor(std::vector<int64_t> sizes, c10::ScalarType dtype = c10::ScalarType::Float);

// Takes notice of every byte, so that the sanitizer sees each one read.
void touch(const void* data, size_t size);

}  // namespace transporters::fuzz

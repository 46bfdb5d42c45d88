// Helpers of the tests: temporary folders, programs with data, archives taken apart.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/graph/program.h"

namespace transporters::dynamo {

// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = std::filesystem::temp_directory_path() /
            ("transporters-" + std::to_string(getpid()) + "-" + std::to_string(next_++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  static inline int next_ = 0;
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream bytes;
  bytes << stream.rdbuf();
  return bytes.str();
}

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// A tensor 0, 1, 2, ... of its own memory.
inline TensorData counting(std::vector<int64_t> sizes) {
  TensorData data;
  data.sizes = sizes;
  data.strides = contiguous_strides(sizes);
  const auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(data.numel()));
  for (size_t i = 0; i < values->size(); ++i) (*values)[i] = static_cast<float>(i);
  data.data = values->data();
  data.owner = values;
  return data;
}

inline std::vector<float> elements(const TensorData& data) {
  REQUIRE(data.is_contiguous());
  std::vector<float> values(static_cast<size_t>(data.numel()));
  std::memcpy(values.data(), data.data, data.nbytes());
  return values;
}

// What `f` throws as Error; empty when it throws none.
template <typename F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace transporters::dynamo

// What a manifest says of a graph's cache: its layers' classes and numbers, from the structure of the inputs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace transporters {

struct CacheLayout {
  struct Layer {
    std::string python_class;                // "StaticLayer"
    std::map<std::string, int64_t> numbers;  // "max_cache_len", "sliding_window", ...; true is 1
    int64_t number(const std::string& name, int64_t otherwise = 0) const;
  };
  // By the path of the object that holds the tensors: "cache.layers.0".
  std::map<std::string, Layer> layers;

  // Reads ExportMetadata::in_spec. Throws Error for text that is none.
  static CacheLayout read(const std::string& in_spec);

  // The layer of a leaf ("cache.layers.0.keys"); null when it is not known.
  const Layer* of_leaf(const std::string& path) const;
  // Tokens that all layers have room for; nullopt when they grow or keep only the last ones.
  std::optional<int64_t> capacity() const;
  // Buffer size of the layers of fixed size that slide, or that do not; nullopt without one.
  std::optional<int64_t> buffer_size(bool sliding) const;
};

}  // namespace transporters

// Bytes of a file that is mapped, or of memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace transporters::onnx {

// Kept alive by `owner`; a file's when `file` is set.
struct Bytes {
  const char* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;
  std::string file;
};

// Maps a regular file read-only; an empty one gives no bytes. Throws Error naming it.
Bytes map_file(const std::filesystem::path& path);

}  // namespace transporters::onnx

// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace transporters {

// The mapping lives as long as the object. It is private: bytes can't be written through it.
class MappedFile {
 public:
  // Maps a regular file; `path` is UTF-8 and is kept as given for messages. Throws Error when it can't be opened or
  // mapped. An empty file gives no bytes.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size) : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const std::byte* data_;
  size_t size_;
};

// Where bytes of a mapping lie on disk.
struct FilePlace {
  std::string path;
  uint64_t offset;
};

// The place of `size` bytes at `data` when a living MappedFile holds all of them. Tensors forget which file their
// memory maps; this finds it again.
std::optional<FilePlace> locate_mapped(const void* data, size_t size);

}  // namespace transporters

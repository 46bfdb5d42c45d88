// Writes a zip file of stored (uncompressed) records front to back, each record's bytes aligned so that a reader can
// use them where they lie in a mapping. The layout is the one of PyTorch's archives: record names share a root folder,
// records are padded to 64 bytes with an extra field "FB", checksums follow the bytes in a data descriptor.
// Format: PKWARE APPNOTE 6.3.10; files and records above 4 GiB use its zip64 fields.
//
// Time stamps are constant and nothing depends on the machine: the same records give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/graph/tensor_data.h"

namespace transporters::dynamo {

class ZipWriter {
 public:
  static constexpr uint64_t kAlignment = 64;
  // Takes the file's bytes in order.
  using Sink = std::function<void(const void* data, size_t size)>;

  ZipWriter(std::string root, Sink sink) : root_(std::move(root)), sink_(std::move(sink)) {}

  void add(std::string_view name, std::string_view bytes);
  // Adds memory, read once and block by block, without a copy of it.
  void add(std::string_view name, const void* data, uint64_t size);
  // Adds a tensor's elements in row-major order; a strided one is gathered in blocks.
  void add(std::string_view name, const TensorData& data);

  // Adds the record ".data/serialization_id", made of the names and checksums of all records, and the directory.
  void finish();

 private:
  struct Record {
    std::string name;  // with root
    uint64_t offset;   // of the local header
    uint64_t size = 0;
    uint32_t crc = 0;
  };

  void begin(std::string_view name, uint64_t size);
  void append(const void* data, uint64_t size);
  void end();
  void emit(const void* data, size_t size);
  std::string serialization_id() const;

  std::string root_;
  Sink sink_;
  uint64_t position_ = 0;
  std::vector<Record> records_;
};

}  // namespace transporters::dynamo

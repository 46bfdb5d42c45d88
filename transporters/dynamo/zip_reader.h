// Reads the records of a zip file where they lie in a mapping. Only stored (uncompressed) records are read: PyTorch's
// archives have no others. Nothing of the file is trusted: whatever does not add up is an Error that names the file.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/checkpoint/mapped_file.h"

namespace transporters::dynamo {

class ZipReader {
 public:
  explicit ZipReader(std::shared_ptr<const MappedFile> file);
  // A zip file inside other bytes, which `owner` keeps alive; `name` is for messages.
  ZipReader(std::string_view bytes, std::shared_ptr<const void> owner, std::string name);

  // Names without the root folder, in the order of the directory.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return records_.contains(name); }
  // The record's bytes; throws Error when there is none of that name.
  std::string_view get(std::string_view name) const;
  // get() for records that are parsed rather than mapped: the checksum is verified.
  std::string_view get_checked(std::string_view name) const;

  const std::string& path() const { return path_; }
  // Keeps the records' bytes alive.
  const std::shared_ptr<const void>& owner() const { return owner_; }
  uint64_t offset_of(std::string_view record) const { return static_cast<uint64_t>(record.data() - bytes_.data()); }
  [[noreturn]] void fail(const std::string& message) const;

 private:
  struct Record {
    uint64_t header;  // offset of the local header
    uint64_t size;
    uint32_t crc;
    uint16_t method;
    uint16_t flags;
  };

  void read_directory();
  void strip_root();

  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
  std::string path_;
  std::vector<std::string> names_;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace transporters::dynamo

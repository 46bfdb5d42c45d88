#include "transporters/dynamo/zip_reader.h"

#include <algorithm>

#include "transporters/dynamo/crc32.h"
#include "transporters/dynamo/zip_format.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

// Little-endian fields of bytes whose length was checked before.
uint64_t number(std::string_view bytes, uint64_t at, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i)
    value |= uint64_t{static_cast<unsigned char>(bytes[at + static_cast<uint64_t>(i)])} << (8 * i);
  return value;
}
uint16_t u16(std::string_view bytes, uint64_t at) { return static_cast<uint16_t>(number(bytes, at, 2)); }
uint32_t u32(std::string_view bytes, uint64_t at) { return static_cast<uint32_t>(number(bytes, at, 4)); }
uint64_t u64(std::string_view bytes, uint64_t at) { return number(bytes, at, 8); }

// Whether [at, at + size) lies within `total` bytes, for any values.
bool inside(uint64_t at, uint64_t size, uint64_t total) { return at <= total && size <= total - at; }

}  // namespace

ZipReader::ZipReader(std::shared_ptr<const MappedFile> file) : bytes_(file->text()), owner_(file), path_(file->path()) {
  read_directory();
}

ZipReader::ZipReader(std::string_view bytes, std::shared_ptr<const void> owner, std::string name)
    : bytes_(bytes), owner_(std::move(owner)), path_(std::move(name)) {
  read_directory();
}

void ZipReader::fail(const std::string& message) const { throw Error({.stage = "dynamo", .file = path_}, message); }

void ZipReader::read_directory() {
  if (bytes_.empty()) fail("the file is empty");
  // The end record is last, but for a comment of at most 65535 bytes.
  const uint64_t total = bytes_.size();
  const uint64_t reach = std::min<uint64_t>(total, zip::kEndSize + 0xFFFF);
  std::optional<uint64_t> end;
  for (uint64_t back = zip::kEndSize; back <= reach && !end; ++back)
    if (u32(bytes_, total - back) == zip::kEnd) end = total - back;
  if (!end) {
    const bool begins_well = total >= 4 && u32(bytes_, 0) == zip::kLocalHeader;
    fail(begins_well ? "the file ends before its directory of records; it was cut off, copy or export it again"
                     : "not a .pt2 file: it has no zip directory");
  }
  uint64_t count = u16(bytes_, *end + 10);
  uint64_t size = u32(bytes_, *end + 12);
  uint64_t offset = u32(bytes_, *end + 16);
  if (*end >= zip::kEnd64LocatorSize && u32(bytes_, *end - zip::kEnd64LocatorSize) == zip::kEnd64Locator) {
    const uint64_t end64 = u64(bytes_, *end - zip::kEnd64LocatorSize + 8);
    if (!inside(end64, zip::kEnd64Size, *end) || u32(bytes_, end64) != zip::kEnd64)
      fail("the zip64 directory is damaged");
    count = u64(bytes_, end64 + 32);
    size = u64(bytes_, end64 + 40);
    offset = u64(bytes_, end64 + 48);
  }
  if (!inside(offset, size, *end))
    fail("the directory of records should be " + std::to_string(size) + " bytes at " + std::to_string(offset) +
         ", the file has " + std::to_string(total) + "; it is cut off or damaged");

  const std::string_view directory = bytes_.substr(offset, size);
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (!inside(at, zip::kDirectoryEntrySize, size) || u32(directory, at) != zip::kDirectoryEntry)
      fail("entry " + std::to_string(i) + " of the directory of records is damaged");
    const uint64_t name_size = u16(directory, at + 28);
    const uint64_t extra_size = u16(directory, at + 30);
    const uint64_t comment_size = u16(directory, at + 32);
    if (!inside(at + zip::kDirectoryEntrySize, name_size + extra_size + comment_size, size))
      fail("entry " + std::to_string(i) + " of the directory of records is damaged");
    std::string name(directory.substr(at + zip::kDirectoryEntrySize, name_size));
    Record record{.header = u32(directory, at + 42),
                  .size = u32(directory, at + 24),
                  .crc = u32(directory, at + 16),
                  .method = u16(directory, at + 10),
                  .flags = u16(directory, at + 8)};
    const std::string_view extra = directory.substr(at + zip::kDirectoryEntrySize + name_size, extra_size);
    for (uint64_t field = 0; inside(field, 4, extra.size());) {
      const uint64_t field_size = u16(extra, field + 2);
      if (!inside(field + 4, field_size, extra.size())) break;
      if (u16(extra, field) == zip::kZip64Field) {
        // Only the numbers that did not fit stand here: size, stored size, offset.
        uint64_t next = field + 4;
        const auto take = [&](bool wanted, uint64_t& value) {
          if (!wanted || !inside(next, 8, field + 4 + field_size)) return;
          value = u64(extra, next);
          next += 8;
        };
        uint64_t stored = 0;
        const bool size_64 = record.size == zip::kUse64;
        take(size_64, record.size);
        take(u32(directory, at + 20) == zip::kUse64, stored);
        take(record.header == zip::kUse64, record.header);
      }
      field += 4 + field_size;
    }
    at += zip::kDirectoryEntrySize + name_size + extra_size + comment_size;
    if (!records_.emplace(name, record).second) fail("the record '" + name + "' is there twice");
    names_.push_back(std::move(name));
  }
  strip_root();
}

// PyTorch puts all records into one folder, named by who wrote the file.
void ZipReader::strip_root() {
  if (names_.empty()) return;
  const auto slash = names_.front().find('/');
  if (slash == std::string::npos) return;
  const std::string root = names_.front().substr(0, slash + 1);
  if (!std::all_of(names_.begin(), names_.end(), [&](const std::string& name) { return name.starts_with(root); }))
    return;
  std::map<std::string, Record, std::less<>> records;
  for (std::string& name : names_) {
    const Record record = records_.at(name);
    name.erase(0, root.size());
    records.emplace(name, record);
  }
  records_ = std::move(records);
}

std::string_view ZipReader::get(std::string_view name) const {
  const auto found = records_.find(name);
  if (found == records_.end()) fail("the record '" + std::string(name) + "' is missing");
  const Record& record = found->second;
  const auto bad = [&](const std::string& what) { fail("the record '" + std::string(name) + "' " + what); };
  if ((record.flags & zip::kEncryptedFlag) != 0) bad("is encrypted");
  if (record.method != zip::kStored)
    bad("is compressed, which PyTorch's archives never are; write the file again with torch.export.save");
  if (!inside(record.header, zip::kLocalHeaderSize, bytes_.size()) || u32(bytes_, record.header) != zip::kLocalHeader)
    bad("is not where the directory says");
  const uint64_t start =
      record.header + zip::kLocalHeaderSize + u16(bytes_, record.header + 26) + u16(bytes_, record.header + 28);
  if (!inside(start, record.size, bytes_.size()))
    bad("should have " + std::to_string(record.size) + " bytes, more than the file has; it is cut off or damaged");
  return bytes_.substr(start, record.size);
}

std::string_view ZipReader::get_checked(std::string_view name) const {
  const std::string_view bytes = get(name);
  // Archives may be written without checksums (torch.serialization.set_crc32_options).
  const uint32_t expected = records_.find(name)->second.crc;
  if (expected != 0 && crc32(0, bytes.data(), bytes.size()) != expected)
    fail("the record '" + std::string(name) + "' is damaged: its checksum differs");
  return bytes;
}

}  // namespace transporters::dynamo

#include "transporters/dynamo/zip_writer.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "transporters/dynamo/crc32.h"
#include "transporters/dynamo/zip_format.h"
#include "transporters/error.h"
#include "transporters/graph/tensor_blocks.h"

namespace transporters::dynamo {
namespace {

// A block is still in the processor's cache when its bytes are written after their checksum was computed.
constexpr uint64_t kBlock = 1 << 20;

// Little-endian fields.
class Fields {
 public:
  Fields& u16(uint64_t value) { return put(value, 2); }
  Fields& u32(uint64_t value) { return put(value, 4); }
  Fields& u64(uint64_t value) { return put(value, 8); }
  Fields& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Fields& put(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

uint64_t or_zip64(uint64_t value) { return std::min<uint64_t>(value, zip::kUse64); }

uint64_t fnv1a(uint64_t hash, const void* data, size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) hash = (hash ^ p[i]) * 0x100000001B3;
  return hash;
}

}  // namespace

void ZipWriter::emit(const void* data, size_t size) {
  sink_(data, size);
  position_ += size;
}

void ZipWriter::begin(std::string_view name, uint64_t size) {
  Record record{.name = root_ + "/" + std::string(name), .offset = position_};
  if (record.name.size() > std::numeric_limits<uint16_t>::max())
    throw Error({.stage = "dynamo"}, "a record's name is longer than a zip file allows: " + record.name.substr(0, 80));
  const bool large = size >= zip::kUse64;
  Fields extra;
  if (large) extra.u16(zip::kZip64Field).u16(16).u64(0).u64(0);
  // The padding is an extra field of its own: id, length, filler.
  const uint64_t unpadded = position_ + zip::kLocalHeaderSize + record.name.size() + extra.bytes().size() + 4;
  const uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  extra.text("FB").u16(padding).text(std::string(padding, 'Z'));

  Fields header;
  header.u32(zip::kLocalHeader).u16(large ? zip::kVersion64 : zip::kVersion).u16(zip::kDescriptorFlag | zip::kUtf8Flag);
  header.u16(zip::kStored).u16(zip::kTime).u16(zip::kDate);
  header.u32(0).u32(large ? zip::kUse64 : 0).u32(large ? zip::kUse64 : 0);
  header.u16(record.name.size()).u16(extra.bytes().size()).text(record.name).text(extra.bytes());
  emit(header.bytes().data(), header.bytes().size());
  records_.push_back(std::move(record));
}

void ZipWriter::append(const void* data, uint64_t size) {
  Record& record = records_.back();
  const auto* p = static_cast<const char*>(data);
  for (uint64_t done = 0; done < size; done += kBlock) {
    const uint64_t block = std::min(kBlock, size - done);
    record.crc = crc32(record.crc, p + done, block);
    emit(p + done, block);
  }
  record.size += size;
}

void ZipWriter::end() {
  const Record& record = records_.back();
  Fields descriptor;
  descriptor.u32(zip::kDescriptor).u32(record.crc);
  if (record.size >= zip::kUse64) {
    descriptor.u64(record.size).u64(record.size);
  } else {
    descriptor.u32(record.size).u32(record.size);
  }
  emit(descriptor.bytes().data(), descriptor.bytes().size());
}

void ZipWriter::add(std::string_view name, std::string_view bytes) { add(name, bytes.data(), bytes.size()); }

void ZipWriter::add(std::string_view name, const void* data, uint64_t size) {
  begin(name, size);
  append(data, size);
  end();
}

void ZipWriter::add(std::string_view name, const TensorData& data) {
  begin(name, data.nbytes());
  for_each_block(data, kBlock, [this](const void* bytes, size_t size) { append(bytes, size); });
  end();
}

std::string ZipWriter::serialization_id() const {
  uint64_t names = 0xCBF29CE484222325, bytes = names;
  for (const Record& record : records_) {
    names = fnv1a(names, record.name.data(), record.name.size());
    bytes = fnv1a(bytes, &record.crc, sizeof record.crc);
    bytes = fnv1a(bytes, &record.size, sizeof record.size);
  }
  char text[41];
  std::snprintf(text, sizeof text, "%020llu%020llu", static_cast<unsigned long long>(names),
                static_cast<unsigned long long>(bytes));
  return text;
}

void ZipWriter::finish() {
  add(".data/serialization_id", serialization_id());
  const uint64_t directory = position_;
  for (const Record& record : records_) {
    Fields large;
    if (record.size >= zip::kUse64) large.u64(record.size).u64(record.size);
    if (record.offset >= zip::kUse64) large.u64(record.offset);
    Fields extra;
    if (!large.bytes().empty()) extra.u16(zip::kZip64Field).u16(large.bytes().size()).text(large.bytes());
    const uint16_t version = extra.bytes().empty() ? zip::kVersion : zip::kVersion64;

    Fields entry;
    entry.u32(zip::kDirectoryEntry).u16(version).u16(version).u16(zip::kDescriptorFlag | zip::kUtf8Flag);
    entry.u16(zip::kStored).u16(zip::kTime).u16(zip::kDate);
    entry.u32(record.crc).u32(or_zip64(record.size)).u32(or_zip64(record.size));
    entry.u16(record.name.size()).u16(extra.bytes().size()).u16(0);  // no comment
    entry.u16(0).u16(0).u32(0).u32(or_zip64(record.offset));         // disk, attributes
    entry.text(record.name).text(extra.bytes());
    emit(entry.bytes().data(), entry.bytes().size());
  }
  const uint64_t directory_size = position_ - directory;
  const uint64_t count = records_.size();
  Fields end;
  if (count >= zip::kUse64Count || directory >= zip::kUse64 || directory_size >= zip::kUse64) {
    end.u32(zip::kEnd64).u64(zip::kEnd64Size - 12).u16(zip::kVersion64).u16(zip::kVersion64).u32(0).u32(0);
    end.u64(count).u64(count).u64(directory_size).u64(directory);
    end.u32(zip::kEnd64Locator).u32(0).u64(position_).u32(1);
  }
  const uint64_t short_count = std::min<uint64_t>(count, zip::kUse64Count);
  end.u32(zip::kEnd).u16(0).u16(0).u16(short_count).u16(short_count);
  end.u32(or_zip64(directory_size)).u32(or_zip64(directory)).u16(0);
  emit(end.bytes().data(), end.bytes().size());
}

}  // namespace transporters::dynamo

#include "transporters/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "transporters/error.h"

namespace transporters {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error({.stage = "checkpoint", .file = path}, what + ": " + std::strerror(errno));
}

// Closes a descriptor on every way out.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// Living mappings by address.
struct Registry {
  std::mutex mutex;
  std::map<const std::byte*, const MappedFile*> mappings;
};

Registry& registry() {
  static auto* registry = new Registry();  // outlives every static object that holds a mapping
  return *registry;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) fail(path, "cannot be opened");
  struct stat status{};
  if (::fstat(file.fd, &status) != 0) fail(path, "cannot be examined");
  if (!S_ISREG(status.st_mode))
    throw Error({.stage = "checkpoint", .file = path},
                S_ISDIR(status.st_mode) ? "expected a file, got a folder" : "expected a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) fail(path, "cannot be mapped into memory");
  // Weights are mostly read once from front to back, by a writer.
  ::madvise(data, size, MADV_SEQUENTIAL);
  const std::shared_ptr<const MappedFile> mapping(new MappedFile(path, static_cast<const std::byte*>(data), size));
  const std::lock_guard lock(registry().mutex);
  registry().mappings[mapping->data()] = mapping.get();
  return mapping;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  {
    const std::lock_guard lock(registry().mutex);
    registry().mappings.erase(data_);
  }
  ::munmap(const_cast<std::byte*>(data_), size_);
}

std::optional<FilePlace> locate_mapped(const void* data, size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(registry().mutex);
  auto after = registry().mappings.upper_bound(begin);
  if (after == registry().mappings.begin()) return std::nullopt;
  const MappedFile& file = *std::prev(after)->second;
  const auto offset = static_cast<size_t>(begin - file.data());
  if (offset > file.size() || size > file.size() - offset) return std::nullopt;
  return FilePlace{file.path(), offset};
}

}  // namespace transporters

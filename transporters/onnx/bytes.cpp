#include "transporters/onnx/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transporters/error.h"

namespace transporters::onnx {

Bytes map_file(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& message) -> Error {
    return Error({.stage = "onnx", .file = path.string()}, message);
  };
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw fail(std::string("cannot open the file: ") + std::strerror(errno));
  struct stat status;
  Bytes bytes{.file = path.string()};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    throw fail("expected a regular file");
  }
  bytes.size = static_cast<uint64_t>(status.st_size);
  if (bytes.size > 0) {
    void* address = mmap(nullptr, bytes.size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int error = errno;
    close(descriptor);
    if (address == MAP_FAILED) throw fail(std::string("cannot map the file: ") + std::strerror(error));
    bytes.data = static_cast<const char*>(address);
    bytes.owner = std::shared_ptr<const void>(address, [size = bytes.size](void* mapped) { munmap(mapped, size); });
  } else {
    close(descriptor);
  }
  return bytes;
}

}  // namespace transporters::onnx

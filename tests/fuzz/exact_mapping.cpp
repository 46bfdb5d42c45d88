// Files that the readers map lie here in memory of exactly their size: the sanitizer sees a read past the end, which a
// mapping's last page would hide. The linker gives the readers' calls of mmap and munmap to these.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

extern "C" void* __real_mmap(void*, size_t, int, int, int, off_t);

extern "C" void* __wrap_mmap(void* at, size_t size, int protection, int flags, int descriptor, off_t offset) {
  if (descriptor < 0) return __real_mmap(at, size, protection, flags, descriptor, offset);
  void* memory = nullptr;
  if (posix_memalign(&memory, 4096, size) != 0) return MAP_FAILED;
  for (size_t done = 0; done < size;) {
    const ssize_t count =
        pread(descriptor, static_cast<char*>(memory) + done, size - done, offset + static_cast<off_t>(done));
    if (count <= 0) {
      std::free(memory);
      return MAP_FAILED;
    }
    done += static_cast<size_t>(count);
  }
  return memory;
}

extern "C" int __wrap_munmap(void* memory, size_t) {
  std::free(memory);
  return 0;
}

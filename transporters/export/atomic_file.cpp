#include "transporters/export/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "transporters/error.h"
#include "transporters/graph/tensor_blocks.h"

namespace transporters {
namespace {

constexpr size_t kBufferSize = 1 << 20;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what, int error) {
  std::string text = what + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) text += "; nothing was written, free some space or choose another folder";
  if (error == EACCES || error == EPERM || error == EROFS) text += "; choose a folder you may write to";
  throw Error({.stage = "write", .file = path.string()}, text);
}

constexpr std::string_view kTemporarySuffix = ".tmp";

// A name no other writer of this folder uses: ".model.onnx.PROCESS-COUNTER.tmp".
std::filesystem::path temporary_for(const std::filesystem::path& target) {
  static std::atomic<unsigned> counter{0};
  return target.parent_path() / ("." + target.filename().string() + "." + std::to_string(getpid()) + "-" +
                                 std::to_string(counter++) + std::string(kTemporarySuffix));
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kTemporarySuffix)) return false;
  name = name.substr(1, name.size() - 1 - kTemporarySuffix.size());
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const size_t dot = name.rfind('.');
  if (dot == 0 || dot == std::string_view::npos) return false;
  const std::string_view mark = name.substr(dot + 1);
  const size_t dash = mark.find('-');
  return dash != std::string_view::npos && is_number(mark.substr(0, dash)) && is_number(mark.substr(dash + 1));
}

// A lock that says "in use" to remove_stale() of other processes; held while the descriptor is open. False when
// somebody else has the file. File systems without locks have no stale files removed, and so need none.
bool lock(int descriptor, int kind) { return flock(descriptor, kind | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

// Removes temporary files whose writer is gone: nobody holds their lock.
void remove_stale(const std::filesystem::path& folder) {
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (!is_temporary_name(entry->path().filename().string())) continue;
    const int descriptor = open(entry->path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    struct stat status;
    const bool is_stale =
        fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    if (is_stale) unlink(entry->path().c_str());
    close(descriptor);
  }
}

// An open descriptor that goes with the scope.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }

 private:
  int descriptor_;
};

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// True when `length` bytes of an open file at `offset` begin and end as `data` does: the path still names the file that
// the tensor was mapped from.
bool holds_same_bytes(int descriptor, uint64_t offset, const char* data, uint64_t length) {
  char probe[4096];
  const uint64_t size = std::min<uint64_t>(length, sizeof probe);
  for (const uint64_t start : {uint64_t{0}, length - size}) {
    if (pread(descriptor, probe, size, static_cast<off_t>(offset + start)) != static_cast<ssize_t>(size)) return false;
    if (std::memcmp(probe, data + start, size) != 0) return false;
  }
  return true;
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path target, std::filesystem::path temporary)
    : target_(std::move(target)), temporary_(std::move(temporary)) {
  while (true) {
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    // Left by a process that had our number.
    if (descriptor_ < 0 && errno == EEXIST) {
      temporary_ = temporary_for(target_);
      continue;
    }
    if (descriptor_ < 0) fail(target_, "cannot create the file", errno);
    // Another process can take the file for a stale one before it is locked.
    struct stat status;
    if (lock(descriptor_, LOCK_EX) && fstat(descriptor_, &status) == 0 && status.st_nlink > 0) return;
    ::close(std::exchange(descriptor_, -1));
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::reserve(uint64_t size) {
  if (size == 0) return;
  const int error = posix_fallocate(descriptor_, 0, static_cast<off_t>(size));
  // File systems that can't preallocate report a full disk at the write.
  if (error != 0 && error != EOPNOTSUPP && error != EINVAL && error != ENODEV) {
    fail(target_, "cannot reserve " + std::to_string(size) + " bytes", error);
  }
  if (error == 0) reserved_ = size;
}

void OutputFile::write_through(const char* data, size_t size) {
  while (size > 0) {
    // Linux writes at most 2 GiB in one call.
    const ssize_t written = ::write(descriptor_, data, std::min<size_t>(size, size_t{1} << 30));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(target_, "cannot write", errno);
    }
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void OutputFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void OutputFile::write(const void* data, size_t size) {
  size_ += size;
  if (buffer_.size() + size > kBufferSize) flush();
  if (size >= kBufferSize) {
    write_through(static_cast<const char*>(data), size);
  } else {
    buffer_.append(static_cast<const char*>(data), size);
  }
}

void OutputFile::write(const TensorData& data) {
  if (data.nbytes() == 0) return;
  if (data.is_contiguous()) {
    if (!copy_from_file(data)) write(data.data, data.nbytes());
    return;
  }
  for_each_block(data, kBufferSize, [this](const void* block, size_t size) { write(block, size); });
}

bool OutputFile::copy_from_file(const TensorData& data) {
  const uint64_t length = data.nbytes();
  if (data.file.empty() || length < kBufferSize) return false;
  const int source = open(data.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) return false;
  bool copied = holds_same_bytes(source, data.file_offset, static_cast<const char*>(data.data), length);
  if (copied) {
    flush();
    off_t offset = static_cast<off_t>(data.file_offset);
    uint64_t left = length;
    while (left > 0) {
      const ssize_t count = copy_file_range(source, &offset, descriptor_, nullptr, left, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      left -= static_cast<uint64_t>(count);
    }
    // What the kernel would not copy (other file system, old kernel) is written from the mapping.
    write_through(static_cast<const char*>(data.data) + (length - left), left);
    size_ += length;
  }
  ::close(source);
  return copied;
}

void OutputFile::pad_to(uint64_t offset) {
  static constexpr char kZeros[4096] = {};
  while (size_ < offset) write(kZeros, std::min<uint64_t>(offset - size_, sizeof kZeros));
}

void OutputFile::finish() {
  if (is_finished_) return;
  flush();
  if (reserved_ > size_ && ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) fail(target_, "cannot write", errno);
  if (fsync(descriptor_) != 0) fail(target_, "cannot write", errno);
  is_finished_ = true;
}

AtomicFiles::AtomicFiles(std::filesystem::path folder) : folder_(std::move(folder)) {
  if (folder_.empty()) folder_ = ".";
  std::error_code error;
  for (auto missing = folder_; !missing.empty() && !std::filesystem::exists(missing, error);
       missing = missing.parent_path()) {
    if (missing.has_filename()) new_folders_.insert(new_folders_.begin(), missing);
  }
  std::filesystem::create_directories(folder_, error);
  if (error) fail(folder_, "cannot make the folder", error.value());
  if (!std::filesystem::is_directory(folder_, error)) fail(folder_, "cannot make the folder", ENOTDIR);
}

AtomicFiles::~AtomicFiles() {
  if (committed_) return;
  std::error_code ignored;
  for (const auto& file : files_) std::filesystem::remove(file->temporary(), ignored);
  // Only empty folders go: another writer may have put something there meanwhile.
  for (auto folder = new_folders_.rbegin(); folder != new_folders_.rend(); ++folder) rmdir(folder->c_str());
}

OutputFile& AtomicFiles::create(const std::string& name) {
  const auto target = folder_ / name;
  for (const auto& file : files_) {
    if (file->target() == target) throw InternalError("file '" + target.string() + "' is written twice");
  }
  files_.push_back(std::make_unique<OutputFile>(target, temporary_for(target)));
  return *files_.back();
}

void AtomicFiles::remove(const std::string& name) { removals_.push_back(folder_ / name); }

std::vector<std::string> AtomicFiles::commit() {
  for (const auto& file : files_) file->finish();
  for (const auto& file : files_) {
    struct stat status;
    if (stat(file->target().c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      fail(file->target(), "cannot replace the file", EISDIR);
    }
  }

  // Old files trade places with new ones, so that a rename that fails can be undone.
  size_t done = 0;
  std::vector<bool> exchanged(files_.size());
  // They then lie under temporary names, and are not stale.
  std::vector<Descriptor> old_files;
  for (const auto& file : files_) {
    const int descriptor = open(file->target().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    old_files.emplace_back(descriptor);
    lock(descriptor, LOCK_SH);
  }
  for (; done < files_.size(); ++done) {
    const auto& file = *files_[done];
    if (renameat2(AT_FDCWD, file.temporary().c_str(), AT_FDCWD, file.target().c_str(), RENAME_EXCHANGE) == 0) {
      exchanged[done] = true;
    } else if (rename(file.temporary().c_str(), file.target().c_str()) != 0) {
      break;
    }
  }
  if (done < files_.size()) {
    const int error = errno;
    const auto target = files_[done]->target();
    while (done-- > 0) {
      const auto& file = *files_[done];
      if (exchanged[done]) {
        renameat2(AT_FDCWD, file.temporary().c_str(), AT_FDCWD, file.target().c_str(), RENAME_EXCHANGE);
      } else {
        rename(file.target().c_str(), file.temporary().c_str());
      }
    }
    fail(target, "cannot rename the finished file", error);
  }

  committed_ = true;
  std::error_code ignored;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (exchanged[i]) std::filesystem::remove(files_[i]->temporary(), ignored);
  }
  for (const auto& path : removals_) std::filesystem::remove(path, ignored);
  remove_stale(folder_);
  sync_folder(folder_);
  std::vector<std::string> names;
  for (const auto& file : files_) names.push_back(file->target().filename().string());
  files_.clear();
  return names;
}

}  // namespace transporters

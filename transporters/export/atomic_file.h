// Output files that appear whole and together, or not at all.
//
// Each file is written under a temporary name in the target folder. commit() flushes them to disk and renames them;
// when anything fails before, or commit() is never reached, the folder is as it was: new folders and temporary files
// are removed, old files are untouched. What a killed process left under temporary names goes at the next commit() to
// the folder: a running writer holds a lock on each of its files, a dead one none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/graph/tensor_data.h"

namespace transporters {

// A file being written, made by AtomicFiles. Every member throws Error (stage "write") with the target's path and the
// system's text on failure.
class OutputFile {
 public:
  OutputFile(std::filesystem::path target, std::filesystem::path temporary);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Claims `size` bytes of disk, so that a full disk is found out before anything is written.
  void reserve(uint64_t size);
  // Small writes are buffered.
  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Appends a tensor's elements in row-major order. Contiguous bytes go straight from where they lie (from file to file
  // when `data.file` still holds them); others are gathered in blocks.
  void write(const TensorData& data);
  // Appends zeros until size() is `offset`, which must not lie behind.
  void pad_to(uint64_t offset);
  // Bytes written so far.
  uint64_t size() const { return size_; }

  // Everything written reaches the disk; no write may follow. The lock is held until the destructor.
  void finish();

  const std::filesystem::path& target() const { return target_; }
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  void flush();
  void write_through(const char* data, size_t size);
  bool copy_from_file(const TensorData& data);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  bool is_finished_ = false;
  uint64_t size_ = 0;
  uint64_t reserved_ = 0;
  std::string buffer_;
};

class AtomicFiles {
 public:
  // Files go to `folder`, which is made when it is missing. Throws Error when it can't be made or written to.
  explicit AtomicFiles(std::filesystem::path folder);
  ~AtomicFiles();
  AtomicFiles(const AtomicFiles&) = delete;
  AtomicFiles& operator=(const AtomicFiles&) = delete;

  // Starts the file `name` of the folder ("model.onnx"). The reference is valid until commit().
  OutputFile& create(const std::string& name);
  // commit() removes this file of the folder when it exists: what an earlier run left and this one does not write.
  void remove(const std::string& name);
  // Makes all files appear, in order of creation; earlier files of these names are replaced. Returns the names.
  std::vector<std::string> commit();

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> new_folders_;  // outermost first
  std::vector<std::unique_ptr<OutputFile>> files_;
  std::vector<std::filesystem::path> removals_;
  bool committed_ = false;
};

}  // namespace transporters

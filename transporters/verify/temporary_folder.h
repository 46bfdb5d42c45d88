// A new folder that goes, with what is in it, when this does.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "transporters/error.h"

namespace transporters {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto parent = std::filesystem::temp_directory_path();
    std::string name = (parent / "transporters-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw Error(ErrorContext{.stage = "verify", .file = parent.string()}, "can't make a temporary folder here");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace transporters

// Programs in .pt2 files, PyTorch's archive of torch.export.ExportedProgram.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "transporters/export/atomic_file.h"
#include "transporters/graph/program.h"

namespace transporters::dynamo {

struct SaveOptions {
  // Texts to keep in the archive's "extra/" folder by name; torch.export.load gives them back through its extra_files.
  std::map<std::string, std::string> extra_files;
};

// Writes the program for torch.export.load of torch 2.13 or later. The file appears whole or not at all; weights go
// straight from where they lie to the disk; the same program gives the same bytes. Throws Error when the program holds
// what the format can't (a string output, quantised tensors), when state is missing, or when the disk refuses.
void save(const Program& program, const std::filesystem::path& path, const SaveOptions& options = {});

// The same into a file of an AtomicFiles, for several that appear together; the caller commits.
void save(const Program& program, OutputFile& file, const SaveOptions& options = {});

// Reads an archive of this library or of torch.export.save (2.5 and later). Weights stay in the file and are mapped.
// Symbols keep the names that save() was given; those of torch's files keep torch's ("s77"). Throws Error for damaged
// files and for what a Program can't hold: higher-order ops, custom objects, ops that are not registered.
Program load(const std::filesystem::path& path);

}  // namespace transporters::dynamo

// Programs in .pt2 files, PyTorch's archive of torch.export.ExportedProgram.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

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

// A program and its name in an archive of several ("decode").
struct NamedProgram {
  std::string name;
  const Program* program;
};

// Several programs in one archive, for torch.export.pt2_archive's load_pt2: models/<name>.json for each. Weights that
// several of them use, the same memory, are in it once.
void save(const std::vector<NamedProgram>& programs, OutputFile& file, const SaveOptions& options = {});

// Reads an archive of this library or of torch.export.save (2.5 and later). Weights stay in the file and are mapped.
// Symbols keep the names that save() was given; those of torch's files keep torch's ("s77"). `model` names the program
// to take; "" is for archives of one. Throws Error for damaged files, for names that the archive lacks, and for what a
// Program can't hold: higher-order ops, custom objects, ops that are not registered.
Program load(const std::filesystem::path& path, const std::string& model = "");

// Names of the programs that an archive holds.
std::vector<std::string> model_names(const std::filesystem::path& path);

}  // namespace transporters::dynamo

// `verify` of an export made with --generation.
#pragma once

#include <optional>
#include <string>

#include "cli/artifact.h"

namespace transporters::cli {

struct VerifyGenerationArguments {
  std::string reference;  // checkpoint folder
  std::string attention;  // "": the export's
  std::string onnxruntime;
  std::optional<double> tolerance;
  bool json = false;
};

// Whether the export's components are the stages of a generation loop.
bool is_generation(const Export& exported);

// Generates with the export and with the eager model side by side, both going on with the eager model's tokens, from
// prompts of several batches and lengths, and compares the logits of every step. Prints a table, or JSON; returns an
// ExitCode. Throws Error, and UsageError without a reference.
int verify_generation(const Export& exported, const VerifyGenerationArguments& arguments);

}  // namespace transporters::cli

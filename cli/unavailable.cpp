#include "cli/unavailable.h"

namespace transporters::cli {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError(what + " is not part of this build; it exports to dynamo and onnx");
}

}  // namespace

void add_unavailable_export_options(CLI::App& command) {
  for (const char* option : {"--backend", "--quantizer"})
    command
        .add_option_function<std::string>(option,
                                          [option](const std::string&) { refuse("option " + std::string(option)); })
        ->group("");
}

void check_available(ExportFormat format) {
  if (!is_available(format)) refuse("format '" + std::string(to_string(format)) + "'");
}

}  // namespace transporters::cli

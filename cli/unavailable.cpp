#include "cli/unavailable.h"

namespace transporters::cli {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError(what + " is not part of this build; it exports single graphs to dynamo and onnx");
}

}  // namespace

void add_unavailable_commands(CLI::App& app, Command& chosen) {
  CLI::App* generate = app.add_subcommand("generate", "Generate tokens from an export (not part of this build)");
  generate->allow_extras();
  generate->callback([&chosen] { chosen = []() -> int { refuse("the command 'generate'"); }; });
}

void add_unavailable_export_options(CLI::App& command) {
  for (const char* flag : {"--generation", "--multi-token-decode"})
    command.add_flag_function(flag, [flag](int64_t) { refuse("option " + std::string(flag)); })->group("");
  for (const char* option : {"--static-cache", "--backend", "--quantizer"})
    command
        .add_option_function<std::string>(option,
                                          [option](const std::string&) { refuse("option " + std::string(option)); })
        ->group("");
}

void check_available(ExportFormat format) {
  if (!is_available(format)) refuse("format '" + std::string(to_string(format)) + "'");
}

}  // namespace transporters::cli

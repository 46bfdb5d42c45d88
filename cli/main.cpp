// The command line: transporters COMMAND ... Exit codes: 0 done, 1 failed, 2 wrong usage, 3 verification failed.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "transporters/error.h"
#include "transporters/version.h"

namespace transporters::cli {
namespace {

// One line on stderr, or on stdout a JSON object for callers that asked for JSON.
void report(bool json, const std::string& stage, const std::string& line, Json details) {
  if (!json) {
    std::cerr << "error: " << line << "\n";
    return;
  }
  details["stage"] = stage;
  details["message"] = line;
  print_json(Json{{"error", details}});
}

// `command` is the stage of an error that says none.
int failed(bool json, const Error& error, const std::string& command) {
  const ErrorContext& context = error.context();
  Json details = Json::object();
  if (!context.op.empty()) details["op"] = context.op;
  if (!context.module.empty()) details["module"] = context.module;
  if (!context.file.empty()) details["file"] = context.file;
  const std::string stage = context.stage.empty() ? command : context.stage;
  const std::string line = one_line(error.what());
  report(json, stage, context.stage.empty() ? "[" + stage + "] " + line : line, details);
  return kFailed;
}

int wrong_usage(bool json, const std::string& message) {
  report(json, "usage", "[usage] " + one_line(message), Json::object());
  return kUsage;
}

void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  const std::string near = did_you_mean(argv[1], names);
  throw UsageError("unknown command '" + std::string(argv[1]) + "'" + (near.empty() ? "; commands are " + list : near));
}

int run(int argc, char** argv) {
  const bool json = std::find(argv, argv + argc, std::string("--json")) != argv + argc;
  CLI::App app("Exports Hugging Face checkpoints to .pt2 and ONNX.", "transporters");
  app.set_version_flag("--version", std::string("transporters " TRANSPORTERS_VERSION));
  app.require_subcommand(1);
  app.footer("'transporters COMMAND --help' tells a command's options.");
  Command chosen;
  add_export(app, chosen);
  add_verify(app, chosen);
  add_generate(app, chosen);
  add_run(app, chosen);
  add_inspect(app, chosen);
  add_list(app, chosen);
  try {
    check_command(app, argc, argv);
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return wrong_usage(json, error.what());
  } catch (const UsageError& error) {
    return wrong_usage(json, error.what());
  } catch (const Error& error) {
    return failed(json, error, argv[1]);
  } catch (const InternalError& error) {
    report(json, "internal", "[internal] " + one_line(error.what()) + "; this is a bug, please report it",
           Json::object());
    return kFailed;
  } catch (const std::exception& error) {
    report(json, "internal", "[internal] " + one_line(error.what()), Json::object());
    return kFailed;
  }
}

}  // namespace
}  // namespace transporters::cli

int main(int argc, char** argv) { return transporters::cli::run(argc, argv); }

// transporters run DIR --input FILE.safetensors --output FILE.safetensors
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/artifact.h"
#include "cli/common.h"
#include "transporters/checkpoint/tensors.h"
#include "transporters/error.h"

namespace transporters::cli {
namespace {

struct RunArguments {
  std::string path;
  std::string input;
  std::string output;
  std::string component;
  std::string onnxruntime;
  bool json = false;
};

std::string shape_text(const at::Tensor& tensor) {
  std::string text = "[";
  for (int64_t i = 0; i < tensor.dim(); ++i) text += (i ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

int run_run(const RunArguments& arguments) {
  check_folder_of("--output", arguments.output);
  const Export exported = open_export(arguments.path);
  Progress progress;
  progress.step("loading " + arguments.path);
  const auto artifact = open_artifact(exported, find_component(exported, arguments.component), arguments.onnxruntime);
  std::map<std::string, at::Tensor> inputs;
  for (auto& [name, tensor] : load_tensors(arguments.input)) inputs.emplace(name, tensor);
  Stopwatch watch;
  progress.step("running");
  const auto outputs = artifact->run(inputs);
  const double seconds = watch.lap();
  save_tensors({outputs.begin(), outputs.end()}, arguments.output);
  progress.clear();

  if (arguments.json) {
    Json json{{"output", arguments.output}, {"seconds", seconds}, {"outputs", Json::object()}};
    for (const auto& [name, tensor] : outputs) json["outputs"][name] = tensor.sizes().vec();
    print_json(json);
    return kDone;
  }
  std::cout << "Ran in " << seconds_text(seconds) << "; wrote " << arguments.output << "\n";
  for (const auto& [name, tensor] : outputs) std::cout << "  " << name << "  " << shape_text(tensor) << "\n";
  return kDone;
}

}  // namespace

void add_run(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("run", "Run an export on tensors of a safetensors file");
  const auto arguments = std::make_shared<RunArguments>();
  command->add_option("export", arguments->path, "Export folder, or a .pt2 or .onnx file")->required();
  command->add_option("--input", arguments->input, "safetensors file with a tensor for each input")
      ->required()
      ->check(kNotEmpty);
  command->add_option("--output", arguments->output, "safetensors file to write the outputs to")
      ->required()
      ->check(kNotEmpty);
  command->add_option("--component", arguments->component, "Which graph, when the export has several")
      ->check(kNotEmpty);
  command->add_option("--onnxruntime", arguments->onnxruntime, "The ONNX Runtime library (libonnxruntime.so)")
      ->check(kNotEmpty);
  command->add_flag("--json", arguments->json, "Print the result as JSON");
  command->callback([&chosen, arguments] { chosen = [arguments] { return run_run(*arguments); }; });
}

}  // namespace transporters::cli

// transporters verify DIR [--reference CHECKPOINT]: runs the artefact at several sizes and compares it with the eager
// model of the native zoo.
#include <ATen/ATen.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/artifact.h"
#include "cli/common.h"
#include "transporters/checkpoint/config.h"
#include "transporters/checkpoint/safetensors.h"
#include "transporters/error.h"
#include "transporters/models/auto.h"

namespace transporters::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBatches[] = {1, 2, 3};
constexpr int64_t kLengths[] = {1, 5, 11};

struct VerifyArguments {
  std::string path;
  std::string reference;
  std::string component;
  std::string onnxruntime;
  std::optional<double> tolerance;
  bool json = false;
};

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorContext{.stage = "verify"}, message); }

// Largest difference that counts as equal, as a part of the largest reference value.
double default_tolerance(at::ScalarType dtype) {
  if (dtype == at::kHalf) return 1e-2;
  if (dtype == at::kBFloat16) return 5e-2;
  return 1e-4;
}

// A folder that goes when this does.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "transporters-XXXXXX").string();
    if (!mkdtemp(name.data())) fail("can't make a temporary folder in " + fs::temp_directory_path().string());
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The eager model: from the reference checkpoint, else from the artefact's own weights.
std::shared_ptr<PreTrainedModel> load_reference(const VerifyArguments& arguments, const Export& exported,
                                                const ManifestEntry& component, const Artifact& artifact) {
  LoadOptions options;
  options.dtype = dtype_from_name(component.metadata.export_dtype);
  const std::string& architecture = component.metadata.architecture;
  if (!arguments.reference.empty()) return load_model(arguments.reference, options, architecture);
  const auto weights = artifact.weights();
  const fs::path config = exported.folder / "config.json";
  if (weights.empty() || exported.folder.empty() || !fs::exists(config))
    throw UsageError("give --reference CHECKPOINT: '" + arguments.path +
                     "' does not keep config.json and the weights under their checkpoint's names");
  const TemporaryFolder folder;
  fs::copy_file(config, folder.path() / "config.json");
  write_safetensors(folder.path() / "model.safetensors", {weights.begin(), weights.end()});
  return load_model(folder.path(), options, architecture);
}

// Masks some tokens of each row: rows in turn are whole, padded on the left, padded on the right.
void pad(at::Tensor& mask) {
  const int64_t length = mask.size(1);
  const int64_t padded = length / 3;
  if (padded == 0) return;
  for (int64_t row = 0; row < mask.size(0); ++row) {
    const int64_t kind = (row + length) % 3;
    if (kind == 1) mask[row].slice(0, 0, padded).zero_();
    if (kind == 2) mask[row].slice(0, length - padded, length).zero_();
  }
}

// Inputs of these sizes; nullopt when the artefact does not take them.
std::optional<ModelInputs> make_inputs(const PreTrainedModel& model, const Artifact& artifact, int64_t batch,
                                       int64_t length) {
  ModelInputs inputs = model.example_inputs(batch, length);
  if (at::Tensor mask = inputs.tensor("attention_mask"); mask.defined() && mask.dim() == 2) {
    mask = mask.clone();
    pad(mask);
    inputs.set("attention_mask", mask);
  }
  for (const auto& input : artifact.inputs()) {
    const at::Tensor tensor = inputs.tensor(input.name);
    if (!tensor.defined())
      fail("the artefact takes '" + input.name + "', for which there is no sample; try 'transporters run'");
    if (static_cast<size_t>(tensor.dim()) != input.sizes.size()) return std::nullopt;
    for (int64_t axis = 0; axis < tensor.dim(); ++axis)
      if (!input.sizes[axis].contains(tensor.size(axis))) return std::nullopt;
  }
  return inputs;
}

struct Difference {
  double absolute = 0;
  double relative = 0;  // to the largest reference value of that output
  std::string output;   // the worst one
};

// Infinite where sizes differ, or where one side alone is not a number.
double largest_difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return INFINITY;
  if (actual.numel() == 0) return 0;
  const at::Tensor a = actual.to(at::kDouble);
  const at::Tensor b = expected.to(at::kDouble);
  const at::Tensor same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  const at::Tensor difference = (a - b).abs().masked_fill(same, 0);
  return difference.isfinite().all().item<bool>() ? difference.max().item<double>() : INFINITY;
}

double largest_value(const at::Tensor& tensor) {
  const at::Tensor finite = tensor.to(at::kDouble).abs().nan_to_num(0, 0, 0);
  return finite.numel() ? finite.max().item<double>() : 0;
}

Difference compare(const std::map<std::string, at::Tensor>& actual, const ModelOutput& expected) {
  Difference worst;
  for (const auto& [path, tensor] : expected.leaves()) {
    // An ONNX output that shares its name with an input is "output.<name>".
    auto found = actual.find(path);
    if (found == actual.end()) found = actual.find("output." + path);
    if (found == actual.end()) fail("the artefact has no output '" + path + "', which the model returns");
    const double absolute = largest_difference(found->second, tensor);
    const double relative = absolute == 0 ? 0 : absolute / std::max(largest_value(tensor), 1e-30);
    if (worst.output.empty() || relative > worst.relative) worst = {absolute, relative, path};
  }
  return worst;
}

struct Run {
  int64_t batch;
  int64_t length;
  Difference difference;
  bool ok;
};

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", value);
  return text;
}

void print_runs(const std::vector<Run>& runs, int64_t skipped, double tolerance, bool ok) {
  std::vector<std::vector<std::string>> table{{"batch", "length", "difference", "relative", "worst output", ""}};
  for (const auto& run : runs)
    table.push_back({std::to_string(run.batch), std::to_string(run.length), number_text(run.difference.absolute),
                     number_text(run.difference.relative), run.difference.output, run.ok ? "ok" : "DIFFERS"});
  std::cout << table_text(table);
  if (skipped) std::cout << "  " << skipped << " sizes left out: the export does not take them\n";
  std::cout << (ok ? "Equal" : "Not equal") << " to eager within " << number_text(tolerance)
            << " of the largest value\n";
}

void print_runs_json(const std::vector<Run>& runs, int64_t skipped, double tolerance, bool ok) {
  Json json{{"ok", ok}, {"tolerance", tolerance}, {"skipped", skipped}, {"runs", Json::array()}};
  for (const auto& run : runs)
    json["runs"].push_back({{"batch", run.batch},
                            {"length", run.length},
                            {"difference", run.difference.absolute},
                            {"relative", run.difference.relative},
                            {"worst_output", run.difference.output},
                            {"ok", run.ok}});
  print_json(json);
}

// Sizes of the traced example, from the manifest.
std::optional<std::pair<int64_t, int64_t>> traced_sizes(const ManifestEntry& component) {
  const Json kwargs = Json::parse(component.metadata.kwargs);
  for (const auto& [name, input] : kwargs.items()) {
    if (!input.contains("shape")) continue;
    const auto shape = input["shape"].get<std::vector<int64_t>>();
    if (shape.size() >= 2) return std::pair(shape[0], shape[1]);
  }
  return std::nullopt;
}

int run_verify(const VerifyArguments& arguments) {
  const Export exported = open_export(arguments.path);
  const ManifestEntry& component = find_component(exported, arguments.component);
  Progress progress;
  progress.step("loading " + arguments.path);
  const auto artifact = open_artifact(exported, component, arguments.onnxruntime);
  progress.step("loading the reference");
  const auto model = load_reference(arguments, exported, component, *artifact);
  const double tolerance = arguments.tolerance.value_or(default_tolerance(model->dtype()));

  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const int64_t batch : kBatches)
    for (const int64_t length : kLengths) sizes.emplace_back(batch, length);
  if (const auto traced = traced_sizes(component)) sizes.push_back(*traced);

  std::vector<Run> runs;
  std::set<std::pair<int64_t, int64_t>> done;
  int64_t skipped = 0;
  bool ok = true;
  for (const auto& [batch, length] : sizes) {
    if (!done.emplace(batch, length).second) continue;
    const auto inputs = make_inputs(*model, *artifact, batch, length);
    if (!inputs) {
      ++skipped;
      continue;
    }
    progress.step("batch " + std::to_string(batch) + ", length " + std::to_string(length));
    std::map<std::string, at::Tensor> named;
    for (const auto& input : artifact->inputs()) named.emplace(input.name, inputs->tensor(input.name));
    const at::NoGradGuard no_gradients;
    const Difference difference = compare(artifact->run(named), model->forward(*inputs));
    runs.push_back({batch, length, difference, difference.relative <= tolerance});
    ok = ok && runs.back().ok;
  }
  progress.clear();
  if (runs.empty()) fail("none of the sizes that verify tries fits the export, and its manifest names no traced sizes");
  if (arguments.json)
    print_runs_json(runs, skipped, tolerance, ok);
  else
    print_runs(runs, skipped, tolerance, ok);
  return ok ? kDone : kVerificationFailed;
}

}  // namespace

void add_verify(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("verify", "Run an export at several sizes and compare it with eager");
  const auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("export", arguments->path, "Export folder, or a .pt2 or .onnx file")->required();
  command->add_option("--reference", arguments->reference,
                      "Checkpoint folder of the eager model; a .pt2 export can be compared with its own weights");
  command->add_option("--component", arguments->component, "Which graph, when the export has several");
  command->add_option("--tolerance", arguments->tolerance, "Largest difference, as a part of the largest value");
  command->add_option("--onnxruntime", arguments->onnxruntime, "The ONNX Runtime library (libonnxruntime.so)");
  command->add_flag("--json", arguments->json, "Print the result as JSON");
  command->callback([&chosen, arguments] { chosen = [arguments] { return run_verify(*arguments); }; });
}

}  // namespace transporters::cli

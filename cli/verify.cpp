// transporters verify DIR [--reference CHECKPOINT]: runs the artefact at several sizes and compares it with the eager
// model of the native zoo, or with a .pt2; where they differ, tells at which node that starts.
#include <ATen/core/Tensor.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/artifact.h"
#include "cli/common.h"
#include "cli/reference.h"
#include "cli/verify_generation.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/layers/attention.h"
#include "transporters/verify/divergence.h"

namespace transporters::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBatches[] = {1, 2, 3};
constexpr int64_t kLengths[] = {1, 5, 11};
// What is traced when the manifest does not say.
constexpr std::pair<int64_t, int64_t> kTracedSizes{2, 5};

struct VerifyArguments {
  std::string path;
  std::string reference;
  std::string component;
  std::string attention;  // "": the export's
  std::string onnxruntime;
  std::optional<double> tolerance;
  bool bisect = false;
  bool json = false;
};

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorContext{.stage = "verify"}, message); }

// Inputs of these sizes; nullopt when the artefact or the reference does not take them.
std::optional<NamedTensors> make_inputs(const Reference& reference, const Artifact& artifact, int64_t batch,
                                        int64_t length) {
  auto inputs = reference.inputs(batch, length);
  if (!inputs) return std::nullopt;
  for (const auto& input : artifact.inputs()) {
    const auto found = inputs->find(input.name);
    if (found == inputs->end())
      fail("the artefact takes '" + input.name +
           "', for which there is no sample; verify a generation's stages together, " +
           "by the export's folder without --component, or try 'transporters run'");
    const at::Tensor& tensor = found->second;
    if (static_cast<size_t>(tensor.dim()) != input.sizes.size()) return std::nullopt;
    for (int64_t axis = 0; axis < tensor.dim(); ++axis)
      if (!input.sizes[axis].contains(tensor.size(axis))) return std::nullopt;
  }
  return inputs;
}

struct WorstOutput {
  Difference difference;
  std::string name;
};

WorstOutput compare(const NamedTensors& actual, const NamedTensors& expected) {
  WorstOutput worst;
  for (const auto& [path, tensor] : expected) {
    // An ONNX output that shares its name with an input is "output.<name>".
    auto found = actual.find(path);
    if (found == actual.end()) found = actual.find("output." + path);
    if (found == actual.end()) fail("the artefact has no output '" + path + "', which the reference returns");
    const Difference difference = largest_difference(found->second, tensor);
    if (worst.name.empty() || difference.relative > worst.difference.relative) worst = {difference, path};
  }
  return worst;
}

struct Run {
  int64_t batch;
  int64_t length;
  WorstOutput worst;
  bool ok;
};

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", value);
  return text;
}

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

// Where a run starts to differ.
struct Bisection {
  int64_t batch;
  int64_t length;
  DivergenceReport report;
};

// Null where a number is infinite, which JSON lacks.
Json difference_json(const std::optional<Difference>& difference) {
  if (!difference) return {{"difference", nullptr}, {"relative", nullptr}};
  return {{"difference", difference->absolute}, {"relative", difference->relative}};
}

Json differences_json(const std::vector<NamedDifference>& differences) {
  Json json = Json::array();
  for (const auto& [name, difference] : differences) {
    json.push_back({{"name", name}});
    json.back().update(difference_json(difference));
    json.back()["compared"] = difference.has_value();
  }
  return json;
}

Json bisection_json(const Bisection& bisection) {
  const DivergenceReport& report = bisection.report;
  Json json{{"batch", bisection.batch},
            {"length", bisection.length},
            {"values", report.values},
            {"compared", report.compared},
            {"first", nullptr}};
  if (const auto& first = report.first) {
    json["first"] = {{"value", first->value},   {"op", first->op},       {"aten_op", first->reference_op},
                     {"module", first->module}, {"sizes", first->sizes}, {"expected_sizes", first->reference_sizes}};
    json["first"].update(difference_json(first->difference));
    json["first"]["inputs"] = differences_json(first->inputs);
  }
  json["weights"] = differences_json(report.weights);
  return json;
}

void print_differences(const std::vector<NamedDifference>& differences, size_t listed) {
  std::vector<std::vector<std::string>> table{{"name", "difference", "relative"}};
  for (size_t i = 0; i < std::min(differences.size(), listed); ++i) {
    const auto& [name, difference] = differences[i];
    table.push_back({name, difference ? number_text(difference->absolute) : "not compared",
                     difference ? number_text(difference->relative) : ""});
  }
  std::cout << table_text(table);
  if (differences.size() > listed) std::cout << "  ... and " << differences.size() - listed << " more\n";
}

void print_bisection(const Bisection& bisection) {
  constexpr size_t kListed = 8;
  const DivergenceReport& report = bisection.report;
  const std::string where =
      " at batch " + std::to_string(bisection.batch) + ", length " + std::to_string(bisection.length);
  if (const auto& first = report.first) {
    const std::string ops = first->op == first->reference_op ? first->op : first->op + ", " + first->reference_op;
    std::cout << "\nFirst difference" << where << ": '" << first->value << "' (" << ops << ")"
              << (first->module.empty() ? "" : " in " + first->module) << "\n"
              << "  sizes " << sizes_text(first->sizes);
    if (first->sizes != first->reference_sizes) std::cout << ", expected " << sizes_text(first->reference_sizes);
    std::cout << "; largest difference " << number_text(first->difference.absolute) << ", "
              << number_text(first->difference.relative) << " of the largest value\n";
    if (!first->inputs.empty()) {
      std::cout << "  it reads\n";
      print_differences(first->inputs, first->inputs.size());
    }
  } else {
    std::cout << "\nNo difference" << where << " in any value that was compared\n";
  }
  if (!report.weights.empty()) {
    std::cout << "Weights that differ\n";
    print_differences(report.weights, kListed);
  }
  std::cout << "Compared " << report.compared << " of " << report.values << " values of the graph\n";
}

void print_runs(const std::vector<Run>& runs, int64_t skipped, double tolerance, bool ok) {
  std::vector<std::vector<std::string>> table{{"batch", "length", "difference", "relative", "worst output", ""}};
  for (const auto& run : runs)
    table.push_back({std::to_string(run.batch), std::to_string(run.length), number_text(run.worst.difference.absolute),
                     number_text(run.worst.difference.relative), run.worst.name, run.ok ? "ok" : "DIFFERS"});
  std::cout << table_text(table);
  if (skipped) std::cout << "  " << skipped << " sizes left out: the export does not take them\n";
  std::cout << (ok ? "Equal" : "Not equal") << " to eager within " << number_text(tolerance)
            << " of the largest value\n";
}

Json runs_json(const std::vector<Run>& runs, int64_t skipped, double tolerance, bool ok) {
  Json json{{"ok", ok}, {"tolerance", tolerance}, {"skipped", skipped}, {"runs", Json::array()}};
  for (const auto& run : runs)
    json["runs"].push_back({{"batch", run.batch},
                            {"length", run.length},
                            {"difference", run.worst.difference.absolute},
                            {"relative", run.worst.difference.relative},
                            {"worst_output", run.worst.name},
                            {"ok", run.ok}});
  return json;
}

// Sizes of the traced example, from the manifest.
std::optional<std::pair<int64_t, int64_t>> traced_sizes(const ManifestEntry& component) {
  if (component.metadata.kwargs.empty()) return std::nullopt;  // a file without its manifest
  const Json kwargs = Json::parse(component.metadata.kwargs);
  for (const auto& [name, input] : kwargs.items()) {
    if (!input.contains("shape")) continue;
    const auto shape = input["shape"].get<std::vector<int64_t>>();
    if (shape.size() >= 2) return std::pair(shape[0], shape[1]);
  }
  return std::nullopt;
}

// What the artefact was exported with; for files without a manifest, and for configs of other exporters that this build
// does not know, every axis is dynamic.
ExportConfig export_config(const Export& exported, const ManifestEntry& component) {
  try {
    if (!component.metadata.export_config.empty()) return AutoExportConfig::from_json(component.metadata.export_config);
  } catch (const Error&) {
  }
  if (exported.format == ExportFormat::Onnx) return OnnxConfig{.dynamic = true};
  return DynamoConfig{.dynamic = true};
}

DivergenceReport bisect(const VerifyArguments& arguments, const Export& exported, const ManifestEntry& component,
                        const Reference& reference, const NamedTensors& inputs, double tolerance) {
  const Program program =
      reference.program(traced_sizes(component).value_or(kTracedSizes), inputs, export_config(exported, component));
  const DivergenceOptions options{.tolerance = tolerance, .onnxruntime = arguments.onnxruntime};
  const fs::path file = exported.folder / component.file;
  if (exported.format == ExportFormat::Onnx) return find_divergence(file, program, inputs, options);
  return find_divergence(dynamo::load(file, model_in_file(exported.components, component)), program, inputs, options);
}

// Rows that attend to nothing come out differently, so another kind of attention is a likely reason.
void hint_at_attention(const Reference& reference, const ManifestEntry& component, const Artifact& artifact) {
  if (reference.attention().empty()) return;
  const std::string own = component.metadata.attention.empty() ? artifact.attention() : component.metadata.attention;
  if (own == reference.attention()) return;
  const std::string computed = "the eager model computes attention as '" + reference.attention() + "'";
  print_note(own.empty() ? computed + ", and the export does not tell how it does; try --attention eager or sdpa"
                         : computed + ", the export as '" + own + "'; try --attention " + own);
}

int run_verify(const VerifyArguments& arguments) {
  if (arguments.tolerance && std::isnan(*arguments.tolerance))
    throw UsageError("--tolerance: expected a number, got nan");
  if (!arguments.attention.empty())
    read_option("--attention", [&] { return attention_implementation(arguments.attention); });
  const Export exported = open_export(arguments.path);
  if (arguments.component.empty() && is_generation(exported)) {
    if (arguments.bisect) throw UsageError("--bisect compares one graph: it does not go with an export of several");
    return verify_generation(exported, {arguments.reference, arguments.attention, arguments.onnxruntime,
                                        arguments.tolerance, arguments.json});
  }
  const ManifestEntry& component = find_component(exported, arguments.component);
  Progress progress;
  progress.step("loading " + arguments.path);
  const auto artifact = open_artifact(exported, component, arguments.onnxruntime);
  progress.step("loading the reference");
  const auto reference = open_reference({arguments.reference, arguments.attention}, exported, component, *artifact);
  const double tolerance = arguments.tolerance.value_or(default_tolerance(reference->dtype()));

  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const int64_t batch : kBatches)
    for (const int64_t length : kLengths) sizes.emplace_back(batch, length);
  if (const auto traced = traced_sizes(component)) sizes.push_back(*traced);

  std::vector<Run> runs;
  std::set<std::pair<int64_t, int64_t>> done;
  int64_t skipped = 0;
  bool ok = true;
  NamedTensors examined;  // inputs of the first run that differs, or else of the last one
  size_t examined_run = 0;
  for (const auto& [batch, length] : sizes) {
    if (!done.emplace(batch, length).second) continue;
    const auto inputs = make_inputs(*reference, *artifact, batch, length);
    if (!inputs) {
      ++skipped;
      continue;
    }
    progress.step("batch " + std::to_string(batch) + ", length " + std::to_string(length));
    NamedTensors named;
    for (const auto& input : artifact->inputs()) named.emplace(input.name, inputs->at(input.name));
    const WorstOutput worst = compare(artifact->run(named), reference->run(*inputs));
    runs.push_back({batch, length, worst, worst.difference.relative <= tolerance});
    if (ok) {
      examined = named;
      examined_run = runs.size() - 1;
    }
    ok = ok && runs.back().ok;
  }
  std::optional<Bisection> bisection;
  if (!runs.empty() && (!ok || arguments.bisect)) {
    const Run& run = runs[examined_run];
    progress.step("comparing node by node");
    try {
      bisection = {run.batch, run.length, bisect(arguments, exported, component, *reference, examined, tolerance)};
    } catch (const Error& error) {
      // The verdict is told even so.
      if (ok) throw;
      progress.clear();
      print_warning("can't tell where the difference starts: " + std::string(error.what()));
    }
  }
  progress.clear();
  if (runs.empty()) fail("none of the sizes that verify tries fits the export, and its manifest names no traced sizes");
  if (arguments.json) {
    Json json = runs_json(runs, skipped, tolerance, ok);
    if (bisection) json["divergence"] = bisection_json(*bisection);
    print_json(json);
  } else {
    print_runs(runs, skipped, tolerance, ok);
    if (bisection) print_bisection(*bisection);
  }
  if (!ok) hint_at_attention(*reference, component, *artifact);
  return ok ? kDone : kVerificationFailed;
}

}  // namespace

void add_verify(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("verify", "Run an export at several sizes and compare it with eager");
  const auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("export", arguments->path, "Export folder, or a .pt2 or .onnx file")->required();
  command
      ->add_option(
          "--reference", arguments->reference,
          "Checkpoint folder of the eager model, or a .pt2; a .pt2 export can be compared with its own weights")
      ->check(kNotEmpty);
  command->add_option("--component", arguments->component, "Which graph, when the export has several")
      ->check(kNotEmpty);
  command
      ->add_option("--attention", arguments->attention,
                   "sdpa or eager: attention of the eager model; by default as the export says")
      ->check(kNotEmpty);
  command->add_option("--tolerance", arguments->tolerance, "Largest difference, as a part of the largest value")
      ->check(CLI::Range(0.0, 1e9));
  command->add_option("--onnxruntime", arguments->onnxruntime, "The ONNX Runtime library (libonnxruntime.so)")
      ->check(kNotEmpty);
  command->add_flag("--bisect", arguments->bisect, "Compare node by node even when the outputs are equal");
  command->add_flag("--json", arguments->json, "Print the result as JSON");
  command->callback([&chosen, arguments] { chosen = [arguments] { return run_verify(*arguments); }; });
}

}  // namespace transporters::cli

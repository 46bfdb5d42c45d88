#include "cli/verify_generation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/common.h"
#include "transporters/export/configs.h"
#include "transporters/generation/eager.h"
#include "transporters/generation/generate.h"
#include "transporters/models/auto.h"
#include "transporters/verify/divergence.h"

namespace transporters::cli {
namespace {

constexpr int64_t kBatches[] = {1, 2, 3};
constexpr int64_t kLengths[] = {1, 5, 11};
constexpr int64_t kSteps = 6;
// Graphs of fixed sizes have a cache of one length.
constexpr int64_t kFixedSteps = 2;

struct Run {
  int64_t batch;
  int64_t length;
  int64_t steps = 0;
  Difference worst;
  int64_t worst_step = 0;
};

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorContext{.stage = "verify"}, message); }

const ManifestEntry* find(const Export& exported, const std::string& component) {
  for (const ManifestEntry& entry : exported.components)
    if (entry.component == component) return &entry;
  return nullptr;
}

// Sizes of the prompt in the traced example.
std::pair<int64_t, int64_t> traced_sizes(const Export& exported) {
  for (const char* component : {"encoder", "prefill", "decode"}) {
    const ManifestEntry* entry = find(exported, component);
    if (entry == nullptr) continue;
    const Json kwargs = Json::parse(entry->metadata.kwargs);
    for (const char* name : {"input_ids", "input_features", "decoder_input_ids"})
      if (kwargs.contains(name) && kwargs[name].contains("shape")) {
        const auto shape = kwargs[name]["shape"].get<std::vector<int64_t>>();
        if (shape.size() >= 2) return {shape[0], shape.back()};
      }
  }
  fail("the manifest does not say what sizes the prompt had");
}

bool is_dynamic(const Export& exported) {
  const ManifestEntry& decode = *find(exported, "decode");
  try {
    const ExportConfig config = AutoExportConfig::from_json(decode.metadata.export_config);
    return std::visit([](const auto& one) { return one.dynamic; }, config);
  } catch (const Error&) {
    return true;  // of an exporter that this build does not know
  }
}

// Rows of the model's example, each a token shorter than the one before where padding can be told and no token stands
// for something else (an image).
Prompt make_prompt(const PreTrainedModel& model, int64_t batch, int64_t length, bool with_padding) {
  Prompt prompt;
  const ModelInputs example = model.example_inputs(batch, length);
  for (const std::string& name : example.names())
    with_padding &= name == "input_ids" || name == "attention_mask" || name.starts_with("decoder_");
  for (const auto& [name, tensor] : example.leaves()) {
    if (name == "input_ids") {
      for (int64_t row = 0; row < batch; ++row) {
        const int64_t cut = with_padding ? std::min(row, length - 1) : 0;
        const at::Tensor ids = tensor[row].slice(0, cut).contiguous();
        prompt.ids.emplace_back(ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel());
      }
    } else if (name != "attention_mask" && !name.starts_with("decoder_")) {
      prompt.inputs.emplace(name, tensor);
    }
  }
  return prompt;
}

Run run(const PreTrainedModel& model, Generator& generator, int64_t batch, int64_t length, int64_t steps) {
  const Prompt prompt = make_prompt(model, batch, length, generator.takes_padding());
  EagerSession eager(model, prompt_inputs(model, prompt));
  const SearchStart start = generator.start(prompt);
  Run run{.batch = batch, .length = length};
  at::Tensor ids = start.ids;
  for (int64_t step = 0; step < std::min(steps, start.room.value_or(steps)); ++step) {
    const at::Tensor expected = eager.step(ids);
    const Difference difference = largest_difference(generator.session().step(ids), expected);
    if (step == 0 || difference.relative > run.worst.relative) {
      run.worst = difference;
      run.worst_step = step;
    }
    ids = expected.argmax(-1, /*keepdim=*/true);
    ++run.steps;
  }
  return run;
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", value);
  return text;
}

void print(const std::vector<Run>& runs, double tolerance, bool ok, bool as_json) {
  if (as_json) {
    Json json{{"ok", ok}, {"tolerance", tolerance}, {"runs", Json::array()}};
    for (const Run& run : runs)
      json["runs"].push_back({{"batch", run.batch},
                              {"length", run.length},
                              {"steps", run.steps},
                              {"difference", run.worst.absolute},
                              {"relative", run.worst.relative},
                              {"worst_step", run.worst_step},
                              {"ok", run.worst.relative <= tolerance}});
    print_json(json);
    return;
  }
  std::vector<std::vector<std::string>> table{{"batch", "prompt", "steps", "difference", "relative", "worst step", ""}};
  for (const Run& run : runs)
    table.push_back({std::to_string(run.batch), std::to_string(run.length), std::to_string(run.steps),
                     number_text(run.worst.absolute), number_text(run.worst.relative), std::to_string(run.worst_step),
                     run.worst.relative <= tolerance ? "ok" : "DIFFERS"});
  std::cout << table_text(table) << (ok ? "Equal" : "Not equal") << " to eager within " << number_text(tolerance)
            << " of the largest logit\n";
}

}  // namespace

bool is_generation(const Export& exported) {
  return exported.components.size() > 1 && find(exported, "decode") != nullptr;
}

int verify_generation(const Export& exported, const VerifyGenerationArguments& arguments) {
  if (arguments.reference.empty())
    throw UsageError(
        "give --reference CHECKPOINT: the graphs of a generation loop are compared with the eager model's");
  const ExportMetadata& metadata = find(exported, "decode")->metadata;
  LoadOptions options;
  options.dtype = dtype_from_name(metadata.export_dtype);
  options.attention = !arguments.attention.empty()  ? arguments.attention
                      : !metadata.attention.empty() ? metadata.attention
                                                    : options.attention;
  Progress progress;
  progress.step("loading the reference");
  const auto model = load_model(arguments.reference, options, metadata.architecture, "the export");
  progress.step("loading " + exported.folder.string());
  Generator generator(exported.folder, {.onnxruntime = arguments.onnxruntime});
  const double tolerance = arguments.tolerance.value_or(default_tolerance(model->dtype()));
  std::vector<std::pair<int64_t, int64_t>> sizes;
  const bool dynamic = is_dynamic(exported);
  if (dynamic)
    for (const int64_t batch : kBatches)
      for (const int64_t length : kLengths) sizes.emplace_back(batch, length);
  if (const auto traced = traced_sizes(exported); std::find(sizes.begin(), sizes.end(), traced) == sizes.end())
    sizes.push_back(traced);
  std::vector<Run> runs;
  for (const auto& [batch, length] : sizes) {
    progress.step("batch " + std::to_string(batch) + ", prompt of " + std::to_string(length));
    runs.push_back(run(*model, generator, batch, length, dynamic ? kSteps : kFixedSteps));
  }
  progress.clear();
  const bool ok =
      std::all_of(runs.begin(), runs.end(), [&](const Run& run) { return run.worst.relative <= tolerance; });
  print(runs, tolerance, ok, arguments.json);
  return ok ? kDone : kVerificationFailed;
}

}  // namespace transporters::cli

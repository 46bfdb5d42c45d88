// transporters export CHECKPOINT_OR_PT2 --to FORMAT --out DIR
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/unavailable.h"
#include "transporters/checkpoint/config.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/error.h"
#include "transporters/export/exporters.h"
#include "transporters/export/versions.h"
#include "transporters/models/auto.h"

namespace transporters::cli {
namespace {

namespace fs = std::filesystem;

struct ExportArguments {
  std::string source;
  std::string to;
  std::string out;
  bool dynamic = false;
  std::string dynamic_shapes;
  std::string config;
  std::optional<int64_t> opset;
  std::string dtype;
  std::string architecture;
  std::string attention;  // "": sdpa
  std::optional<int64_t> batch;
  std::optional<int64_t> sequence;
  bool generation = false;
  std::string component;
  GenerationOptions generation_options;
  bool single_file = false;
  bool json = false;
};

// Sizes of the example that is traced, when the caller gives none.
constexpr int64_t kExampleBatch = 2;
constexpr int64_t kExampleSequence = 5;
constexpr int64_t kLargestExample = 1 << 20;
const std::string kOpsets = std::to_string(OnnxConfig::kMinOpset) + " to " + std::to_string(OnnxConfig::kMaxOpset);

DynamicShapes dynamic_shapes(const ExportArguments& arguments) {
  const std::string text = json_argument("--dynamic-shapes", arguments.dynamic_shapes);
  auto shapes = read_option("--dynamic-shapes", [&] { return DynamicShapes::from_json(text); });
  size_t axes = 0;
  for (const AxisDims& dims : shapes.positional()) axes += dims.size();
  for (const auto& [input, dims] : shapes.named()) axes += dims.size();
  if (axes == 0)
    throw UsageError("--dynamic-shapes: names no axis; expected JSON such as {\"input_ids\": {\"0\": \"batch\"}}");
  return shapes;
}

// --config first, then what the flags say.
ExportConfig export_config(const ExportArguments& arguments, ExportFormat format) {
  ExportConfig config = AutoExportConfig::for_format(format);
  if (!arguments.config.empty()) {
    const std::string text = json_argument("--config", arguments.config);
    config = read_option("--config", [&]() -> ExportConfig {
      if (format == ExportFormat::Onnx) return OnnxConfig::from_json(text);
      return DynamoConfig::from_json(text);
    });
  }
  std::visit(
      [&](auto& fields) {
        fields.dynamic = fields.dynamic || arguments.dynamic;
        if (!arguments.dynamic_shapes.empty()) fields.dynamic_shapes = dynamic_shapes(arguments);
      },
      config);
  if (arguments.opset) {
    auto* onnx = std::get_if<OnnxConfig>(&config);
    if (!onnx) throw UsageError("--opset goes with --to onnx");
    if (*arguments.opset < OnnxConfig::kMinOpset || *arguments.opset > OnnxConfig::kMaxOpset)
      throw UsageError("--opset: expected " + kOpsets + ", got " + std::to_string(*arguments.opset));
    onnx->opset_version = *arguments.opset;
  }
  return config;
}

LoadOptions load_options(const ExportArguments& arguments) {
  LoadOptions options;
  if (!arguments.attention.empty()) {
    options.attention = arguments.attention;
    read_option("--attention", [&] { return attention_implementation(arguments.attention); });
  }
  if (!arguments.dtype.empty()) {
    options.dtype = dtype_from_name(arguments.dtype);
    const bool computes = options.dtype && (*options.dtype == at::kFloat || *options.dtype == at::kHalf ||
                                            *options.dtype == at::kBFloat16 || *options.dtype == at::kDouble);
    if (!computes)
      throw UsageError("--dtype: expected float32, float16, bfloat16 or float64, got '" + arguments.dtype + "'");
  }
  return options;
}

struct Result {
  std::optional<ExportedModel> exported;
  std::string architecture;
  std::vector<std::string> files;  // names of what was written
  double load_seconds = 0;
  double export_seconds = 0;
  double write_seconds = 0;
};

// --sequence is of no use to a model of images.
void check_takes_tokens(const PreTrainedModel& model) {
  std::string names;
  for (const InputInfo& input : model.inputs()) {
    if (std::find(input.axes.begin(), input.axes.end(), "sequence") != input.axes.end()) return;
    names += (names.empty() ? "" : ", ") + input.name;
  }
  throw UsageError("--sequence: " + model.architecture() + " takes no tokens, its input is " + names);
}

template <typename Exporter, typename Config>
Result export_checkpoint(const ExportArguments& arguments, const Config& config, Progress& progress) {
  const LoadOptions options = load_options(arguments);
  Result result;
  Stopwatch watch;
  progress.step("reading " + arguments.source);
  const auto model = load_model(arguments.source, options, arguments.architecture, "--architecture");
  if (arguments.sequence) check_takes_tokens(*model);
  result.architecture = model->architecture();
  result.load_seconds = watch.lap();
  progress.step("tracing " + result.architecture);
  const ModelInputs inputs =
      model->example_inputs(arguments.batch.value_or(kExampleBatch), arguments.sequence.value_or(kExampleSequence));
  if (arguments.generation)
    result.exported = Exporter().export_for_generation(model, inputs, config, arguments.generation_options);
  else
    result.exported = Exporter().export_model(model, inputs, config);
  result.export_seconds = watch.lap();
  return result;
}

template <typename Exporter, typename Config>
Result convert_pt2(const ExportArguments& arguments, const Config& config, Progress& progress) {
  const bool for_checkpoints = arguments.dynamic || !arguments.dynamic_shapes.empty() || !arguments.dtype.empty() ||
                               !arguments.architecture.empty() || !arguments.attention.empty() || arguments.batch ||
                               arguments.sequence || arguments.generation;
  if (for_checkpoints)
    throw UsageError(
        "a .pt2 has its sizes and types: --dynamic, --dynamic-shapes, --dtype, --architecture, --attention, --batch, "
        "--sequence and --generation go with a checkpoint folder");
  Result result;
  Stopwatch watch;
  progress.step("reading " + arguments.source);
  Program program = dynamo::load(arguments.source, arguments.component);
  result.architecture = program.architecture;
  result.load_seconds = watch.lap();
  progress.step("converting");
  result.exported = Exporter().convert(std::move(program), config);
  result.exported->sources = {arguments.source};
  result.export_seconds = watch.lap();
  return result;
}

void print_result(const ExportArguments& arguments, ExportFormat format, const Result& result) {
  std::vector<std::pair<std::string, uint64_t>> files;
  for (const std::string& name : result.files) files.emplace_back(name, fs::file_size(fs::path(arguments.out) / name));
  auto warnings = version_warnings();
  warnings.insert(warnings.end(), result.exported->warnings.begin(), result.exported->warnings.end());
  if (arguments.json) {
    Json json;
    json["format"] = to_string(format);
    json["architecture"] = result.architecture;
    json["out"] = arguments.out;
    json["files"] = Json::object();
    for (const auto& [name, bytes] : files) json["files"][name] = bytes;
    json["seconds"] = {
        {"load", result.load_seconds}, {"export", result.export_seconds}, {"write", result.write_seconds}};
    json["notes"] = result.exported->notes;
    json["warnings"] = warnings;
    print_json(json);
    return;
  }
  for (const auto& warning : warnings) print_warning(warning);
  for (const auto& note : result.exported->notes) print_note(note);
  std::cout << "Exported " << (result.architecture.empty() ? arguments.source : result.architecture) << " to "
            << arguments.out << " in "
            << seconds_text(result.load_seconds + result.export_seconds + result.write_seconds) << " (read "
            << seconds_text(result.load_seconds) << ", export " << seconds_text(result.export_seconds) << ", write "
            << seconds_text(result.write_seconds) << ")\n";
  for (const auto& [name, bytes] : files) std::cout << "  " << name << "  " << bytes_text(bytes) << "\n";
}

void check_generation(const ExportArguments& arguments, ExportFormat format) {
  if (!arguments.generation && arguments.generation_options.multi_token_decode)
    throw UsageError("--multi-token-decode goes with --generation");
  if (!arguments.generation && arguments.generation_options.static_cache_length)
    throw UsageError("--static-cache goes with --generation");
  if (arguments.generation && !arguments.dynamic_shapes.empty())
    throw UsageError("--dynamic-shapes names the axes of one graph: with --generation, take --dynamic");
  if (arguments.single_file && format != ExportFormat::Dynamo)
    throw UsageError("--single-file goes with --to dynamo; the graphs of an ONNX export share one data file as it is");
}

int run_export(const ExportArguments& arguments) {
  const ExportFormat format = read_option("--to", [&] { return parse_export_format(arguments.to); });
  check_available(format);
  check_generation(arguments, format);
  const fs::path source = arguments.source;
  if (!fs::exists(source)) throw UsageError("there is no file or folder '" + arguments.source + "'");
  const bool is_pt2 = source.extension() == ".pt2" && fs::is_regular_file(source);
  if (!is_pt2 && !fs::is_directory(source))
    throw UsageError("expected a checkpoint folder or a .pt2 file, got '" + arguments.source + "'");
  if (arguments.out.empty()) throw UsageError("--out: expected a folder, got an empty name");
  std::error_code ignored;
  if (fs::equivalent(source, arguments.out, ignored))
    throw UsageError("--out: '" + arguments.out + "' is the checkpoint itself; choose another folder");
  if (!is_pt2 && !arguments.component.empty()) throw UsageError("--component goes with a .pt2 file");
  const ExportConfig config = export_config(arguments, format);

  Progress progress;
  Result result = std::visit(
      [&](const auto& fields) {
        using Config = std::decay_t<decltype(fields)>;
        using Exporter = std::conditional_t<std::is_same_v<Config, OnnxConfig>, OnnxExporter, DynamoExporter>;
        return is_pt2 ? convert_pt2<Exporter>(arguments, fields, progress)
                      : export_checkpoint<Exporter>(arguments, fields, progress);
      },
      config);
  Stopwatch watch;
  progress.step("writing " + arguments.out);
  result.files = result.exported->save_pretrained(arguments.out, arguments.single_file);
  result.write_seconds = watch.lap();
  progress.clear();
  print_result(arguments, format, result);
  return kDone;
}

}  // namespace

void add_export(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("export", "Export a checkpoint folder, or a .pt2 file, to another format");
  const auto arguments = std::make_shared<ExportArguments>();
  command->add_option("source", arguments->source, "Checkpoint folder (config.json, *.safetensors), or a .pt2 file")
      ->required()
      ->check(kNotEmpty);
  command->add_option("--to", arguments->to, "dynamo (.pt2) or onnx")->required();
  command->add_option("--out", arguments->out, "Output folder")->required();
  command->add_flag("--dynamic", arguments->dynamic, "Every axis of every input is dynamic");
  command
      ->add_option("--dynamic-shapes", arguments->dynamic_shapes,
                   R"(Dynamic axes by input, JSON or a file of it: {"input_ids": {"0": "batch"}})")
      ->check(kNotEmpty);
  command->add_option("--config", arguments->config, "Export config, JSON or a file of it; other options win over it")
      ->check(kNotEmpty);
  command->add_option("--opset", arguments->opset, "ONNX opset, " + kOpsets);
  command
      ->add_option("--dtype", arguments->dtype, "float32, float16, bfloat16 or float64, in place of the checkpoint's")
      ->check(kNotEmpty);
  command
      ->add_option("--architecture", arguments->architecture,
                   "Model class, such as BertForMaskedLM, in place of the one config.json names")
      ->check(kNotEmpty);
  command->add_option("--attention", arguments->attention, "sdpa (the default) or eager")->check(kNotEmpty);
  command->add_option("--batch", arguments->batch, "Batch of the example that is traced")
      ->check(CLI::Range(int64_t{1}, kLargestExample));
  command->add_option("--sequence", arguments->sequence, "Length of the example that is traced")
      ->check(CLI::Range(int64_t{1}, kLargestExample));
  command->add_flag("--generation", arguments->generation,
                    "A graph for each stage of generating: prefill and decode, the cache going through them");
  command->add_flag("--multi-token-decode", arguments->generation_options.multi_token_decode,
                    "decode takes any number of tokens (with --dynamic), not one");
  command
      ->add_option("--static-cache", arguments->generation_options.static_cache_length,
                   "A cache of fixed size for that many tokens, written in place")
      ->check(CLI::Range(int64_t{1}, kLargestExample));
  command->add_flag("--single-file", arguments->single_file,
                    "One .pt2 with all graphs and each weight once, in place of a .pt2 for each");
  command->add_option("--component", arguments->component, "Which graph of a .pt2 that has several")->check(kNotEmpty);
  command->add_flag("--json", arguments->json, "Print the result as JSON");
  add_unavailable_export_options(*command);
  command->callback([&chosen, arguments] { chosen = [arguments] { return run_export(*arguments); }; });
}

}  // namespace transporters::cli

// transporters generate DIR --ids 1,2,3 --max-new-tokens N
#include "transporters/generation/generate.h"

#include <charconv>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "transporters/checkpoint/tensors.h"
#include "transporters/generation/eager.h"
#include "transporters/models/auto.h"

namespace transporters::cli {
namespace {

constexpr int64_t kMostTokens = 1 << 24;

struct GenerateArguments {
  std::string folder;
  std::string ids;
  std::string inputs;
  GenerateOptions options;
  std::string eos;
  std::string early_stopping;
  GeneratorOptions generator;
  bool json = false;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// "1,2,3"
TokenIds read_ids(const std::string& option, const std::string& text) {
  TokenIds ids;
  for (const std::string& part : split(text, ',')) {
    const auto first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    const std::string number = first == std::string::npos ? "" : part.substr(first, last - first + 1);
    int64_t id = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), id);
    if (number.empty() || error != std::errc() || end != number.data() + number.size() || id < 0)
      throw UsageError(option + ": expected token ids such as 1,2,3, got '" + text + "'");
    ids.push_back(id);
  }
  return ids;
}

void print_text(const GenerateArguments& arguments, const GenerateResult& result, double load_seconds) {
  for (const TokenIds& row : result.tokens) {
    for (size_t i = 0; i < row.size(); ++i) std::cout << (i > 0 ? "," : "") << row[i];
    std::cout << "\n";
  }
  if (result.stopped == "cache_full")
    print_warning("the cache is full after " + std::to_string(result.tokens.front().size()) + " of " +
                  std::to_string(arguments.options.max_new_tokens) +
                  " new tokens; export with a longer --static-cache for more");
  if (result.stopped == "positions_full")
    print_warning("the model has positions for no more tokens: " + std::to_string(result.tokens.front().size()) +
                  " of " + std::to_string(arguments.options.max_new_tokens) + " were made");
  std::string speed;
  if (result.steps > 0 && result.decode_seconds > 0)
    speed = ", " + std::to_string(static_cast<int64_t>(static_cast<double>(result.steps) / result.decode_seconds)) +
            " steps a second";
  std::cerr << "loaded in " << seconds_text(load_seconds) << ", prompt in " << seconds_text(result.prefill_seconds)
            << speed << "\n";
}

Prompt read_prompt(const GenerateArguments& arguments) {
  Prompt prompt;
  if (!arguments.ids.empty())
    for (const std::string& row : split(arguments.ids, ';')) {
      if (row.find_first_not_of(' ') == std::string::npos)
        throw UsageError("--ids: expected prompts such as 1,2,3;4,5, got an empty one in '" + arguments.ids + "'");
      prompt.ids.push_back(read_ids("--ids", row));
    }
  if (!arguments.inputs.empty())
    for (auto& [name, tensor] : load_tensors(arguments.inputs)) prompt.inputs.emplace(name, std::move(tensor));
  if (prompt.ids.empty() && prompt.inputs.empty())
    throw UsageError("a prompt is missing: give --ids, --inputs or both");
  return prompt;
}

GenerateOptions read_options(const GenerateArguments& arguments) {
  GenerateOptions options = arguments.options;
  if (arguments.eos == "none")
    options.eos_token_ids = TokenIds();
  else if (!arguments.eos.empty())
    options.eos_token_ids = read_ids("--eos", arguments.eos);
  if (arguments.early_stopping == "true") options.early_stopping = EarlyStopping::Yes;
  if (arguments.early_stopping == "false") options.early_stopping = EarlyStopping::No;
  if (arguments.early_stopping == "never") options.early_stopping = EarlyStopping::Never;
  return options;
}

// A checkpoint that is no export: its native model runs as it is.
bool is_checkpoint(const std::filesystem::path& folder) {
  return !std::filesystem::exists(folder / "export.json") && std::filesystem::exists(folder / "config.json");
}

int run_generate(const GenerateArguments& arguments) {
  const Prompt prompt = read_prompt(arguments);
  GenerateOptions options = read_options(arguments);
  Progress progress;
  Stopwatch watch;
  progress.step("loading " + arguments.folder);
  std::shared_ptr<PreTrainedModel> model;
  std::optional<Generator> generator;
  if (is_checkpoint(arguments.folder))
    model = load_model(arguments.folder);
  else
    generator.emplace(arguments.folder, arguments.generator);
  const double load_seconds = watch.lap();
  int64_t count = 0;
  options.on_tokens = [&](const TokenIds&) { progress.step("token " + std::to_string(++count)); };
  const GenerateResult result = generator ? generator->generate(prompt, options) : generate(*model, prompt, options);
  progress.clear();
  if (!arguments.json) {
    print_text(arguments, result, load_seconds);
    return kDone;
  }
  Json json{{"tokens", result.tokens}, {"stopped", result.stopped}, {"steps", result.steps}};
  json["seconds"] = {{"load", load_seconds}, {"prefill", result.prefill_seconds}, {"decode", result.decode_seconds}};
  print_json(json);
  return kDone;
}

}  // namespace

void add_generate(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "generate", "Continue prompts with an export made with --generation, or with a native model as it is");
  const auto arguments = std::make_shared<GenerateArguments>();
  GenerateOptions& options = arguments->options;
  command->add_option("folder", arguments->folder, "Export folder, or a checkpoint folder")
      ->required()
      ->check(kNotEmpty);
  command->add_option("--ids", arguments->ids, "Token ids of the prompt, 1,2,3; several prompts as 1,2,3;4,5")
      ->check(kNotEmpty);
  command
      ->add_option("--inputs", arguments->inputs,
                   "safetensors file with what else the prompt has, such as pixel_values or input_features")
      ->check(kNotEmpty);
  command->add_option("--max-new-tokens", options.max_new_tokens, "New tokens at most (20)")
      ->check(CLI::Range(int64_t{0}, kMostTokens));
  command->add_option("--num-beams", options.num_beams, "Beams of the search; 1 takes the likeliest token")
      ->check(CLI::Range(1, 1024));
  command->add_option("--length-penalty", options.length_penalty,
                      "Beam search: scores are divided by the length to this power");
  command
      ->add_option("--early-stopping", arguments->early_stopping,
                   "Beam search: whether a prompt is done with as many ended sequences as beams")
      ->check(CLI::IsMember({"true", "false", "never"}));
  command
      ->add_option("--eos", arguments->eos,
                   "Token ids that end a sequence, in place of generation_config.json's; none for no end")
      ->check(kNotEmpty);
  command->add_option("--onnxruntime", arguments->generator.onnxruntime, "The ONNX Runtime library (libonnxruntime.so)")
      ->check(kNotEmpty);
  command->add_option("--threads", arguments->generator.threads, "Threads of one operator in ONNX Runtime")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", arguments->json, "Print the result as JSON");
  command->callback([&chosen, arguments] { chosen = [arguments] { return run_generate(*arguments); }; });
}

}  // namespace transporters::cli

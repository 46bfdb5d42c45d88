// What exporters.h takes, as ExportTargets.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "transporters/error.h"
#include "transporters/export/exporters.h"

namespace transporters {

namespace detail {

ExportTarget module_target(TracedModule module, const std::vector<at::Tensor>& inputs,
                           const std::vector<std::string>& names) {
  if (!names.empty() && names.size() != inputs.size())
    throw Error(ErrorContext{.stage = "signature"},
                std::to_string(names.size()) + " names are given for " + std::to_string(inputs.size()) + " inputs");
  ExportTarget target;
  target.forward = std::move(module.forward);
  target.state = std::move(module.state);
  target.architecture = module.class_name;
  target.is_training = module.is_training;
  std::vector<TreeSpec> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    target.inputs.push_back({names.empty() ? "input_" + std::to_string(i) : names[i], inputs[i], {}});
    leaves.push_back(TreeSpec::leaf());
  }
  // Modules take their inputs by position.
  target.in_spec = TreeSpec::tuple({TreeSpec::tuple(std::move(leaves)), TreeSpec::dict({}, {})});
  return target;
}

ExportTarget function_target(TracedFunction function, const NamedInputs& inputs) {
  ExportTarget target;
  target.forward = std::move(function);
  target.architecture = "Function";
  std::vector<std::string> names;
  std::vector<TreeSpec> leaves;
  for (const auto& [name, tensor] : inputs) {
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw Error(ErrorContext{.stage = "signature"}, "two inputs are called '" + name + "'");
    target.inputs.push_back({name, tensor, {}});
    names.push_back(name);
    leaves.push_back(TreeSpec::leaf());
  }
  target.in_spec = TreeSpec::tuple({TreeSpec::tuple({}), TreeSpec::dict(names, std::move(leaves))});
  return target;
}

namespace {

// Layers of fixed size keep what they are made for; others grow.
void name_cache_axes(const Cache& cache, ExportTarget& target) {
  const size_t own = cache.layers.size() - cache.cross_layers;
  for (size_t i = 0; i < cache.layers.size(); ++i) {
    const CacheLayer& layer = *cache.layers[i];
    const bool is_cross = i >= own;
    const char* length = is_cross             ? "encoder_sequence"
                         : !layer.is_static() ? "past_length"
                         : layer.is_sliding() ? "window"
                                              : "cache_length";
    const std::string part = cache.cross_layers == 0 ? ""
                             : is_cross              ? "cross_attention_cache."
                                                     : "self_attention_cache.";
    if (!layer.has_keys()) {
      for (const auto& [name, tensor] : layer.tensors())
        target.axis_names["cache.layers." + std::to_string(i) + "." + name] = {"batch", ExportTarget::kFixedAxis,
                                                                               ExportTarget::kFixedAxis};
      continue;
    }
    for (const char* name : {"keys", "values"})
      target.axis_names["cache." + part + "layers." + std::to_string(is_cross ? i - own : i) + "." + name] = {
          "batch", ExportTarget::kFixedAxis, length, ExportTarget::kFixedAxis};
  }
}

// One token after others: a step of a loop, whose graph is for one token. An axis that is 1 could not be told from the
// sum of others that it is part of.
void fix_single_token(const ModelInputs& inputs, ExportTarget& target) {
  const Cache* cache = inputs.cache();
  if (cache == nullptr || cache->tensors().size() < 2 * cache->layers.size()) return;
  // A cache of fixed size has its tensors before the first token, which begins a prompt.
  if (cache->is_static() && cache->layers.front()->length() == 0) return;
  for (const char* name : {"decoder_input_ids", "input_ids", "inputs_embeds"}) {
    const at::Tensor tokens = inputs.tensor(name);
    if (!tokens.defined()) continue;
    if (tokens.size(1) != 1) return;
    for (auto& [input, axes] : target.axis_names)
      for (std::string& axis : axes)
        if (axis == "sequence") axis = ExportTarget::kFixedAxis;
    return;
  }
}

// Ready masks: [batch, 1, query, keys].
void name_mask_axes(const ModelInputs& inputs, ExportTarget& target) {
  const Cache* cache = inputs.cache();
  const auto axes = [](bool sliding) {
    return std::vector<std::string>{"batch", ExportTarget::kFixedAxis, "sequence",
                                    sliding ? "visible" : "cache_length"};
  };
  if (const TensorDict* masks = inputs.dict("attention_mask")) {
    for (const auto& [kind, mask] : masks->entries)
      target.axis_names["attention_mask." + kind] = axes(kind == kSlidingMask);
    return;
  }
  for (const char* name : {"attention_mask", "decoder_attention_mask"})
    if (const at::Tensor mask = inputs.tensor(name); mask.defined() && mask.dim() == 4)
      target.axis_names[name] = axes(cache != nullptr && cache->first(false) == nullptr);
}

// What the model returned, its cache without the encoder's keys and values where those are inputs: a graph that gave
// them back would copy them at each step.
ModelOutput without_given(ModelOutput output, const ModelInputs& inputs) {
  const Cache* given = inputs.cache();
  const Cache* returned = output.cache();
  if (given == nullptr || returned == nullptr || returned->cross_layers == 0) return output;
  Cache rest = *returned;
  rest.drop_cross_layers_of(*given);
  output.set("cache", std::move(rest));
  return output;
}

}  // namespace

void check_component_names(const std::vector<GenerationStage>& stages, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  std::string list, missing;
  for (const GenerationStage& stage : stages) {
    known.push_back(stage.name);
    list += (list.empty() ? "" : ", ") + stage.name;
    if (std::find(names.begin(), names.end(), stage.name) == names.end())
      missing += (missing.empty() ? "" : ", ") + stage.name;
  }
  const ErrorContext config{.stage = "config"};
  if (!missing.empty())
    throw Error(config,
                "configs are given by component, but there is none for " + missing + "; components are " + list);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(config,
                  "there is no component '" + name + "'" + did_you_mean(name, known) + "; components are " + list);
}

void naming_component(const std::string& name, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    throw Error(error.context(), error.message() + " (in component '" + name + "')");
  }
}

ExportTarget model_target(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs) {
  // While tracing, sizes of dynamic axes are no numbers.
  model->check_inputs(inputs);
  ExportTarget target;
  // Only leaves are traced; what the call's options say (use_cache, ...) stays as the caller set it.
  target.forward = [model, inputs](const std::vector<at::Tensor>& leaves) {
    ModelInputs traced = inputs;
    traced.set_leaves(leaves);
    const ModelOutput output = without_given(model->forward(traced), traced);
    TraceResult result{.outputs = {}, .spec = output.spec()};
    for (const auto& [name, tensor] : output.leaves()) result.outputs.push_back({name, tensor});
    return result;
  };
  target.state = module_state(*model);
  // A model's buffers follow from its config and are in no checkpoint.
  for (TraceState& state : target.state)
    if (state.kind == InputKind::Buffer) state.persistent = false;
  for (const InputInfo& input : model->inputs()) target.axis_names[input.name] = input.axes;
  for (const auto& [path, tensor] : inputs.leaves()) target.inputs.push_back({path, tensor, {}});
  if (inputs.cache() != nullptr) name_cache_axes(*inputs.cache(), target);
  if (model->encoder() != nullptr) {
    // The prompt is the encoder's; what it gives is as long.
    target.axis_names["encoder_outputs.last_hidden_state"] = {"batch", "encoder_sequence", ""};
  }
  name_mask_axes(inputs, target);
  fix_single_token(inputs, target);
  target.in_spec = inputs.spec();
  target.architecture = model->architecture();
  target.attention = attention_name(model->attention());
  const std::filesystem::path folder = std::filesystem::path(model->config().file()).parent_path();
  for (const char* name : {"config.json", "generation_config.json"})
    if (std::ifstream file(folder / name); file)
      target.config_files[name] = std::string(std::istreambuf_iterator<char>(file), {});
  return target;
}

}  // namespace detail
}  // namespace transporters

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
    throw Error(ErrorContext{.stage = "signature"}, std::to_string(names.size()) + " names are given for " +
                                                        std::to_string(inputs.size()) + " inputs");
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

ExportTarget model_target(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs) {
  // While tracing, sizes of dynamic axes are no numbers.
  model->check_inputs(inputs);
  ExportTarget target;
  // Only leaves are traced; what the call's options say (use_cache, ...) stays as the caller set it.
  target.forward = [model, inputs](const std::vector<at::Tensor>& leaves) {
    ModelInputs traced = inputs;
    traced.set_leaves(leaves);
    const ModelOutput output = model->forward(traced);
    TraceResult result{.outputs = {}, .spec = output.spec()};
    for (const auto& [name, tensor] : output.leaves()) result.outputs.push_back({name, tensor});
    return result;
  };
  target.state = module_state(*model);
  // A model's buffers follow from its config and are in no checkpoint.
  for (TraceState& state : target.state)
    if (state.kind == InputKind::Buffer) state.persistent = false;
  for (const auto& [path, tensor] : inputs.leaves()) {
    target.inputs.push_back({path, tensor, {}});
    if (path.starts_with("cache.")) target.axis_names[path] = {"batch", "", "past_length", ""};
  }
  for (const InputInfo& input : model->inputs()) target.axis_names[input.name] = input.axes;
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

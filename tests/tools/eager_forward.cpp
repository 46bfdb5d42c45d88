// Runs a native model eagerly, for comparison with transformers:
//   eager_forward [--attention NAME] [--dtype NAME] [--class NAME] CHECKPOINT (INPUTS OUTPUTS)...
// Inputs named "cache.layers.N.keys" and "cache.layers.N.values" make a cache, and so do the states of state space
// models. Outputs are written by leaf path; the metadata has the output's tree spec, and lists parameters and the
// checkpoint's unused tensors.
#include <exception>
#include <iostream>
#include <map>

#include "transporters/error.h"
#include "transporters/graph/tensor_torch.h"
#include "transporters/models/auto.h"

namespace tp = transporters;

namespace {

tp::ModelInputs read_inputs(const std::string& path, const tp::PreTrainedModel& model) {
  const auto file = tp::SafetensorsFile::open(path);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& name : file.names()) tensors[name] = tp::to_tensor(file.get(name));
  tp::ModelInputs inputs;
  for (const auto& info : model.inputs())
    if (tensors.count(info.name)) inputs.set(info.name, tensors[info.name]);
  if (tensors.count("cache.layers.0.keys")) {
    auto cache = model.empty_cache().value();
    for (size_t i = 0; i < cache.layers.size(); ++i) {
      const std::string layer = "cache.layers." + std::to_string(i);
      cache.layers[i]->update(tensors.at(layer + ".keys"), tensors.at(layer + ".values"));
    }
    inputs.set("cache", std::move(cache));
  }
  if (tensors.count("cache.layers.0.conv_states.0")) {
    auto cache = model.empty_cache().value();
    for (size_t i = 0; i < cache.layers.size(); ++i) {
      const std::string layer = "cache.layers." + std::to_string(i);
      cache.layers[i]->set_tensors(
          std::vector<at::Tensor>{tensors.at(layer + ".conv_states.0"), tensors.at(layer + ".recurrent_states.0")});
    }
    inputs.set("cache", std::move(cache));
  }
  if (file.metadata().count("logits_to_keep")) inputs.logits_to_keep = std::stoll(file.metadata().at("logits_to_keep"));
  if (file.metadata().count("use_cache")) inputs.use_cache = file.metadata().at("use_cache") == "true";
  return inputs;
}

std::string lines(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += name + "\n";
  return text;
}

void run(const tp::PreTrainedModel& model, const std::string& from, const std::string& to) {
  const auto output = model.forward(read_inputs(from, model));
  std::vector<tp::NamedTensorData> tensors;
  for (const auto& [path, tensor] : output.leaves()) tensors.emplace_back(path, tp::to_tensor_data(tensor));
  tp::write_safetensors(to, tensors,
                        {{"spec", output.spec().dumps()},
                         {"parameters", lines(model.named_parameters().keys())},
                         {"unused", lines(model.unused_tensors())}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  tp::LoadOptions options;
  std::string architecture;
  std::vector<std::string> paths;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].rfind("--", 0) != 0) {
      paths.push_back(arguments[i]);
      continue;
    }
    const std::string value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (arguments[i] == "--attention") options.attention = value;
    if (arguments[i] == "--dtype") options.dtype = tp::dtype_from_name(value);
    if (arguments[i] == "--class") architecture = value;
    ++i;
  }
  if (paths.size() < 3 || paths.size() % 2 == 0) {
    std::cerr
        << "usage: eager_forward [--attention NAME] [--dtype NAME] [--class NAME] CHECKPOINT (INPUTS OUTPUTS)...\n";
    return 2;
  }
  try {
    const auto model = tp::load_model(paths[0], options, architecture);
    for (size_t i = 1; i < paths.size(); i += 2) run(*model, paths[i], paths[i + 1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

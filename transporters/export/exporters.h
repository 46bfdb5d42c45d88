// The exporters: from modules, functions, models of the native zoo and programs to artefacts.
//
//     auto batch = Dim("batch", 1, 64);
//     auto exported = OnnxExporter().export_module(net, {x}, {.dynamic_shapes = {{{0, batch}}}});
//     exported.save("net.onnx");
//
// Modules are exported as they stand: call eval() first. A module in training mode whose ops differ there (batch norm,
// dropout) is refused.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "transporters/export/module_call.h"
#include "transporters/export/pipeline.h"
#include "transporters/generation/decompose.h"
#include "transporters/models/pretrained_model.h"

namespace transporters {

// A tensor under the name of the argument it is passed for.
using NamedInputs = std::vector<std::pair<std::string, at::Tensor>>;

namespace detail {

// Target for positional inputs, named "input_0", ... unless names are given.
ExportTarget module_target(TracedModule module, const std::vector<at::Tensor>& inputs,
                           const std::vector<std::string>& names);
ExportTarget model_target(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs);
ExportTarget function_target(TracedFunction function, const NamedInputs& inputs);
// Throws Error unless these are the stages' names.
void check_component_names(const std::vector<GenerationStage>& stages, const std::vector<std::string>& names);
// Calls f; its Error names the component.
void naming_component(const std::string& name, const std::function<void()>& f);

}  // namespace detail

// What both exporters share; `Derived` has a Config and lower().
template <typename Derived, typename ConfigType>
class Exporter {
 public:
  using Config = ConfigType;

  explicit Exporter(const Registry& registry = Registry::global()) : registry_(&registry) {}

  // Any libtorch module whose forward takes tensors: a module, a holder (torch::nn::Sequential), a shared_ptr.
  // `inputs` are samples, one per argument; `names` name them in the artefact ("input_0", ... by default).
  template <typename Module>
  ExportedModel export_module(Module& module, const std::vector<at::Tensor>& inputs, const Config& config = {},
                              const std::vector<std::string>& names = {}) const {
    return run(detail::module_target(traced_module(module), inputs, names), config);
  }
  template <typename Module>
  ExportedModel export_module(Module&& module, const std::vector<at::Tensor>& inputs, const Config& config = {},
                              const std::vector<std::string>& names = {}) const
    requires(!std::is_lvalue_reference_v<Module>)
  {
    return export_module<Module>(module, inputs, config, names);
  }

  // A model of the native zoo, called with keyword arguments.
  ExportedModel export_model(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs,
                             const Config& config = {}) const {
    return run(detail::model_target(model, inputs), config);
  }

  // Each stage of a model that generates as a component (decompose_for_generation): one config for all, or one for each
  // by name. Throws Error naming the component that fails, and listing names when configs miss some or have others.
  ExportedModel export_for_generation(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs,
                                      const Config& config = {}, const GenerationOptions& options = {}) const {
    const auto stages = decompose_for_generation(model, inputs, options);
    return export_stages(stages, std::vector<Config>(stages.size(), config));
  }
  ExportedModel export_for_generation(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs,
                                      const std::map<std::string, Config>& configs,
                                      const GenerationOptions& options = {}) const {
    const auto stages = decompose_for_generation(model, inputs, options);
    std::vector<std::string> names;
    for (const auto& [name, config] : configs) names.push_back(name);
    detail::check_component_names(stages, names);
    std::vector<Config> in_order;
    for (const GenerationStage& stage : stages) in_order.push_back(configs.at(stage.name));
    return export_stages(stages, in_order);
  }

  // Any callable from tensors to a tensor, or to tuples and vectors of tensors. Tensors it captures become constants.
  template <typename Function>
  ExportedModel export_function(Function function, const NamedInputs& inputs, const Config& config = {}) const {
    TracedFunction traced = [function](const std::vector<at::Tensor>& tensors) {
      TraceResult result;
      result.spec = detail::flatten_result(function(tensors), "output", result.outputs);
      return result;
    };
    return run(detail::function_target(std::move(traced), inputs), config);
  }

  // A prepared target: what the other forms come down to.
  ExportedModel run(const ExportTarget& target, const Config& config) const {
    ExportedModel model(Derived::kFormat, config);
    model.add("model", component(target, config, model.notes));
    model.set_config_files(target.config_files);
    return model;
  }

  // A program that was traced before or read from a `.pt2`.
  ExportedModel convert(Program program, const Config& config = {}) const {
    ExportedModel model(Derived::kFormat, config);
    model.warnings = check_converted(program, Derived::kFormat);
    model.add("model", Derived::lower(std::move(program), config, *registry_));
    return model;
  }

 private:
  ExportedComponent component(const ExportTarget& target, const Config& config, std::vector<std::string>& notes) const {
    Program program = trace_program(target, Derived::tracing(config), Derived::backends(), *registry_, &notes);
    ExportedComponent component = Derived::lower(std::move(program), config, *registry_);
    component.metadata.attention = target.attention;
    return component;
  }

  ExportedModel export_stages(const std::vector<GenerationStage>& stages, const std::vector<Config>& configs) const {
    ExportedModel exported(Derived::kFormat, configs.front());
    for (size_t i = 0; i < stages.size(); ++i) {
      const auto& [name, model, inputs] = stages[i];
      std::vector<std::string> notes;
      detail::naming_component(name, [&] {
        const ExportTarget target = detail::model_target(model, inputs);
        exported.add(name, component(target, configs[i], notes));
        exported.set_config_files(target.config_files);
      });
      for (const std::string& note : notes) exported.notes.push_back(name + ": " + note);
    }
    return exported;
  }

  const Registry* registry_;
};

class DynamoExporter : public Exporter<DynamoExporter, DynamoConfig> {
 public:
  static constexpr ExportFormat kFormat = ExportFormat::Dynamo;
  using Exporter::Exporter;
  static std::vector<std::string> backends() { return {"dynamo"}; }
  static const DynamoConfig& tracing(const DynamoConfig& config) { return config; }
  static ExportedComponent lower(Program program, const DynamoConfig& config, const Registry& registry) {
    return lower_dynamo(std::move(program), config, registry);
  }
};

class OnnxExporter : public Exporter<OnnxExporter, OnnxConfig> {
 public:
  static constexpr ExportFormat kFormat = ExportFormat::Onnx;
  using Exporter::Exporter;
  static std::vector<std::string> backends() { return {"dynamo", "onnx"}; }
  static DynamoConfig tracing(const OnnxConfig& config) { return config.dynamo(); }
  static ExportedComponent lower(Program program, const OnnxConfig& config, const Registry& registry) {
    return lower_onnx(std::move(program), config, registry);
  }
};

// The exporter that a config asks for:
//
//     auto exporter = AutoHfExporter::from_config(AutoExportConfig::from_json(text));
//     exporter.export_model(model, inputs).save_pretrained("exported");
class AutoHfExporter {
 public:
  static AutoHfExporter from_config(ExportConfig config, const Registry& registry = Registry::global()) {
    return AutoHfExporter(std::move(config), registry);
  }

  const ExportConfig& config() const { return config_; }

  template <typename Module>
  ExportedModel export_module(Module&& module, const std::vector<at::Tensor>& inputs,
                              const std::vector<std::string>& names = {}) const {
    return visit([&](const auto& exporter, const auto& config) {
      return exporter.export_module(std::forward<Module>(module), inputs, config, names);
    });
  }
  ExportedModel export_model(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs) const {
    return visit(
        [&](const auto& exporter, const auto& config) { return exporter.export_model(model, inputs, config); });
  }
  ExportedModel export_for_generation(const std::shared_ptr<PreTrainedModel>& model, const ModelInputs& inputs,
                                      const GenerationOptions& options = {}) const {
    return visit([&](const auto& exporter, const auto& config) {
      return exporter.export_for_generation(model, inputs, config, options);
    });
  }
  template <typename Function>
  ExportedModel export_function(Function function, const NamedInputs& inputs) const {
    return visit(
        [&](const auto& exporter, const auto& config) { return exporter.export_function(function, inputs, config); });
  }
  ExportedModel convert(Program program) const {
    return visit([&](const auto& exporter, const auto& config) { return exporter.convert(program.clone(), config); });
  }

 private:
  AutoHfExporter(ExportConfig config, const Registry& registry) : config_(std::move(config)), registry_(&registry) {}

  // Calls f with the exporter and its config.
  template <typename F>
  ExportedModel visit(F f) const {
    if (const auto* dynamo = std::get_if<DynamoConfig>(&config_)) return f(DynamoExporter(*registry_), *dynamo);
    return f(OnnxExporter(*registry_), std::get<OnnxConfig>(config_));
  }

  ExportConfig config_;
  const Registry* registry_;
};

}  // namespace transporters

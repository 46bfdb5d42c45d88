#include <algorithm>
#include <iterator>

#include "transporters/error.h"
#include "transporters/export/pipeline.h"
#include "transporters/onnx/lower.h"
#include "transporters/passes/canonicalize_views.h"
#include "transporters/passes/complex_to_real.h"
#include "transporters/passes/decompose.h"
#include "transporters/passes/eliminate_dead_code.h"
#include "transporters/passes/fold_constants.h"
#include "transporters/passes/merge_common_subexpressions.h"
#include "transporters/passes/relax_views.h"
#include "transporters/passes/remove_no_ops.h"

namespace transporters {
namespace {

const ErrorContext kDynamicShapes{.stage = "dynamic shapes"};

// The dims that a config gives one input, by its path or its position.
const AxisDims* find_dims(const DynamicShapes& shapes, const std::string& path, size_t position) {
  if (auto it = shapes.named().find(path); it != shapes.named().end()) return &it->second;
  return position < shapes.positional().size() ? &shapes.positional()[position] : nullptr;
}

std::vector<TraceInput> with_dims(const ExportTarget& target, const DynamoConfig& config) {
  std::vector<TraceInput> inputs = target.inputs;
  if (config.dynamic_shapes.positional().size() > inputs.size())
    throw Error(kDynamicShapes, "axes are given for " + std::to_string(config.dynamic_shapes.positional().size()) +
                                    " inputs, but there are " + std::to_string(inputs.size()));
  std::vector<std::string> paths;
  for (const TraceInput& input : inputs) paths.push_back(input.path);
  for (const auto& [path, dims] : config.dynamic_shapes.named())
    if (std::find(paths.begin(), paths.end(), path) == paths.end())
      throw Error(kDynamicShapes, "there is no input '" + path + "'" + did_you_mean(path, paths));
  for (size_t i = 0; i < inputs.size(); ++i) {
    TraceInput& input = inputs[i];
    if (!input.sample.defined()) continue;  // a constant leaf
    const auto rank = input.sample.dim();
    input.dims.assign(static_cast<size_t>(rank), Dim::fixed());
    if (!config.dynamic_shapes.empty()) {
      const AxisDims* dims = find_dims(config.dynamic_shapes, input.path, i);
      if (dims == nullptr) continue;
      for (const auto& [axis, dim] : *dims) {
        if (axis < -rank || axis >= rank)
          throw Error(kDynamicShapes, "input '" + input.path + "' has rank " + std::to_string(rank) +
                                          ", but a Dim is given for axis " + std::to_string(axis));
        input.dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = dim;
      }
    } else if (config.dynamic) {
      const auto names = target.axis_names.find(input.path);
      for (size_t dim = 0; dim < input.dims.size(); ++dim) {
        const bool named = names != target.axis_names.end() && dim < names->second.size();
        if (named && names->second[dim] == ExportTarget::kFixedAxis) continue;
        input.dims[dim] = Dim::automatic(named ? names->second[dim] : "");
      }
    }
  }
  return inputs;
}

// Axes that have the size of a Dim in the samples, where the code tied that Dim to something: what to write when they
// are one size. "" when there are none. `message` is the ShapeEnv's, which names Dims.
std::string advice_on_ties(const std::string& message, const std::vector<TraceInput>& inputs) {
  constexpr size_t kListed = 3;
  const auto is_told = [&](const Dim& dim) {
    return dim.kind == Dim::Kind::Named && message.starts_with("Dim '" + dim.name + "' ");
  };
  const auto place = [](const TraceInput& input, size_t axis) { return input.path + " dim " + std::to_string(axis); };
  const auto entry = [](const TraceInput& input, size_t axis, const std::string& name) {
    return "\"" + input.path + "\": {\"" + std::to_string(axis) + "\": \"" + name + "\"}";
  };
  for (const TraceInput& input : inputs) {
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const Dim& dim = input.dims[axis];
      if (!is_told(dim)) continue;
      const int64_t size = input.sample.size(static_cast<int64_t>(axis));
      std::string others, entries = entry(input, axis, dim.name);
      size_t listed = 0;
      for (const TraceInput& other : inputs)
        for (size_t i = 0; i < other.dims.size() && &other != &input; ++i) {
          const bool is_another = other.dims[i].kind == Dim::Kind::Static || other.dims[i].name != dim.name;
          if (!is_another || other.sample.size(static_cast<int64_t>(i)) != size || ++listed > kListed) continue;
          others += (others.empty() ? "" : ", ") + place(other, i) +
                    (other.dims[i].kind == Dim::Kind::Static ? " (static)" : " (Dim '" + other.dims[i].name + "')");
          entries += ", " + entry(other, i, dim.name);
        }
      if (others.empty()) continue;
      return ". In the samples " + place(input, axis) + " (Dim '" + dim.name + "') is " + std::to_string(size) +
             ", and so is " + others + ": axes that are one size get one Dim, as --dynamic-shapes '{" + entries + "}'";
    }
  }
  return "";
}

// Whether the node is what dropout, batch norm and their kind do in training mode only.
bool is_training_form(const Node& node) {
  const auto base = node.schema().base_name();
  // Without running statistics those of the batch are what eval takes, too.
  const bool keeps_none = node.schema().find("running_mean") ? node.is_none("running_mean")
                                                             : node.op() == "aten::_native_batch_norm_legit.no_stats";
  if (keeps_none) return false;
  for (const char* argument : {"train", "training"}) {
    if (!node.schema().find(argument)) continue;
    const Argument* value = node.try_get(argument);
    const bool* flag = value ? std::get_if<bool>(value) : nullptr;
    // Where native_dropout is not told, it drops.
    const bool trains = flag ? *flag : base == "aten::native_dropout";
    const Argument* probability = node.schema().find("p") ? node.try_get("p") : nullptr;
    const double* p = probability ? std::get_if<double>(probability) : nullptr;
    if (trains && (p == nullptr || *p != 0.0)) return true;  // nothing is dropped at 0
  }
  return base == "aten::_batch_norm_with_update_functional";
}

constexpr const char* kTrainingMode =
    "training mode, where this op draws random numbers or takes the statistics of the batch; ";

void refuse_training(const Program& program) {
  for (const Node& node : *program.graph)
    if (is_training_form(node) || node.schema().base_name() == "aten::bernoulli")
      throw Error({.stage = "export", .op = node.op(), .module = node.module_path, .file = ""},
                  "the module is in " + std::string(kTrainingMode) + "call eval() before exporting");
}

// Names all parameters and buffers that were never given values, before any work is done.
void check_state(const std::vector<TraceState>& state) {
  constexpr size_t kNamed = 5;
  std::vector<std::string> missing;
  for (const TraceState& entry : state)
    if (entry.tensor.is_meta()) missing.push_back("'" + entry.name + "'");
  if (missing.empty()) return;
  std::string names;
  for (size_t i = 0; i < std::min(missing.size(), kNamed); ++i) names += (i > 0 ? ", " : "") + missing[i];
  if (missing.size() > kNamed) names += " and " + std::to_string(missing.size() - kNamed) + " more";
  throw Error({.stage = "export", .op = "", .module = "", .file = ""},
              "expected weights with values, got the meta device for " + names + "; load the weights first");
}

std::vector<Pass> clean_up_passes() {
  return {
      // No-ops first: what they hide is then seen as common or constant.
      {"remove_no_ops", remove_no_ops},
      {"fold_constants", fold_constants},
      {"merge_common_subexpressions", merge_common_subexpressions},
      {"eliminate_dead_code", eliminate_dead_code},
  };
}

void append(std::vector<Pass>& passes, std::vector<Pass> more) {
  passes.insert(passes.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

Program trace_program(const ExportTarget& target, const DynamoConfig& config, const std::vector<std::string>& backends,
                      const Registry& registry, std::vector<std::string>* notes) {
  check_state(target.state);
  // ── Stage 1: forward signature ── the target's inputs, one leaf each.
  // ── Stage 2: model patches ──
  const MethodPatchScope method_patches(registry, backends);
  TraceOptions options{.prefer_deferred_runtime_asserts_over_guards =
                           config.prefer_deferred_runtime_asserts_over_guards};
  options.answer_from_samples = target.answer_from_samples;
  options.source = target.source;
  options.wrapped_number = target.wrapped_number;
  for (const std::string& backend : backends)
    for (OpPatch& patch : registry.op_patches(backend)) options.patches.push_back(std::move(patch));
  // ── Stage 3: nesting ── is the target's in_spec; the traced function gives the out_spec.
  // ── Stage 4: dynamic shapes ──
  const std::vector<TraceInput> inputs = with_dims(target, config);
  // ── Stage 5: trace, functionalise, clean up ──
  Program program = [&] {
    try {
      return trace(target.forward, inputs, target.state, options, notes);
    } catch (const GuardError& error) {
      const std::string advice = advice_on_ties(error.message(), inputs);
      if (advice.empty()) throw;
      throw Error(ErrorContext{.stage = "dynamic shapes"}, error.message() + advice);
    }
  }();
  if (target.is_training) refuse_training(program);
  program.in_spec = target.in_spec;
  program.architecture = target.architecture;
  run_passes(program, clean_up_passes());
  return program;
}

std::vector<std::string> check_converted(const Program& program, ExportFormat format) {
  for (const Node& node : *program.graph) {
    if (!is_training_form(node)) continue;
    const Error error({.stage = "export", .op = node.op(), .module = node.module_path, .file = ""},
                      "the program was exported in " + std::string(kTrainingMode) +
                          "call eval() before torch.export and export it again");
    if (format != ExportFormat::Dynamo) throw error;
    return {error.what()};
  }
  return {};
}

ExportedComponent lower_dynamo(Program program, const DynamoConfig& config, const Registry& registry) {
  std::vector<Pass> passes = registry.program_fixes("dynamo");
  append(passes, registry.node_fixes("dynamo"));
  if (!passes.empty()) append(passes, clean_up_passes());
  passes.push_back({"relax_views", relax_views});
  run_passes(program, passes);
  ExportedComponent component{.program = std::move(program), .onnx = nullptr, .metadata = {}};
  component.metadata = build_metadata(component.program, ExportFormat::Dynamo, config.to_json());
  return component;
}

namespace {

static_assert(OnnxConfig::kMinOpset == onnx::kOldestOpset && OnnxConfig::kMaxOpset == onnx::kNewestOpset);

onnx::LowerOptions lower_options(const OnnxConfig& config, const Registry& registry) {
  return {.opset = config.opset_version.value_or(onnx::kDefaultOpset),
          .translations = registry.onnx_translations(),
          .ir_fixes = registry.onnx_ir_fixes(),
          .optimize = config.optimize};
}

}  // namespace

Program prepare_onnx(Program program, const OnnxConfig& config, const Registry& registry) {
  // ── Stage 1: torch patches ── were in place while the model was traced.
  // ── Stage 2: decompositions ── of what has no translation, between two rounds of
  // ── Stage 3: program and node fixes ── since a decomposition can bring ops that a fix looks for.
  const onnx::LowerOptions options = lower_options(config, registry);
  const auto is_translated = [&options](const std::string& op) {
    return onnx::find_translation(options.translations, op) != nullptr || onnx::find_translation(op) != nullptr;
  };
  std::vector<Pass> passes = registry.program_fixes("onnx");
  append(passes, registry.node_fixes("onnx"));
  passes.push_back({"decompose", [&](Program& p) { return decompose(p, is_translated); }});
  append(passes, registry.node_fixes("onnx"));
  // ONNX has no complex arithmetic.
  passes.push_back({"complex_to_real", complex_to_real});
  if (config.optimize) {
    passes.push_back({"canonicalize_views", canonicalize_views});
    append(passes, clean_up_passes());
  }
  run_passes(program, passes);
  return program;
}

ExportedComponent lower_onnx(Program program, const OnnxConfig& config, const Registry& registry) {
  ExportedComponent component{.program = program.clone(), .onnx = nullptr, .metadata = {}};
  program = prepare_onnx(std::move(program), config, registry);
  // ── Stage 4: translation ── and ── Stage 5: IR fixes ──
  component.onnx = std::make_shared<onnx::Model>(onnx::lower(program, lower_options(config, registry)));
  component.metadata = build_metadata(component.program, ExportFormat::Onnx, config.to_json());
  return component;
}

}  // namespace transporters

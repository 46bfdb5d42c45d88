#include "transporters/trace/recorder.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/enum_tag.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>

#include "transporters/error.h"
#include "transporters/symbolic/sym_node.h"
#include "transporters/trace/fake_tensor.h"
#include "transporters/trace/module_scope.h"
#include "transporters/trace/pointwise_layout.h"
#include "transporters/trace/preserve.h"
#include "transporters/trace/probe.h"
#include "transporters/trace/shape_rules/shape_rules.h"

namespace transporters {
namespace {

namespace functionalization = at::functionalization::impl;

// The mode that sees every op first, and the key whose fallback records what functionalisation leaves.
constexpr auto kMode = c10::DispatchKey::TESTING_ONLY_GenericMode;
constexpr auto kRecord = c10::DispatchKey::Fake;
// On while torch.vmap and its kind run a function.
constexpr auto kTransform = c10::DispatchKey::FuncTorchDynamicLayerFrontMode;
constexpr auto kAutocast = c10::DispatchKey::AutocastCPU;

// Elements; larger allocations are recorded like every other op.
constexpr int64_t kLargestRealAllocation = 1 << 16;

// While it lives, ops compute as if there were no trace.
struct OutsideTrace {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::DispatchKeySet({kMode, c10::DispatchKey::Functionalize, kRecord})};
};

at::Scalar number_of(const at::Tensor& tensor) {
  const OutsideTrace outside;
  return tensor.item();
}

thread_local Recorder* active = nullptr;

void mode_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  Recorder* recorder = Recorder::current();
  if (recorder == nullptr) throw InternalError("the tracing mode is on without a trace");
  recorder->intercept(op, *stack);
}

void record_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  Recorder* recorder = Recorder::current();
  if (recorder == nullptr) throw InternalError("the recording key is on without a trace");
  recorder->record(op, *stack);
}

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

bool is_wrapped_number(const at::Tensor& tensor) {
  return tensor.defined() && as_fake(tensor) == nullptr && tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// Whether the op's kernel lays out its result like its operands: pointwise ones, and copies unless told otherwise.
bool keeps_layout(const c10::OperatorHandle& op, const Node& node) {
  if (!op.hasTag(at::Tag::pointwise) && !node.is("aten::_to_copy")) return false;
  if (node.op().starts_with("aten::masked_fill")) return false;  // copies its input contiguously
  const Argument* format = node.schema().find("memory_format") ? node.try_get("memory_format") : nullptr;
  const auto* wanted = format ? std::get_if<MemoryFormat>(format) : nullptr;
  return wanted == nullptr || wanted->name == "preserve_format";
}

// The functional forms of writes through views: what they return lies in memory as what they copy.
bool writes_into_a_copy(const Node& node) {
  static const std::set<std::string, std::less<>> ops = {"aten::as_strided_scatter", "aten::copy",
                                                         "aten::diagonal_scatter",   "aten::index_put",
                                                         "aten::select_scatter",     "aten::slice_scatter"};
  return ops.contains(node.op());
}

// Calls f(tensor) -> tensor on every tensor of the top `count` stack entries, lists included.
template <typename F>
void transform_tensors(torch::jit::Stack& stack, size_t count, const F& f) {
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    c10::IValue& value = stack[i];
    if (value.isTensor()) {
      if (value.toTensor().defined()) value = f(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& element : value.toTensorVector()) list.push_back(f(element));
      value = std::move(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& element : value.toOptionalTensorVector())
        list.push_back(element && element->defined() ? std::optional(f(*element)) : element);
      value = std::move(list);
    }
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&mode_fallback>());
}
TORCH_LIBRARY_IMPL(_, Fake, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&record_fallback>()); }

Recorder::Recorder(Graph& graph, std::shared_ptr<symbolic::ShapeEnv> env, const TraceOptions& options)
    : graph_(graph), env_(std::move(env)), options_(options) {
  if (active != nullptr) throw Error(ErrorContext{.stage = "trace"}, "another trace is running on this thread");
  on_concrete_read_ = [this] { read_concrete_sizes_ = true; };
  env_->set_location([this] { return location(); });
  known_.set_largest_result(kLargestRealAllocation);
  if (options.answer_from_samples) {
    sampled_.set_symbols([this](std::string_view symbol) { return sample_of(symbol); });
    env_->set_data_oracle([this](const Expr& expr) { return ask_samples(expr); });
  }
  for (const OpPatch& patch : options.patches) {
    get_schema(patch.op);  // an unknown op is an error here, with near names
    const auto separator = patch.op.find('.');
    const std::string base = patch.op.substr(0, separator);
    const std::string overload = separator == std::string::npos ? "" : patch.op.substr(separator + 1);
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), overload.c_str());
    // Patches of one op nest: the one registered last is outermost.
    BoxedOp original;
    if (auto it = patches_.find(patch.op); it != patches_.end()) {
      original = it->second;
    } else {
      original = [this, handle, name = patch.op](torch::jit::Stack& stack) {
        ++patches_running_[name];
        try {
          handle.callBoxed(stack);
        } catch (...) {
          --patches_running_[name];
          throw;
        }
        --patches_running_[name];
      };
    }
    patches_[patch.op] = patch.factory(std::move(original));
  }
  active = this;
}

Recorder::~Recorder() {
  active = nullptr;
  env_->set_location(nullptr);
  env_->set_data_oracle(nullptr);
}

Recorder* Recorder::current() { return active; }

void Recorder::run(const std::function<void()>& code) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const functionalization::FunctionalizationReapplyViewsGuard reapply_views(true);
  const c10::impl::IncludeDispatchKeyGuard include(
      c10::DispatchKeySet({kMode, c10::DispatchKey::Functionalize, kRecord}));
  code();
}

std::string Recorder::location() const {
  const std::string module = current_module_path();
  const std::string source = options_.source ? options_.source() : "";
  // The code itself asks between ops.
  return (current_op_.empty() ? "the code" : current_op_) + (module.empty() ? "" : " at " + module) +
         (source.empty() ? "" : " (" + source + ")");
}

ErrorContext Recorder::error_context() const {
  return {.stage = "trace", .op = current_op_, .module = current_module_path(), .file = ""};
}

at::Tensor Recorder::make_input(Value* value) {
  return functionalization::to_functional_tensor(make_fake(value, env_, on_concrete_read_));
}

void Recorder::bind(const at::Tensor& real, Value* value, const std::string& module) {
  if (!module.empty()) owner_.emplace(value, module);
  if (bound_.contains(real.unsafeGetTensorImpl())) return;  // tied: the first name owns it
  bound_.emplace(real.unsafeGetTensorImpl(), make_input(value));
  kept_alive_.push_back(real);
}

at::Tensor Recorder::functional(const at::Tensor& tensor) {
  if (functionalization::isFunctionalTensor(tensor) || is_wrapped_number(tensor)) return tensor;
  if (as_fake(tensor) != nullptr) return functionalization::to_functional_tensor(tensor);
  if (auto it = bound_.find(tensor.unsafeGetTensorImpl()); it != bound_.end()) return it->second;
  if (tensor.is_meta())
    throw Error(error_context(), "a tensor on the meta device is read; load its weights before the export");
  TensorType type{.dtype = tensor.scalar_type()};
  for (int64_t size : tensor.sizes()) type.sizes.emplace_back(size);
  Value* value = graph_.add_input("lifted_tensor_" + std::to_string(constants_.size()), type);
  constants_.push_back({tensor, value});
  known_.add(value, tensor);
  sampled_.add(value, tensor);
  bind(tensor, value);
  return bound_.at(tensor.unsafeGetTensorImpl());
}

Value* Recorder::input_of(const at::Tensor& tensor) {
  FakeTensorImpl* fake = as_fake(tensor);
  if (fake == nullptr) throw InternalError("a tensor without a graph value reached " + current_op_);
  return fake->value();
}

Value* Recorder::value_of(const at::Tensor& tensor) {
  const c10::impl::ExcludeDispatchKeyGuard no_mode(kMode);
  const at::Tensor wrapper = functional(tensor);
  if (is_wrapped_number(wrapper)) {
    // A plain number returned as a tensor: a constant of the graph.
    TensorType type{.dtype = wrapper.scalar_type()};
    Value* value = graph_.add_input("lifted_tensor_" + std::to_string(constants_.size()), type);
    constants_.push_back({wrapper, value});
    return value;
  }
  functionalization::sync(wrapper);
  return input_of(functionalization::from_functional_tensor(wrapper));
}

Value* Recorder::value_of_bound(const at::Tensor& real) {
  auto it = bound_.find(real.unsafeGetTensorImpl());
  return it == bound_.end() ? nullptr : value_of(it->second);
}

const Recorder::OpInfo& Recorder::info(const c10::OperatorHandle& op) {
  auto it = infos_.find(op.operator_name());
  if (it != infos_.end()) return it->second;
  const std::string name = full_name(op.operator_name());
  OpInfo info{.schema = &get_schema(name), .route = OpInfo::Route::Functionalize};
  const bool composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  const bool preserved = (preserved_ops().contains(name) || options_.preserve.contains(name)) &&
                         !options_.decompose.contains(name) && !info.schema->is_mutable() && !info.schema->is_view();
  if (name == "aten::empty.memory_format" || name == "aten::_local_scalar_dense")
    info.route = OpInfo::Route::AnswerNow;
  else if (preserved)
    info.route = OpInfo::Route::Preserve;
  else if (composite)
    info.route = OpInfo::Route::Decompose;
  if (auto patch = patches_.find(name); patch != patches_.end()) info.patch = &patch->second;
  return infos_.emplace(op.operator_name(), info).first->second;
}

bool Recorder::preserve_applies(const OpSchema& schema, const torch::jit::Stack& stack) const {
  const auto argument = [&](std::string_view name) -> const c10::IValue& {
    return stack[stack.size() - schema.arguments.size() + *schema.find(name)];
  };
  // Training forms update running statistics or draw random numbers: only the decomposition says so.
  if (schema.name == "aten::batch_norm") return !argument("training").toBool();
  if (schema.find("train") && schema.find("dropout"))
    return !argument("train").toBool() || argument("dropout").toDouble() == 0.0;
  // Without a class count the result's size depends on data.
  if (schema.name == "aten::one_hot") return argument("num_classes").toSymInt().maybe_as_int() != -1;
  return true;
}

// Ops whose result is no part of the graph.
bool Recorder::answer_now(const c10::OperatorHandle& op, const OpSchema& schema, torch::jit::Stack& stack) {
  if (schema.name == "aten::empty.memory_format") {
    // torch::tensor({1, 2}) allocates and then writes through the pointer: small tensors of fixed size are real until
    // an op reads them, which makes them constants. Zeros, so that the same code gives the same constants.
    const c10::IValue& sizes = stack[stack.size() - schema.arguments.size()];
    if (!sizes.isIntList()) return false;
    int64_t numel = 1;
    for (const int64_t size : sizes.toIntVector()) numel *= size;
    if (numel > kLargestRealAllocation) return false;
    const OutsideTrace outside;
    op.callBoxed(stack);
    stack.back().toTensor().zero_();
    return true;
  }
  if (schema.name == "aten::_local_scalar_dense") {
    // A number that depends on constants alone is no question to the data.
    const auto known = known_value(stack.back().toTensor());
    if (!known) return false;
    stack.back() = c10::IValue(number_of(*known));
    return true;
  }
  return false;
}

std::optional<at::Tensor> Recorder::known_value(const at::Tensor& tensor) {
  if (as_fake(tensor) == nullptr && !functionalization::isFunctionalTensor(tensor) &&
      !bound_.contains(tensor.unsafeGetTensorImpl()))
    return tensor;
  const Value* value = value_of(tensor);
  const OutsideTrace outside;
  const auto known = known_.find(value);
  return known ? std::optional(known->toTensor()) : std::nullopt;
}

// ── What the samples say ──

void Recorder::note_symbols(const Value* value) {
  const auto note = [&](const Expr& expr, std::optional<size_t> dim) {
    // A boolean that is read is Eq(u0, 1).
    for (const Expr& part : expr.kind() == symbolic::Kind::Equal ? expr.operands() : std::span(&expr, 1))
      if (part.kind() == symbolic::Kind::Symbol && !env_->hint(part))
        symbol_sources_.try_emplace(part.name(), SymbolSource{value, dim});
  };
  if (const auto* tensor = std::get_if<TensorType>(&value->type())) {
    for (size_t dim = 0; dim < tensor->sizes.size(); ++dim) note(tensor->sizes[dim], dim);
  } else {
    note(std::get<NumberType>(value->type()).expr, std::nullopt);
  }
}

std::optional<int64_t> Recorder::slice_length(const SymbolSource& source) {
  const Node* node = source.value->producer();
  if (node == nullptr || !node->is("aten::slice.Tensor")) return std::nullopt;
  const auto number = [&](const Expr& expr) -> std::optional<int64_t> {
    const auto found = expr.evaluate([this](std::string_view symbol) { return sample_of(symbol); });
    const auto* integer = found ? std::get_if<int64_t>(&*found) : nullptr;
    return integer ? std::optional(*integer) : std::nullopt;
  };
  const std::vector<Expr>& sizes = node->tensor("self")->sizes();
  const int64_t given = node->integer("dim");
  const auto dim = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(sizes.size()) : given);
  if (source.dim != dim) return std::nullopt;
  const auto size = number(sizes[dim]);
  const auto step = number(node->size("step"));
  if (!size || !step || *step <= 0) return std::nullopt;
  const auto place = [&](const char* name, int64_t otherwise) -> std::optional<int64_t> {
    if (node->is_none(name)) return otherwise;
    const auto at = number(node->size(name));
    return at ? std::optional(std::clamp<int64_t>(*at < 0 ? *at + *size : *at, 0, *size)) : std::nullopt;
  };
  const auto start = place("start", 0), end = place("end", *size);
  if (!start || !end) return std::nullopt;
  return std::max<int64_t>(*end - *start + *step - 1, 0) / *step;
}

std::optional<int64_t> Recorder::sample_of(std::string_view symbol) {
  const auto* info = env_->try_info(symbol);
  if (info != nullptr && info->hint) return info->sample ? info->sample : info->hint;
  const auto source = symbol_sources_.find(std::string(symbol));
  if (source == symbol_sources_.end()) return std::nullopt;
  if (const auto length = slice_length(source->second)) return length;
  const auto value = sampled_.find(source->second.value);
  if (!value) return std::nullopt;
  if (source->second.dim) return value->toTensor().size(static_cast<int64_t>(*source->second.dim));
  if (value->isBool()) return value->toBool();
  return value->isInt() ? std::optional(value->toInt()) : std::nullopt;
}

std::optional<symbolic::Number> Recorder::ask_samples(const Expr& expr) {
  const OutsideTrace outside;
  try {
    return expr.evaluate([this](std::string_view symbol) { return sample_of(symbol); });
  } catch (const std::exception&) {
    return std::nullopt;  // the samples themselves do not fit the code: the question stays open
  }
}

// Rewrites of the call by layers above this one: the ops that they make of it come back to intercept().
bool Recorder::rewritten_above(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  if (keys.included_.has(kTransform)) {
    if (!keys.excluded_.has(kTransform)) {
      op.callBoxedForDispatchKey(kTransform, stack);
    } else {
      // Inside the layer: its rule for the op runs, and what it calls on the tensors beneath is outside again.
      const c10::impl::ExcludeDispatchKeyGuard no_mode(kMode);
      op.callBoxed(stack);
    }
    return true;
  }
  if (at::autocast::is_autocast_enabled(c10::kCPU) && !keys.excluded_.has(kAutocast) &&
      op.hasKernelForDispatchKey(kAutocast)) {
    op.callBoxedForDispatchKey(kAutocast, stack);
    return true;
  }
  return false;
}

void Recorder::intercept(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (rewritten_above(op, stack)) return;
  const OpInfo& op_info = info(op);
  const OpSchema& schema = *op_info.schema;
  const std::string outer_op = std::exchange(current_op_, schema.name);
  if (op_info.patch != nullptr && patches_running_[schema.name] == 0) {
    (*op_info.patch)(stack);
  } else if (op_info.route == OpInfo::Route::AnswerNow && answer_now(op, schema, stack)) {
    // Answered without the graph.
  } else if (op_info.route == OpInfo::Route::Preserve && preserve_applies(schema, stack)) {
    record_whole(op, stack);
  } else if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
    // The mode stays on: the kernel's own ops come back here.
    op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, stack);
  } else {
    const c10::impl::ExcludeDispatchKeyGuard no_mode(kMode);
    wrap_arguments(stack, schema.arguments.size());
    op.callBoxed(stack);
  }
  // Left as it was only on success: an error keeps the op that raised it.
  current_op_ = outer_op;
}

void Recorder::wrap_arguments(torch::jit::Stack& stack, size_t count) {
  transform_tensors(stack, count, [this](const at::Tensor& tensor) { return functional(tensor); });
}

void Recorder::record_whole(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_mode(kMode);
  const OpSchema& schema = *info(op).schema;
  transform_tensors(stack, schema.arguments.size(), [this](const at::Tensor& tensor) {
    const at::Tensor wrapper = functional(tensor);
    if (!functionalization::isFunctionalTensor(wrapper)) return wrapper;
    functionalization::sync(wrapper);
    return functionalization::from_functional_tensor(wrapper);
  });
  record(op, stack);
  transform_tensors(stack, schema.returns.size(),
                    [](const at::Tensor& tensor) { return functionalization::to_functional_tensor(tensor); });
}

Expr Recorder::decode(int64_t value) const { return decoder_ == nullptr ? Expr(value) : decoder_->decode(value); }

Argument Recorder::to_argument(const c10::IValue& value, const SchemaArgument& argument) {
  const auto unsupported = [&]() -> Error {
    return Error(error_context(),
                 "argument '" + argument.name + "' holds a " + value.tagKind() + ", which a graph can't carry");
  };
  const auto number = [&](const c10::IValue& v) -> Argument {
    if (v.isBool()) return v.toBool();
    if (v.isInt()) return decode(v.toInt());
    if (v.isDouble()) return v.toDouble();
    if (v.isSymInt()) return env_->simplify(symbolic::to_expr(v.toSymInt()));
    if (v.isSymFloat()) return env_->simplify(symbolic::to_expr(v.toSymFloat()));
    if (v.isSymBool()) return env_->simplify(symbolic::to_expr(v.toSymBool()));
    throw unsupported();
  };
  const auto tensor = [&](const at::Tensor& t) -> Argument {
    if (!t.defined()) return None{};
    if (is_wrapped_number(t)) {
      const auto known = options_.wrapped_number ? options_.wrapped_number(t) : std::nullopt;
      return number(c10::IValue(known ? *known : number_of(t)));
    }
    return input_of(t);
  };
  if (value.isNone()) return None{};
  switch (argument.kind) {
    case ArgumentKind::Tensor:
      return tensor(value.toTensor());
    case ArgumentKind::TensorList: {
      Values values;
      for (const at::Tensor& element : value.toTensorVector()) values.push_back(input_of(element));
      return values;
    }
    case ArgumentKind::OptionalTensorList: {
      Values values;
      if (value.isTensorList()) {
        for (const at::Tensor& element : value.toTensorVector())
          values.push_back(element.defined() ? input_of(element) : nullptr);
      } else {
        for (const std::optional<at::Tensor>& element : value.toOptionalTensorVector())
          values.push_back(element && element->defined() ? input_of(*element) : nullptr);
      }
      return values;
    }
    case ArgumentKind::IntList: {
      std::vector<Expr> sizes;
      if (value.isIntList()) {
        for (int64_t size : value.toIntVector()) sizes.push_back(decode(size));
      } else if (value.isList()) {
        for (const c10::IValue& size : value.toListRef()) sizes.push_back(std::get<Expr>(number(size)));
      } else {
        sizes.push_back(std::get<Expr>(number(value)));
      }
      return sizes;
    }
    case ArgumentKind::Int:
    case ArgumentKind::Float:
    case ArgumentKind::Scalar: {
      if (value.isScalar() && value.toScalar().isComplex()) throw unsupported();
      if (argument.kind == ArgumentKind::Float && value.isInt()) return static_cast<double>(value.toInt());
      return number(value);
    }
    case ArgumentKind::Bool:
      return number(value);
    case ArgumentKind::FloatList:
      return value.toDoubleVector();
    case ArgumentKind::BoolList: {
      const auto list = value.toBoolList();
      return std::vector<bool>(list.begin(), list.end());
    }
    case ArgumentKind::String:
      return value.toStringRef();
    case ArgumentKind::StringList: {
      std::vector<std::string> strings;
      for (const c10::IValue& element : value.toListRef()) strings.push_back(element.toStringRef());
      return strings;
    }
    case ArgumentKind::ScalarType:
      return value.toScalarType();
    case ArgumentKind::MemoryFormat: {
      switch (value.toMemoryFormat()) {
        case c10::MemoryFormat::Contiguous:
          return MemoryFormat{"contiguous_format"};
        case c10::MemoryFormat::Preserve:
          return MemoryFormat{"preserve_format"};
        case c10::MemoryFormat::ChannelsLast:
          return MemoryFormat{"channels_last"};
        case c10::MemoryFormat::ChannelsLast3d:
          return MemoryFormat{"channels_last_3d"};
        default:
          throw unsupported();
      }
    }
    // Every tensor of a graph is a dense CPU tensor, so these say nothing.
    case ArgumentKind::Layout:
      if (value.toLayout() != c10::Layout::Strided) throw unsupported();
      return None{};
    case ArgumentKind::Device:
      if (!value.toDevice().is_cpu()) throw unsupported();
      return None{};
    case ArgumentKind::Other:
      throw unsupported();
  }
  throw unsupported();
}

std::vector<NamedArgument> Recorder::to_arguments(const OpSchema& schema, const torch::jit::Stack& stack) {
  std::vector<NamedArgument> arguments;
  arguments.reserve(schema.arguments.size());
  const size_t first = stack.size() - schema.arguments.size();
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].name == "pin_memory") continue;
    arguments.push_back({schema.arguments[i].name, to_argument(stack[first + i], schema.arguments[i])});
  }
  return arguments;
}

std::vector<ValueType> Recorder::infer_types(const c10::OperatorHandle& op, const Node& node,
                                             const torch::jit::Stack& stack) {
  const ShapeRule rule = find_shape_rule(node.op());
  if (rule == nullptr) return probe_types(op, node, stack, *env_);
  std::vector<ValueType> types = rule(node, *env_);
  if (keeps_layout(op, node)) keep_layout(node, types, *env_);
  if (writes_into_a_copy(node)) std::get<TensorType>(types[0]).strides = node.tensor("self")->tensor().strides;
  if (options_.check_shape_rules) check_types(op, node, stack, types, *env_);
  return types;
}

void Recorder::record(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const OpSchema& schema = *info(op).schema;
  const size_t count = schema.arguments.size();
  // Functionalisation runs an in-place op once on meta tensors, only to check shapes: not part of the program.
  if (schema.is_mutable()) {
    const size_t first = stack.size() - count;
    c10::IValue written = stack[first];
    for (size_t i = 0; i < count; ++i)
      if (schema.arguments[i].is_write) written = stack[first + i];
    const bool on_meta = written.isTensor() && written.toTensor().defined() && written.toTensor().is_meta();
    if (!on_meta)
      throw Error(error_context(),
                  "the op writes to its argument and has no functional form; replace it by an "
                  "out-of-place op, or register a patch for it");
    torch::jit::drop(stack, count);
    if (!schema.returns.empty()) stack.push_back(written);
    return;
  }
  const std::string outer_op = std::exchange(current_op_, schema.name);
  Node* node = graph_.append(schema.name, to_arguments(schema, stack), {});
  node->module_path = current_module_path();
  if (options_.source) node->source = options_.source();
  if (node->module_path.empty() && !owner_.empty()) {
    node->for_each_input([&](Value* value) {
      if (auto it = owner_.find(value); it != owner_.end()) node->module_path = it->second;
    });
  }
  graph_.add_outputs(node, infer_types(op, *node, stack));
  if (options_.answer_from_samples)
    for (const Value* output : node->outputs()) note_symbols(output);
  torch::jit::drop(stack, count);

  const auto push = [&](const c10::IValue& value) { stack.push_back(value); };
  const auto fake = [&](Value* value) { return make_fake(value, env_, on_concrete_read_); };
  size_t next = 0;
  for (const SchemaReturn& result : schema.returns) {
    if (result.kind == ArgumentKind::TensorList) {
      c10::List<at::Tensor> list;
      while (next < node->outputs().size()) list.push_back(fake(node->outputs()[next++]));
      push(std::move(list));
      continue;
    }
    if (next >= node->outputs().size())
      throw InternalError("the shape rule of " + schema.name + " gave too few outputs");
    Value* value = node->outputs()[next++];
    if (value->is_tensor()) {
      push(fake(value));
      continue;
    }
    const Expr expr = std::get<NumberType>(value->type()).expr;
    const bool as_scalar = result.kind == ArgumentKind::Scalar;
    if (expr.type() == symbolic::Type::Integer) {
      const c10::SymInt number = symbolic::to_sym_int(expr, env_);
      push(as_scalar ? c10::IValue(c10::Scalar(number)) : c10::IValue(number));
    } else if (expr.type() == symbolic::Type::Real) {
      const c10::SymFloat number = symbolic::to_sym_float(expr, env_);
      push(as_scalar ? c10::IValue(c10::Scalar(number)) : c10::IValue(number));
    } else {
      const c10::SymBool flag = symbolic::to_sym_bool(expr, env_);
      push(as_scalar ? c10::IValue(c10::Scalar(flag)) : c10::IValue(flag));
    }
  }
  if (next != node->outputs().size())
    throw InternalError("the shape rule of " + schema.name + " gave too many outputs");
  current_op_ = outer_op;
}

}  // namespace transporters

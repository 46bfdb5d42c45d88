// Lowering: reading arguments, emitting nodes, constants and layout. Sizes are in sizes.cpp, the walk over a program in
// lower_program.cpp.
#include "transporters/onnx/lower.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "transporters/graph/tensor_blocks.h"

namespace transporters::onnx {
namespace {

template <typename T, typename Number>
std::string bytes_of(Number number) {
  const T value = static_cast<T>(number);
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// One element of a type, from a number.
template <typename Number>
std::string element_bytes(Number number, ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float:
      return bytes_of<float>(number);
    case ScalarType::Double:
      return bytes_of<double>(number);
    case ScalarType::Half:
      return bytes_of<c10::Half>(static_cast<float>(number));
    case ScalarType::BFloat16:
      return bytes_of<c10::BFloat16>(static_cast<float>(number));
    case ScalarType::Long:
      return bytes_of<int64_t>(number);
    case ScalarType::Int:
      return bytes_of<int32_t>(number);
    case ScalarType::Short:
      return bytes_of<int16_t>(number);
    case ScalarType::Char:
      return bytes_of<int8_t>(number);
    case ScalarType::Byte:
      return bytes_of<uint8_t>(static_cast<int64_t>(number));
    case ScalarType::UInt16:
      return bytes_of<uint16_t>(static_cast<int64_t>(number));
    case ScalarType::UInt32:
      return bytes_of<uint32_t>(static_cast<int64_t>(number));
    case ScalarType::UInt64:
      return bytes_of<uint64_t>(static_cast<int64_t>(number));
    case ScalarType::Bool:
      return bytes_of<uint8_t>(number != 0);
    default:
      throw Error({.stage = "onnx"}, std::string("constants of type ") + c10::toString(dtype) + " are not supported");
  }
}

constexpr std::string_view kBoolOps[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And",
                                         "Or",    "Xor",  "Not",         "IsNaN",   "IsInf"};
constexpr std::string_view kIndexOps[] = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero"};

// Type of an op's output, as far as this library emits the op.
DataType output_type(const Node& node, size_t index) {
  const auto has = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), node.op) != std::end(list);
  };
  if (has(kBoolOps)) return DataType::BOOL;
  if (has(kIndexOps)) return DataType::INT64;
  if (index == 1 && (node.op == "TopK" || node.op == "MaxPool")) return DataType::INT64;
  if (index > 0 && node.op == "Unique") return DataType::INT64;
  for (const char* attribute : {"to", "dtype", "output_dtype"}) {
    if (const auto type = node.integer(attribute, 0)) return static_cast<DataType>(type);
  }
  if (node.op == "ConstantOfShape") {
    const auto* value = node.find("value");
    return value ? std::get<Tensor>(*value).type : DataType::FLOAT;
  }
  if (node.op == "Where" || node.op == "CastLike") return node.input(1)->type;
  if (node.op == "OneHot") return node.input(2)->type;
  if (node.op == "Range") return node.input(0)->type;
  return node.input(0) ? node.input(0)->type : DataType::UNDEFINED;
}

}  // namespace

Lowering::Lowering(const Program& program, Model& model, int64_t opset)
    : program_(program),
      model_(model),
      opset_(opset),
      current_(model.graph.get()),
      sources_(find_symbol_sources(program)) {
  for (const auto& [name, range] : program.ranges) ranges_.add_symbol({.name = name, .range = range});
}

ScalarType Lowering::dtype(const Value* value) {
  const auto scalar = to_scalar_type(value->type);
  if (!scalar) throw InternalError("ONNX value '" + value->name() + "' has no torch type");
  return *scalar;
}

Error Lowering::error(const AtenNode& node, const std::string& message) const {
  return Error({.stage = "onnx", .op = node.op(), .module = node.module_path}, message);
}

// ── Arguments ────────────────────────────────────────────────────────────────

Value* Lowering::value(const AtenValue* value) {
  const auto known = values_.find(value);
  if (known != values_.end()) return known->second;
  if (const InputSpec* spec = program_.find_input(value)) return values_[value] = parameter(*spec);
  throw InternalError("value '%" + value->name() + "' is read before it is lowered");
}

Value* Lowering::parameter(const InputSpec& spec) {
  const auto entry = program_.state.find(spec.target);
  if (entry == program_.state.end()) throw InternalError("no data for '" + spec.target + "'");
  return initializer(entry->second, spec.target);
}

Value* Lowering::parameter_row(const AtenValue* value, int64_t index) {
  const InputSpec* spec = program_.find_input(value);
  const auto known = values_.find(value);
  const bool is_fed = known != values_.end() && known->second->graph().is_input(known->second);
  if (spec == nullptr || spec->kind == InputKind::UserInput || is_fed) return nullptr;
  TensorData data = program_.state.at(spec->target);
  if (data.data == nullptr) return nullptr;
  const auto offset = static_cast<uint64_t>(index * data.strides[0]) * c10::elementSize(data.dtype);
  data.data = static_cast<const char*>(data.data) + offset;
  data.file_offset += offset;
  data.sizes.erase(data.sizes.begin());
  data.strides.erase(data.strides.begin());
  return initializer(data, spec->target + "." + std::to_string(index));
}

Value* Lowering::initializer(const TensorData& data, const std::string& name) {
  std::string key = std::to_string(reinterpret_cast<uintptr_t>(data.data)) + c10::toString(data.dtype);
  for (const int64_t size : data.sizes) key += " " + std::to_string(size);
  for (const int64_t stride : data.strides) key += "," + std::to_string(stride);
  if (data.data == nullptr) key += name;
  Value*& made = parameters_[key];
  if (made == nullptr) made = model_.graph->add_initializer(name, Tensor::of(data));
  return made;
}

Value* Lowering::input(const AtenNode& node, std::string_view argument, std::optional<ScalarType> dtype) {
  const Argument& given = node.get(argument);
  if (const auto* held = std::get_if<transporters::Value*>(&given)) {
    Value* value = this->value(*held);
    return dtype ? cast(value, *dtype) : value;
  }
  if (const auto* expr = std::get_if<Expr>(&given)) {
    const auto type = expr->type();
    const auto natural = type == symbolic::Type::Integer   ? ScalarType::Long
                         : type == symbolic::Type::Boolean ? ScalarType::Bool
                                                           : ScalarType::Float;
    return number(*expr, dtype.value_or(natural));
  }
  if (const auto* real = std::get_if<double>(&given)) return scalar(*real, dtype.value_or(ScalarType::Float));
  if (const auto* boolean = std::get_if<bool>(&given)) return integer(*boolean, dtype.value_or(ScalarType::Bool));
  throw error(node, "argument '" + std::string(argument) + "' is neither a tensor nor a number");
}

Value* Lowering::input_or_null(const AtenNode& node, std::string_view argument, std::optional<ScalarType> dtype) {
  return node.is_none(argument) ? nullptr : input(node, argument, dtype);
}

std::vector<Value*> Lowering::inputs(const AtenNode& node, std::string_view argument, std::optional<ScalarType> dtype) {
  std::vector<Value*> values;
  for (const AtenValue* held : node.tensors(argument)) {
    values.push_back(held ? (dtype ? cast(value(held), *dtype) : value(held)) : nullptr);
  }
  return values;
}

int64_t Lowering::dim(const AtenNode& node, std::string_view argument, std::string_view tensor) const {
  const int64_t dim = node.integer(argument);
  return dim < 0 ? dim + std::max<int64_t>(1, static_cast<int64_t>(node.tensor(tensor)->rank())) : dim;
}

std::vector<int64_t> Lowering::dims(const AtenNode& node, std::string_view argument, std::string_view tensor) const {
  const auto rank = static_cast<int64_t>(node.tensor(tensor)->rank());
  std::vector<int64_t> dims;
  if (!node.is_none(argument)) dims = node.integers(argument);
  if (dims.empty()) {
    dims.resize(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), int64_t{0});
  }
  for (int64_t& dim : dims) dim += dim < 0 ? std::max<int64_t>(rank, 1) : 0;
  return dims;
}

ScalarType Lowering::result_type(const AtenNode& node, std::initializer_list<std::string_view> arguments) const {
  // The three ranks of torch's rule: tensors with dimensions, tensors without, numbers.
  std::optional<ScalarType> with_dims, without_dims, numbers;
  const auto merge = [](std::optional<ScalarType>& into, ScalarType dtype) {
    into = into ? c10::promoteTypes(*into, dtype) : dtype;
  };
  for (const auto name : arguments) {
    const Argument& given = node.get(name);
    if (const auto* held = std::get_if<transporters::Value*>(&given)) {
      if ((*held)->is_tensor()) {
        merge((*held)->rank() > 0 ? with_dims : without_dims, (*held)->dtype());
      } else {
        const auto type = std::get<NumberType>((*held)->type()).expr.type();
        merge(numbers, type == symbolic::Type::Integer ? ScalarType::Long : ScalarType::Float);
      }
    } else if (const auto* expr = std::get_if<Expr>(&given)) {
      merge(numbers, expr->type() == symbolic::Type::Integer   ? ScalarType::Long
                     : expr->type() == symbolic::Type::Boolean ? ScalarType::Bool
                                                               : ScalarType::Float);
    } else if (std::holds_alternative<double>(given)) {
      merge(numbers, ScalarType::Float);
    } else if (std::holds_alternative<bool>(given)) {
      merge(numbers, ScalarType::Bool);
    }
  }
  // A lower rank counts only when its category (bool < integer < float) is higher.
  const auto category = [](ScalarType dtype) {
    return dtype == ScalarType::Bool ? 0 : c10::isIntegralType(dtype, false) ? 1 : c10::isFloatingType(dtype) ? 2 : 3;
  };
  std::optional<ScalarType> result = with_dims;
  for (const auto& lower : {without_dims, numbers}) {
    if (lower && (!result || category(*lower) > category(*result)))
      result = result ? c10::promoteTypes(*result, *lower) : lower;
  }
  if (!result) throw error(node, "has no operands");
  return *result;
}

// ── Emitting ─────────────────────────────────────────────────────────────────

Outputs Lowering::emit_many(std::string_view op, std::vector<Value*> inputs, Attributes attributes, size_t outputs) {
  std::string base = node_ && !node_->outputs().empty() ? node_->outputs()[0]->name() + "/" : "";
  base += op;
  Node* node = current_->insert(nullptr, op, std::move(inputs), std::move(attributes), std::vector(outputs, base));
  if (node_) node->name = (node_->module_path.empty() ? "" : node_->module_path + "/") + node->output()->name();
  for (size_t i = 0; i < outputs; ++i) node->output(i)->type = output_type(*node, i);
  return {node->outputs().begin(), node->outputs().end()};
}

Value* Lowering::emit(std::string_view op, std::vector<Value*> inputs, Attributes attributes) {
  return emit_many(op, std::move(inputs), std::move(attributes), 1)[0];
}

Value* Lowering::cast(Value* value, ScalarType dtype) {
  const DataType type = to_data_type(dtype);
  if (value->type == type) return value;
  if (value->is_initializer() && value->shape && value->shape->empty()) {
    if (const auto real = elements<float>(value)) return scalar((*real)[0], dtype);
    if (const auto number = elements<int64_t>(value)) return integer((*number)[0], dtype);
  }
  return emit("Cast", {value}, {{"to", static_cast<int64_t>(type)}});
}

Value* Lowering::once(const std::string& key, const std::function<Value*()>& make) {
  const auto known = once_.find(key);
  if (known != once_.end()) return known->second;
  // Made in the outermost graph, where every later reader sees it.
  Graph* const current = std::exchange(current_, model_.graph.get());
  Value* value = make();
  current_ = current;
  return once_[key] = value;
}

std::shared_ptr<Graph> Lowering::subgraph(std::string_view name, const std::function<void(Graph&)>& body) {
  auto graph = std::make_shared<Graph>(current_);
  graph->name = name;
  Graph* const outer = std::exchange(current_, graph.get());
  body(*graph);
  current_ = outer;
  return graph;
}

// ── Constants ────────────────────────────────────────────────────────────────

Value* Lowering::add_constant(ScalarType dtype, std::vector<int64_t> dims, std::string bytes) {
  std::string key = c10::toString(dtype);
  for (const int64_t dim : dims) key += " " + std::to_string(dim);
  key += ":" + bytes;
  Value*& value = constants_[key];
  if (value) return value;
  TensorData data{.dtype = dtype, .sizes = dims, .strides = contiguous_strides(dims)};
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  data.data = owner->empty() ? nullptr : owner->data();
  data.owner = owner;
  return value = model_.graph->add_initializer("constant", Tensor::of(data));
}

Value* Lowering::constant(const TensorData& data) {
  std::string bytes;
  for_each_block(data, data.nbytes(),
                 [&](const void* block, size_t size) { bytes.append(static_cast<const char*>(block), size); });
  return add_constant(data.dtype, data.sizes, std::move(bytes));
}

Value* Lowering::scalar(double value, ScalarType dtype) { return add_constant(dtype, {}, element_bytes(value, dtype)); }

Value* Lowering::integer(int64_t value, ScalarType dtype) {
  return add_constant(dtype, {}, element_bytes(value, dtype));
}

Value* Lowering::vector(const std::vector<int64_t>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  return add_constant(ScalarType::Long, {static_cast<int64_t>(values.size())}, std::move(bytes));
}

Value* Lowering::vector(const std::vector<double>& values, ScalarType dtype) {
  std::string bytes;
  for (const double value : values) bytes += element_bytes(value, dtype);
  return add_constant(dtype, {static_cast<int64_t>(values.size())}, std::move(bytes));
}

Value* Lowering::filled(double value, ScalarType dtype, std::vector<int64_t> dims) {
  const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  const std::string element = element_bytes(value, dtype);
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes += element;
  return add_constant(dtype, std::move(dims), std::move(bytes));
}

template <typename T>
std::optional<std::vector<T>> Lowering::elements(const Value* value) {
  constexpr bool kReal = std::is_same_v<T, float>;
  if (!value->is_initializer() || value->graph().is_input(value)) return std::nullopt;
  const Tensor& tensor = *value->initializer;
  if (tensor.type != (kReal ? DataType::FLOAT : DataType::INT64)) return std::nullopt;
  if (tensor.numel() > 4096 || !tensor.data.is_contiguous()) return std::nullopt;
  std::vector<T> elements(static_cast<size_t>(tensor.numel()));
  if (!elements.empty()) std::memcpy(elements.data(), tensor.data.data, elements.size() * sizeof(T));
  return elements;
}
template std::optional<std::vector<float>> Lowering::elements<float>(const Value*);
template std::optional<std::vector<int64_t>> Lowering::elements<int64_t>(const Value*);

// ── Layout ───────────────────────────────────────────────────────────────────

Value* Lowering::reshape(Value* value, std::span<const Expr> from, std::span<const Expr> to) {
  if (std::equal(from.begin(), from.end(), to.begin(), to.end())) return value;
  // Per dimension: its constant, 0 where the input has the same size at the same place, -1 for one that is left.
  std::vector<int64_t> sizes;
  size_t copied = 0, inferred = 0;
  bool has_zero = false, others_are_positive = true;
  for (size_t i = 0; i < to.size(); ++i) {
    if (const auto constant = to[i].as_integer()) {
      sizes.push_back(*constant);
      has_zero = has_zero || *constant == 0;
    } else if (i < from.size() && from[i] == to[i]) {
      sizes.push_back(0);
      ++copied;
      others_are_positive = others_are_positive && is_at_least(to[i], 1);
    } else {
      sizes.push_back(-1);
      ++inferred;
    }
  }
  if (copied + inferred == 0) return emit("Reshape", {value, vector(sizes)}, {{"allowzero", int64_t{has_zero}}});
  // -1 can't be inferred when another size may be 0.
  const bool is_constant = !has_zero && (inferred == 0 || (inferred == 1 && others_are_positive));
  if (is_constant) return emit("Reshape", {value, vector(sizes)});
  return emit("Reshape", {value, shape(to)}, {{"allowzero", int64_t{1}}});
}

Value* Lowering::expand(Value* value, std::span<const Expr> from, std::span<const Expr> to) {
  if (std::equal(from.begin(), from.end(), to.begin(), to.end())) return value;
  // Expand broadcasts both ways: 1 keeps a size.
  std::vector<Expr> target(to.begin(), to.end());
  const size_t added = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[added + i]) target[added + i] = 1;
  }
  return emit("Expand", {value, shape(target)});
}

Value* Lowering::unsqueeze(Value* value, const std::vector<int64_t>& dims) {
  return dims.empty() ? value : emit("Unsqueeze", {value, vector(dims)});
}

Value* Lowering::squeeze(Value* value, const std::vector<int64_t>& dims) {
  return dims.empty() ? value : emit("Squeeze", {value, vector(dims)});
}

Value* Lowering::transpose(Value* value, const std::vector<int64_t>& order) {
  bool moves = false;
  for (size_t i = 0; i < order.size(); ++i) moves = moves || order[i] != static_cast<int64_t>(i);
  return moves ? emit("Transpose", {value}, {{"perm", order}}) : value;
}

Value* Lowering::slice(Value* value, int64_t dim, Value* start, Value* end, int64_t step) {
  return emit("Slice", {value, start, end, vector(std::vector<int64_t>{dim}), vector(std::vector<int64_t>{step})});
}

Value* Lowering::slice(Value* value, int64_t dim, const Expr& start, const Expr& end, int64_t step) {
  return slice(value, dim, size_vector(start), size_vector(end), step);
}

Value* Lowering::concat(const std::vector<Value*>& values, int64_t dim) {
  return values.size() == 1 ? values[0] : emit("Concat", values, {{"axis", dim}});
}

Value* Lowering::reduce(std::string_view op, Value* value, const std::vector<int64_t>& dims, bool keepdims) {
  // No axes would mean all of them.
  if (dims.empty()) return value;
  return emit(op, {value, vector(dims)}, {{"keepdims", int64_t{keepdims}}});
}

}  // namespace transporters::onnx

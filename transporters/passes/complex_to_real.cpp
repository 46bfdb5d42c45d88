#include "transporters/passes/complex_to_real.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>

#include "transporters/passes/decompose.h"
#include "transporters/passes/rewrite.h"

namespace transporters {
namespace {

bool is_complex(const Value* value) { return value->is_tensor() && c10::isComplexType(value->dtype()); }

// A complex tensor. Without an imaginary part it is real.
struct Parts {
  Value* real = nullptr;
  Value* imag = nullptr;
};

class Rewriter;
// The parts of each output; a real output has only `real`. Empty: no formula.
using Formula = std::vector<Parts> (*)(Rewriter&, const Node&, NodeBuilder&);

const std::unordered_map<std::string_view, Formula>& formulas();

class Rewriter {
 public:
  explicit Rewriter(Program& program) : program_(program), env_(make_shape_env(program)) {}

  bool run() {
    split_state();
    for (Node* node = program_.graph->front(); node != nullptr;) {
      Node* const next = node->next();
      rewrite(*node);
      node = next;
    }
    for (const auto& output : program_.outputs) {
      if (output.value == nullptr || !parts_.contains(output.value)) continue;
      Value* value = output.value;
      NodeBuilder build(*program_.graph, nullptr, env_);
      Value* whole = joined(value, build);
      if (whole != value) program_.replace_all_uses(value, whole);
    }
    for (auto node = replaced_.rbegin(); node != replaced_.rend(); ++node) erase_unused(**node);
    for (const auto& [value, name] : renamed_)
      if (program_.graph->find_value(name) == nullptr) program_.graph->rename(value, name);
    for (Value* input : split_inputs_) {
      if (input->uses().empty() && !program_.graph->is_output(input)) program_.erase_input(input);
    }
    return changed_;
  }

  // Known real and imaginary parts, rather than an op that stays complex.
  bool has_parts(const Value* value) const { return parts_.contains(value); }

  Parts parts(Value* value, NodeBuilder& build) {
    if (!is_complex(value)) return {value, nullptr};
    const auto known = parts_.find(value);
    if (known != parts_.end()) return known->second;
    Value* pairs = build.unary("aten::view_as_real", value);
    return parts_[value] = {part_of(pairs, 0, build), part_of(pairs, 1, build)};
  }

  Parts parts(const Node& node, std::string_view argument, NodeBuilder& build) {
    return parts(node.tensor(argument), build);
  }

  static Value* part_of(Value* pairs, int64_t index, NodeBuilder& build) {
    return build("aten::select.int", {{"self", pairs}, {"dim", Expr(-1)}, {"index", Expr(index)}});
  }

  static Value* imag_or_zeros(const Parts& parts, NodeBuilder& build) {
    return parts.imag ? parts.imag : build.unary("aten::zeros_like", parts.real);
  }

  static Value* pairs_of(const Parts& parts, NodeBuilder& build) {
    return build("aten::stack", {{"tensors", Values{parts.real, imag_or_zeros(parts, build)}}, {"dim", Expr(-1)}});
  }

 private:
  // Complex state as two real tensors that lie in it.
  void split_state() {
    std::vector<InputSpec> inputs;
    for (const InputSpec& input : program_.inputs) {
      inputs.push_back(input);
      if (input.value == nullptr || input.kind == InputKind::UserInput || !is_complex(input.value)) continue;
      if (is_written(input)) continue;
      Parts parts;
      for (const bool is_imag : {false, true}) {
        InputSpec part = input;
        part.target += is_imag ? ".imag" : ".real";
        const std::string name = input.value->name() + (is_imag ? "_imag" : "_real");
        part.value = program_.graph->add_input(name, part_type(input.value));
        if (const auto data = program_.state.find(input.target); data != program_.state.end())
          program_.state[part.target] = part_data(data->second, is_imag);
        inputs.push_back(part);
        (is_imag ? parts.imag : parts.real) = part.value;
      }
      parts_[input.value] = parts;
      split_inputs_.push_back(input.value);
    }
    if (split_inputs_.empty()) return;
    program_.inputs = std::move(inputs);
    std::vector<Value*> order;
    for (const auto& input : program_.inputs)
      if (input.value != nullptr) order.push_back(input.value);
    program_.graph->reorder_inputs(order);
    changed_ = true;
  }

  bool is_written(const InputSpec& input) const {
    return std::ranges::any_of(program_.outputs, [&](const OutputSpec& output) {
      return output.kind == OutputKind::BufferMutation && output.target == input.target;
    });
  }

  static TensorType part_type(const Value* value) {
    TensorType type = std::get<TensorType>(value->type());
    type.dtype = c10::toRealValueType(type.dtype);
    if (type.strides.empty()) {
      Expr stride = 1;
      for (size_t i = type.sizes.size(); i-- > 0; stride = stride * type.sizes[i])
        type.strides.insert(type.strides.begin(), stride);
    }
    for (Expr& stride : type.strides) stride = stride * 2;
    return type;
  }

  static TensorData part_data(TensorData data, bool is_imag) {
    data.dtype = c10::toRealValueType(data.dtype);
    for (int64_t& stride : data.strides) stride *= 2;
    if (is_imag && data.data != nullptr) {
      data.data = static_cast<const char*>(data.data) + c10::elementSize(data.dtype);
      data.file_offset += c10::elementSize(data.dtype);
    }
    return data;
  }

  void rewrite(Node& node) {
    bool touches = std::ranges::any_of(node.outputs(), is_complex);
    node.for_each_input([&](const Value* value) { touches = touches || is_complex(value); });
    if (!touches) return;
    NodeBuilder build(*program_.graph, &node, env_);
    const auto formula = formulas().find(node.op());
    const auto by_base = formula != formulas().end() ? formula : formulas().find(node.schema().base_name());
    std::vector<Parts> results;
    if (by_base != formulas().end()) results = by_base->second(*this, node, build);
    if (results.empty()) {
      keep(node, build);
      return;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      Value* output = node.outputs()[i];
      if (is_complex(output)) {
        parts_[output] = results[i];
        continue;
      }
      Value* made = results[i].real;
      const std::string name = output->name();
      const bool is_new = std::ranges::count(build.made(), made->producer()) > 0;
      program_.replace_all_uses(output, made);
      if (is_new) renamed_.emplace_back(made, name);
    }
    replaced_.push_back(&node);
    changed_ = true;
  }

  // An op that stays complex reads complex tensors.
  void keep(Node& node, NodeBuilder& build) {
    const auto arguments = std::vector<NamedArgument>(node.arguments().begin(), node.arguments().end());
    for (NamedArgument argument : arguments) {
      bool is_other = false;
      const auto join = [&](Value*& value) {
        if (value == nullptr || !parts_.contains(value)) return;
        Value* whole = joined(value, build);
        is_other = is_other || whole != value;
        value = whole;
      };
      if (auto* value = std::get_if<Value*>(&argument.value)) join(*value);
      if (auto* values = std::get_if<Values>(&argument.value)) std::ranges::for_each(*values, join);
      if (is_other) node.set(argument.name, argument.value);
    }
  }

  // A complex value from its parts; itself where the node that makes it reads real tensors only.
  Value* joined(Value* value, NodeBuilder& build) {
    const Node* producer = value->producer();
    const bool is_input = producer == nullptr && !std::ranges::count(split_inputs_, value);
    if (is_input || (producer != nullptr && !std::ranges::count(replaced_, producer)) ||
        (producer != nullptr && producer->schema().base_name() == "aten::view_as_complex"))
      return value;
    Value*& whole = joined_[value];
    if (whole == nullptr) {
      whole = build.unary("aten::view_as_complex", pairs_of(parts_.at(value), build));
      changed_ = true;
    }
    return whole;
  }

  void erase_unused(Node& node) {
    for (const Value* output : node.outputs())
      if (!output->uses().empty() || program_.graph->is_output(output)) return;
    program_.graph->erase(&node);
  }

  Program& program_;
  symbolic::ShapeEnv env_;
  std::unordered_map<const Value*, Parts> parts_;
  std::unordered_map<const Value*, Value*> joined_;
  std::vector<Node*> replaced_;
  std::vector<Value*> split_inputs_;
  std::vector<std::pair<Value*, std::string>> renamed_;  // real results take the names of what they replace
  bool changed_ = false;
};

// ── Formulas ─────────────────────────────────────────────────────────────────

Value* add(NodeBuilder& build, Value* a, Value* b) { return build.binary("aten::add.Tensor", a, b); }
Value* sub(NodeBuilder& build, Value* a, Value* b) { return build.binary("aten::sub.Tensor", a, b); }
Value* mul(NodeBuilder& build, const Argument& a, const Argument& b) { return build.binary("aten::mul.Tensor", a, b); }
Value* neg(NodeBuilder& build, Value* value) { return build.unary("aten::neg", value); }

// The sum of terms of which some may be absent.
Value* sum(NodeBuilder& build, Value* a, Value* b) { return a && b ? add(build, a, b) : a ? a : b; }
Value* difference(NodeBuilder& build, Value* a, Value* b) {
  if (a == nullptr || b == nullptr) return b ? neg(build, b) : a;
  return sub(build, a, b);
}

// An imaginary part that only one operand has, in the sizes of the result.
Value* expanded(NodeBuilder& build, Value* value, const Node& node) {
  const auto& sizes = node.output()->sizes();
  if (value == nullptr || value->sizes() == sizes) return value;
  return build("aten::expand", {{"self", value}, {"size", sizes}});
}

std::vector<Parts> view_as_complex(Rewriter&, const Node& node, NodeBuilder& build) {
  Value* pairs = node.tensor("self");
  return {{Rewriter::part_of(pairs, 0, build), Rewriter::part_of(pairs, 1, build)}};
}

std::vector<Parts> view_as_real(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  // Of an op that stays complex it is how its parts are reached.
  if (!rewriter.has_parts(node.tensor("self"))) return {};
  return {{Rewriter::pairs_of(rewriter.parts(node, "self", build), build)}};
}

std::vector<Parts> from_parts(Rewriter&, const Node& node, NodeBuilder&) {
  return {{node.tensor("real"), node.tensor("imag")}};
}

std::vector<Parts> polar(Rewriter&, const Node& node, NodeBuilder& build) {
  Value* angle = node.tensor("angle");
  Value* real = mul(build, node.get("abs"), build.unary("aten::cos", angle));
  Value* imag = mul(build, node.get("abs"), build.unary("aten::sin", angle));
  return {{real, imag}};
}

std::vector<Parts> real(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  return {{rewriter.parts(node, "self", build).real}};
}

std::vector<Parts> imag(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  return {{Rewriter::imag_or_zeros(rewriter.parts(node, "self", build), build)}};
}

std::vector<Parts> conjugate(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Parts x = rewriter.parts(node, "self", build);
  return {{x.real, x.imag ? neg(build, x.imag) : nullptr}};
}

std::vector<Parts> negative(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Parts x = rewriter.parts(node, "self", build);
  Value* real = neg(build, x.real);
  return {{real, x.imag ? neg(build, x.imag) : nullptr}};
}

Value* squared_abs(NodeBuilder& build, const Parts& x) {
  Value* real = mul(build, x.real, x.real);
  return x.imag ? add(build, real, mul(build, x.imag, x.imag)) : real;
}

std::vector<Parts> absolute(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Parts x = rewriter.parts(node, "self", build);
  return {{x.imag ? build.unary("aten::sqrt", squared_abs(build, x)) : build.unary("aten::abs", x.real)}};
}

std::vector<Parts> angle(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Parts x = rewriter.parts(node, "self", build);
  return {{build.binary("aten::atan2", Rewriter::imag_or_zeros(x, build), x.real)}};
}

std::vector<Parts> exponential(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Parts x = rewriter.parts(node, "self", build);
  Value* size = build.unary("aten::exp", x.real);
  if (x.imag == nullptr) return {{size}};
  Value* real = mul(build, size, build.unary("aten::cos", x.imag));
  return {{real, mul(build, size, build.unary("aten::sin", x.imag))}};
}

// An operand that may be a number.
struct Operand {
  Argument real;
  Value* imag = nullptr;
};

Operand operand(Rewriter& rewriter, const Node& node, std::string_view argument, NodeBuilder& build) {
  const Argument& given = node.get(argument);
  const auto* held = std::get_if<Value*>(&given);
  if (held == nullptr || !(*held)->is_tensor()) return {given};
  const Parts parts = rewriter.parts(*held, build);
  return {parts.real, parts.imag};
}

std::vector<Parts> multiply(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Operand a = operand(rewriter, node, "self", build), b = operand(rewriter, node, "other", build);
  Value* real = mul(build, a.real, b.real);
  if (a.imag && b.imag) real = sub(build, real, mul(build, a.imag, b.imag));
  Value* left = a.imag ? mul(build, a.imag, b.real) : nullptr;
  Value* right = b.imag ? mul(build, a.real, b.imag) : nullptr;
  return {{real, sum(build, left, right)}};
}

// self + alpha * other, self - alpha * other
std::vector<Parts> add_or_subtract(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Operand a = operand(rewriter, node, "self", build), b = operand(rewriter, node, "other", build);
  const auto applied = [&](const Argument& x, const Argument& y) {
    return build(node.op(), {{"self", x}, {"other", y}, {"alpha", node.get("alpha")}});
  };
  Value* imag = a.imag;
  if (b.imag) imag = a.imag ? applied(a.imag, b.imag) : applied(build.unary("aten::zeros_like", b.imag), b.imag);
  Value* real = applied(a.real, b.real);
  return {{real, expanded(build, imag, node)}};
}

// other - alpha * self
std::vector<Parts> subtract_from(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Operand a = operand(rewriter, node, "self", build), b = operand(rewriter, node, "other", build);
  Value* self = std::get<Value*>(a.real);
  const bool is_scaled = !identical(node.get("alpha"), Expr(1));
  const auto scaled = [&](Value* x) { return is_scaled ? mul(build, x, node.get("alpha")) : x; };
  Value* real = build.binary("aten::add.Tensor", neg(build, scaled(self)), b.real);
  return {{real, expanded(build, difference(build, b.imag, a.imag ? scaled(a.imag) : nullptr), node)}};
}

std::vector<Parts> divide(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const auto div = [&](const Argument& x, const Argument& y) { return build.binary("aten::div.Tensor", x, y); };
  const Operand a = operand(rewriter, node, "self", build), b = operand(rewriter, node, "other", build);
  if (b.imag == nullptr) {
    Value* real = div(a.real, b.real);
    return {{real, a.imag ? div(a.imag, b.real) : nullptr}};
  }
  // a * conj(b) / |b|^2
  const Parts divisor{std::get<Value*>(b.real), b.imag};
  Value* size = squared_abs(build, divisor);
  Value* real = mul(build, a.real, b.real);
  if (a.imag) real = add(build, real, mul(build, a.imag, b.imag));
  Value* left = a.imag ? mul(build, a.imag, b.real) : nullptr;
  Value* imag = difference(build, left, mul(build, a.real, b.imag));
  real = div(real, size);
  return {{real, div(imag, size)}};
}

std::vector<Parts> reciprocal(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Parts x = rewriter.parts(node, "self", build);
  if (x.imag == nullptr) return {{build.unary("aten::reciprocal", x.real)}};
  Value* size = squared_abs(build, x);
  Value* real = build.binary("aten::div.Tensor", x.real, size);
  return {{real, build.binary("aten::div.Tensor", neg(build, x.imag), size)}};
}

std::vector<Parts> square(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Parts x = rewriter.parts(node, "self", build);
  Value* real = mul(build, x.real, x.real);
  if (x.imag == nullptr) return {{real}};
  real = sub(build, real, mul(build, x.imag, x.imag));
  Value* product = mul(build, x.real, x.imag);
  return {{real, add(build, product, product)}};
}

// Of powers, the square.
std::vector<Parts> power(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Argument& given = node.get("exponent");
  const auto* whole = std::get_if<Expr>(&given);
  const auto* number = std::get_if<double>(&given);
  if (!(whole && whole->is(2)) && !(number && *number == 2)) return {};
  return square(rewriter, node, build);
}

// Products of matrices: linear in both arguments.
std::vector<Parts> product(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const std::string first = node.schema().arguments[0].name, second = node.schema().arguments[1].name;
  if (node.schema().find("bias") && !node.is_none("bias")) return {};
  const Parts a = rewriter.parts(node, first, build), b = rewriter.parts(node, second, build);
  const auto times = [&](Value* x, Value* y) { return build(node.op(), {{first, x}, {second, y}}); };
  Value* real = times(a.real, b.real);
  if (a.imag && b.imag) real = sub(build, real, times(a.imag, b.imag));
  Value* left = a.imag ? times(a.imag, b.real) : nullptr;
  Value* right = b.imag ? times(a.real, b.imag) : nullptr;
  return {{real, sum(build, left, right)}};
}

// A Fourier transform of what is real.
std::vector<Parts> transform(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  const Value* self = node.tensor("self");
  if (!rewriter.has_parts(self) || !node.boolean("forward")) return {};
  const Parts x = rewriter.parts(node, "self", build);
  if (x.imag != nullptr) return {};
  Value* whole = build(
      "aten::_fft_r2c",
      {{"self", x.real}, {"dim", node.get("dim")}, {"normalization", node.get("normalization")}, {"onesided", false}});
  return {rewriter.parts(whole, build)};
}

// The node's arguments with the real or imaginary parts of those named; a missing imaginary part is zeros.
std::vector<NamedArgument> arguments_of(Rewriter& rewriter, const Node& node, NodeBuilder& build, bool is_imag,
                                        std::initializer_list<std::string_view> data) {
  std::vector<NamedArgument> arguments(node.arguments().begin(), node.arguments().end());
  for (auto& [name, value] : arguments) {
    if (auto* dtype = std::get_if<ScalarType>(&value); dtype && c10::isComplexType(*dtype))
      *dtype = c10::toRealValueType(*dtype);
    if (std::ranges::find(data, name) == data.end()) continue;
    const auto take = [&](Value*& tensor) {
      const Parts parts = rewriter.parts(tensor, build);
      tensor = is_imag ? Rewriter::imag_or_zeros(parts, build) : parts.real;
    };
    if (auto* tensor = std::get_if<Value*>(&value)) take(*tensor);
    if (auto* tensors = std::get_if<Values>(&value)) std::ranges::for_each(*tensors, take);
  }
  return arguments;
}

// Ops that do the same to both parts: views, copies, joins, selections, sums.
std::vector<Parts> each(Rewriter& rewriter, const Node& node, NodeBuilder& build,
                        std::initializer_list<std::string_view> data) {
  bool has_imag = false;
  for (const auto& argument : node.arguments()) {
    if (std::ranges::find(data, argument.name) == data.end()) continue;
    for_each_value(argument.value,
                   [&](Value* value) { has_imag = has_imag || rewriter.parts(value, build).imag != nullptr; });
  }
  const auto real = build.outputs(node.op(), arguments_of(rewriter, node, build, false, data));
  std::vector<Parts> results;
  for (Value* value : real) results.push_back({value});
  if (!has_imag) return results;
  auto arguments = arguments_of(rewriter, node, build, true, data);
  // A number that is written stands for a real one.
  for (auto& argument : arguments)
    if (argument.name == "value" && !std::holds_alternative<Value*>(argument.value)) argument.value = 0.0;
  const auto imag = build.outputs(node.op(), std::move(arguments));
  for (size_t i = 0; i < imag.size(); ++i) results[i].imag = imag[i];
  return results;
}

std::vector<Parts> each_self(Rewriter& r, const Node& n, NodeBuilder& b) { return each(r, n, b, {"self"}); }
std::vector<Parts> each_tensor(Rewriter& r, const Node& n, NodeBuilder& b) { return each(r, n, b, {"tensors"}); }
std::vector<Parts> each_operand(Rewriter& r, const Node& n, NodeBuilder& b) { return each(r, n, b, {"self", "other"}); }
std::vector<Parts> each_written(Rewriter& r, const Node& n, NodeBuilder& b) {
  return each(r, n, b, {"self", "src", "values", "source"});
}

// Factories and conversions: of a real tensor to complex numbers, the real part is all.
std::vector<Parts> convert(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  // Complex numbers converted to real ones lose their imaginary part.
  if (!is_complex(node.output())) {
    return {{build(node.op(), arguments_of(rewriter, node, build, false, {"self"}))}};
  }
  return each(rewriter, node, build, {"self"});
}

std::vector<Parts> make(Rewriter& rewriter, const Node& node, NodeBuilder& build) {
  auto arguments = arguments_of(rewriter, node, build, false, {"self"});
  return {{build(node.op(), std::move(arguments))}};
}

const std::unordered_map<std::string_view, Formula>& formulas() {
  static const auto table = [] {
    std::unordered_map<std::string_view, Formula> made = {
        {"aten::_conj", conjugate},
        {"aten::_conj_copy", conjugate},
        {"aten::_conj_physical", conjugate},
        {"aten::_fft_c2c", transform},
        {"aten::abs", absolute},
        {"aten::add", add_or_subtract},
        {"aten::angle", angle},
        {"aten::cat", each_tensor},
        {"aten::complex", from_parts},
        {"aten::conj", conjugate},
        {"aten::conj_physical", conjugate},
        {"aten::div", divide},
        {"aten::exp", exponential},
        {"aten::imag", imag},
        {"aten::mul", multiply},
        {"aten::neg", negative},
        {"aten::polar", polar},
        {"aten::pow.Tensor_Scalar", power},
        {"aten::real", real},
        {"aten::reciprocal", reciprocal},
        {"aten::rsub", subtract_from},
        {"aten::square", square},
        {"aten::stack", each_tensor},
        {"aten::sub", add_or_subtract},
        {"aten::view_as_complex", view_as_complex},
        {"aten::view_as_complex_copy", view_as_complex},
        {"aten::view_as_real", view_as_real},
        {"aten::view_as_real_copy", view_as_real},
        {"aten::where.self", each_operand},
    };
    for (const auto* op : {"aten::_to_copy", "aten::to"}) made[op] = convert;
    for (const auto* op : {"aten::mm", "aten::bmm", "aten::matmul", "aten::linear", "aten::mv", "aten::dot"})
      made[op] = product;
    for (const auto* op :
         {"aten::zeros", "aten::ones", "aten::full", "aten::empty", "aten::zeros_like", "aten::ones_like",
          "aten::full_like", "aten::empty_like", "aten::new_zeros", "aten::new_ones", "aten::new_full"})
      made[op] = make;
    for (const auto* op : {"aten::index_put", "aten::select_scatter", "aten::slice_scatter", "aten::scatter.src"})
      made[op] = each_written;
    for (const auto* op : {"aten::_reshape_copy",
                           "aten::_unsafe_view",
                           "aten::alias",
                           "aten::chunk",
                           "aten::clone",
                           "aten::constant_pad_nd",
                           "aten::contiguous",
                           "aten::cumsum",
                           "aten::detach",
                           "aten::diagonal",
                           "aten::expand",
                           "aten::fft_fftshift",
                           "aten::fft_ifftshift",
                           "aten::flatten",
                           "aten::flip",
                           "aten::gather",
                           "aten::index",
                           "aten::index_select",
                           "aten::lift_fresh",
                           "aten::lift_fresh_copy",
                           "aten::mT",
                           "aten::masked_fill.Scalar",
                           "aten::mean",
                           "aten::movedim",
                           "aten::narrow",
                           "aten::numpy_T",
                           "aten::pad",
                           "aten::permute",
                           "aten::repeat",
                           "aten::repeat_interleave",
                           "aten::reshape",
                           "aten::resolve_conj",
                           "aten::resolve_neg",
                           "aten::roll",
                           "aten::select",
                           "aten::slice",
                           "aten::split",
                           "aten::split_with_sizes",
                           "aten::squeeze",
                           "aten::sum",
                           "aten::t",
                           "aten::transpose",
                           "aten::tril",
                           "aten::triu",
                           "aten::unbind",
                           "aten::unflatten",
                           "aten::unfold",
                           "aten::unsqueeze",
                           "aten::view",
                           "aten::view_copy"})
      made[op] = each_self;
    return made;
  }();
  return table;
}

}  // namespace

bool complex_to_real(Program& program) { return Rewriter(program).run(); }

}  // namespace transporters

#include "transporters/dynamo/size_reader.h"

#include <limits>

#include "transporters/dynamo/schema.h"
#include "transporters/dynamo/sympy.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

// torch counts with an "infinity" that is one or two below the largest integer where a bound came from a comparison.
constexpr int64_t kAlmostInfinity = std::numeric_limits<int64_t>::max() - 2;

}  // namespace

Expr SizeReader::symbol(const std::string& file_name) const {
  const auto found = names_.find(file_name);
  return Expr::symbol(found == names_.end() ? file_name : found->second);
}

Expr SizeReader::read(const ConstJson& json) {
  const auto [tag, value] = tagged(json);
  if (tag == "as_int") return Expr(integer(value));
  if (tag == "as_float") return Expr::real(real(value));
  if (tag == "as_bool") return Expr::boolean(boolean(value));
  if (tag != "as_expr") json_fail(json, "expected a size, got '" + std::string(tag) + "'");
  const std::string& text = string(field(value, "expr_str"));
  auto found = parsed_.find(text);
  if (found == parsed_.end()) {
    try {
      found =
          parsed_.emplace(text, from_sympy(text, {[this](const std::string& name) { return symbol(name); }, {}})).first;
    } catch (const Error& error) {
      json_fail(field(value, "expr_str"), error.message());
    }
  }
  const Expr& expr = found->second;
  const ConstJson* hint = find_field(value, "hint");
  if (hint != nullptr && expr.kind() == symbolic::Kind::Symbol) {
    const auto [hint_tag, number] = tagged(*hint);
    if (hint_tag == "as_int") hints_.emplace(expr.name(), integer(number));
  }
  return expr;
}

std::vector<Expr> SizeReader::read_all(const ConstJson& json) {
  std::vector<Expr> sizes;
  for (const ConstJson& size : array(json)) {
    sizes.push_back(read(size));
    if (sizes.back().type() != symbolic::Type::Integer) json_fail(size, "expected an integer size");
    if (const auto value = sizes.back().as_integer(); value && *value < 0) json_fail(size, "a size is negative");
  }
  return sizes;
}

TensorType SizeReader::read_tensor(const ConstJson& meta) {
  const ConstJson& dtype_json = field(meta, "dtype");
  const auto dtype = dtype_from_schema(integer(dtype_json));
  if (!dtype) json_fail(dtype_json, "unknown element type " + dtype_json.dump());
  if (integer(field(meta, "layout")) != kStrided) json_fail(meta, "sparse tensors are not supported");
  const std::string& device = string(field(field(meta, "device"), "type"));
  if (device != "cpu" && device != "meta")
    json_fail(meta, "the tensor is on '" + device + "'; move the model to the CPU before exporting it");
  TensorType type;
  type.dtype = *dtype;
  type.sizes = read_all(field(meta, "sizes"));
  type.strides = read_all(field(meta, "strides"));
  if (type.sizes.size() != type.strides.size()) json_fail(meta, "sizes and strides differ in number");
  if (type.is_contiguous()) type.strides.clear();
  return type;
}

void SizeReader::read_values(const ConstJson& graph) {
  for (const char* key : {"sym_int_values", "sym_float_values", "sym_bool_values"}) {
    const ConstJson* values = find_field(graph, key);
    if (values == nullptr) continue;
    for (const auto& [name, value] : object(*values).items()) values_.insert_or_assign(name, read(value));
  }
}

const Expr* SizeReader::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::map<std::string, symbolic::Range> SizeReader::read_ranges(const ConstJson& range_constraints) const {
  std::map<std::string, symbolic::Range> ranges;
  for (const auto& [name, constraint] : object(range_constraints).items()) {
    // Derived sizes ("2*s0") have entries too; they follow from their symbols.
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) continue;
    symbolic::Range range{std::numeric_limits<int64_t>::min(), symbolic::Range::kInfinity};
    if (const ConstJson* min = find_field(constraint, "min_val")) range.min = integer(*min);
    if (const ConstJson* max = find_field(constraint, "max_val")) range.max = integer(*max);
    if (range.max >= kAlmostInfinity) range.max = symbolic::Range::kInfinity;
    if (range.min > range.max) json_fail(constraint, "the range of '" + name + "' is empty");
    ranges.emplace(symbol(name).name(), range);
  }
  return ranges;
}

}  // namespace transporters::dynamo

#include "transporters/graph/dtype_name.h"

#include <utility>

#include "transporters/error.h"

namespace transporters {
namespace {

using c10::ScalarType;

constexpr std::pair<ScalarType, std::string_view> kNames[] = {
    {ScalarType::Float, "float32"},
    {ScalarType::Double, "float64"},
    {ScalarType::Half, "float16"},
    {ScalarType::BFloat16, "bfloat16"},
    {ScalarType::Long, "int64"},
    {ScalarType::Int, "int32"},
    {ScalarType::Short, "int16"},
    {ScalarType::Char, "int8"},
    {ScalarType::Byte, "uint8"},
    {ScalarType::UInt16, "uint16"},
    {ScalarType::UInt32, "uint32"},
    {ScalarType::UInt64, "uint64"},
    {ScalarType::Bool, "bool"},
    {ScalarType::ComplexHalf, "complex32"},
    {ScalarType::ComplexFloat, "complex64"},
    {ScalarType::ComplexDouble, "complex128"},
    {ScalarType::Float8_e4m3fn, "float8_e4m3fn"},
    {ScalarType::Float8_e5m2, "float8_e5m2"},
    {ScalarType::Float8_e4m3fnuz, "float8_e4m3fnuz"},
    {ScalarType::Float8_e5m2fnuz, "float8_e5m2fnuz"},
};

}  // namespace

std::string_view torch_dtype_name(ScalarType dtype) {
  for (const auto& [known, name] : kNames)
    if (known == dtype) return name;
  throw Error("dtype " + std::string(c10::toString(dtype)) + " is not supported in an exported program");
}

std::optional<ScalarType> parse_torch_dtype(std::string_view name) {
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const auto& [dtype, known] : kNames)
    if (known == name) return dtype;
  return std::nullopt;
}

std::vector<std::string> torch_dtype_names() {
  std::vector<std::string> names;
  for (const auto& [dtype, name] : kNames) names.emplace_back(name);
  return names;
}

}  // namespace transporters

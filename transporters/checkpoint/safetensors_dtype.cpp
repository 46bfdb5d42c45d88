#include <array>
#include <utility>

#include "transporters/checkpoint/safetensors.h"

namespace transporters {
namespace {

constexpr std::array<std::pair<const char*, ScalarType>, 19> kTypes{{
    {"BOOL", ScalarType::Bool},
    {"U8", ScalarType::Byte},
    {"I8", ScalarType::Char},
    {"F8_E5M2", ScalarType::Float8_e5m2},
    {"F8_E4M3", ScalarType::Float8_e4m3fn},
    {"F8_E5M2FNUZ", ScalarType::Float8_e5m2fnuz},
    {"F8_E4M3FNUZ", ScalarType::Float8_e4m3fnuz},
    {"F8_E8M0", ScalarType::Float8_e8m0fnu},
    {"I16", ScalarType::Short},
    {"U16", ScalarType::UInt16},
    {"F16", ScalarType::Half},
    {"BF16", ScalarType::BFloat16},
    {"I32", ScalarType::Int},
    {"U32", ScalarType::UInt32},
    {"F32", ScalarType::Float},
    {"F64", ScalarType::Double},
    {"I64", ScalarType::Long},
    {"U64", ScalarType::UInt64},
    {"C64", ScalarType::ComplexFloat},
}};

}  // namespace

std::string safetensors_dtype(ScalarType dtype) {
  for (const auto& [name, type] : kTypes)
    if (type == dtype) return name;
  return "";
}

std::optional<ScalarType> dtype_from_safetensors(const std::string& name) {
  for (const auto& [known, type] : kTypes)
    if (name == known) return type;
  return std::nullopt;
}

}  // namespace transporters

#include "transporters/dynamo/schema.h"

#include <utility>

#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

constexpr std::pair<ScalarType, int> kDtypes[] = {
    {ScalarType::Byte, 1},
    {ScalarType::Char, 2},
    {ScalarType::Short, 3},
    {ScalarType::Int, 4},
    {ScalarType::Long, 5},
    {ScalarType::Half, 6},
    {ScalarType::Float, 7},
    {ScalarType::Double, 8},
    {ScalarType::ComplexHalf, 9},
    {ScalarType::ComplexFloat, 10},
    {ScalarType::ComplexDouble, 11},
    {ScalarType::Bool, 12},
    {ScalarType::BFloat16, 13},
    {ScalarType::UInt16, 28},
    {ScalarType::Float8_e4m3fn, 29},
    {ScalarType::Float8_e5m2, 30},
    {ScalarType::Float8_e4m3fnuz, 31},
    {ScalarType::Float8_e5m2fnuz, 32},
    {ScalarType::Float8_e8m0fnu, 33},
    {ScalarType::UInt32, 34},
    {ScalarType::UInt64, 35},
};

constexpr std::pair<const char*, int> kLayouts[] = {
    {"sparse_coo", 1}, {"sparse_csr", 2}, {"sparse_csc", 3},     {"sparse_bsr", 4},
    {"sparse_bsc", 5}, {"_mkldnn", 6},    {"strided", kStrided},
};

constexpr std::pair<const char*, int> kMemoryFormats[] = {
    {"contiguous_format", 1},
    {"channels_last", 2},
    {"channels_last_3d", 3},
    {"preserve_format", 4},
};

template <typename Table>
int number_of(const Table& table, const std::string& name, const char* what) {
  for (const auto& [known, number] : table)
    if (name == known) return number;
  throw Error({.stage = "dynamo"}, std::string("a .pt2 file knows no ") + what + " '" + name + "'");
}

template <typename Table>
std::optional<std::string> name_of(const Table& table, int64_t number) {
  for (const auto& [name, known] : table)
    if (known == number) return name;
  return std::nullopt;
}

}  // namespace

int schema_dtype(ScalarType dtype) {
  for (const auto& [known, number] : kDtypes)
    if (known == dtype) return number;
  throw Error({.stage = "dynamo"},
              std::string("a .pt2 file can't hold tensors of type ") + c10::toString(dtype) + "; convert them first");
}

std::optional<ScalarType> dtype_from_schema(int64_t number) {
  for (const auto& [dtype, known] : kDtypes)
    if (known == number) return dtype;
  return std::nullopt;
}

int schema_layout(const std::string& name) { return number_of(kLayouts, name, "layout"); }

std::optional<std::string> layout_from_schema(int64_t number) { return name_of(kLayouts, number); }

int schema_memory_format(const std::string& name) { return number_of(kMemoryFormats, name, "memory format"); }

std::optional<std::string> memory_format_from_schema(int64_t number) { return name_of(kMemoryFormats, number); }

}  // namespace transporters::dynamo

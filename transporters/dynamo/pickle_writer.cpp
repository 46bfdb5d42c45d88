#include "transporters/dynamo/pickle_writer.h"

#include <bit>
#include <limits>

#include "transporters/dynamo/zip_writer.h"
#include "transporters/error.h"

namespace transporters::dynamo {
namespace {

// The legacy storage class that stands for a type; null for types that came after those classes.
const char* storage_class(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Byte:
      return "ByteStorage";
    case ScalarType::Char:
      return "CharStorage";
    case ScalarType::Short:
      return "ShortStorage";
    case ScalarType::Int:
      return "IntStorage";
    case ScalarType::Long:
      return "LongStorage";
    case ScalarType::Half:
      return "HalfStorage";
    case ScalarType::Float:
      return "FloatStorage";
    case ScalarType::Double:
      return "DoubleStorage";
    case ScalarType::BFloat16:
      return "BFloat16Storage";
    case ScalarType::Bool:
      return "BoolStorage";
    case ScalarType::ComplexFloat:
      return "ComplexFloatStorage";
    case ScalarType::ComplexDouble:
      return "ComplexDoubleStorage";
    default:
      return nullptr;
  }
}

// The name in Python's module torch.
std::string dtype_name(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::UInt16:
      return "uint16";
    case ScalarType::UInt32:
      return "uint32";
    case ScalarType::UInt64:
      return "uint64";
    case ScalarType::ComplexHalf:
      return "complex32";
    case ScalarType::Float8_e4m3fn:
      return "float8_e4m3fn";
    case ScalarType::Float8_e5m2:
      return "float8_e5m2";
    case ScalarType::Float8_e4m3fnuz:
      return "float8_e4m3fnuz";
    case ScalarType::Float8_e5m2fnuz:
      return "float8_e5m2fnuz";
    case ScalarType::Float8_e8m0fnu:
      return "float8_e8m0fnu";
    default:
      throw Error({.stage = "dynamo"}, std::string("a tensor of type ") + c10::toString(dtype) +
                                           " can't be an example input of a .pt2 file");
  }
}

void put_little_endian(std::string& out, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
}

}  // namespace

void PickleWriter::integer(int64_t value) {
  if (value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max()) {
    bytes_ += 'J';
    put_little_endian(bytes_, static_cast<uint64_t>(value), 4);
  } else {
    bytes_ += "\x8a\x08";
    put_little_endian(bytes_, static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::real(double value) {
  bytes_ += 'G';
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int i = 7; i >= 0; --i) bytes_ += static_cast<char>(bits >> (8 * i));
}

void PickleWriter::string(std::string_view value) {
  bytes_ += 'X';
  put_little_endian(bytes_, value.size(), 4);
  bytes_ += value;
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  bytes_ += 'c';
  bytes_ += module;
  bytes_ += '\n';
  bytes_ += name;
  bytes_ += '\n';
}

void PickleWriter::tensor(const TensorData& data) {
  const char* storage = storage_class(data.dtype);
  const auto integers = [&](const std::vector<int64_t>& values) {
    begin();
    for (int64_t value : values) integer(value);
    end_tuple();
  };
  global("torch._utils", storage != nullptr ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  begin();
  begin();
  string("storage");
  global(storage != nullptr ? "torch" : "torch.storage", storage != nullptr ? storage : "UntypedStorage");
  string(std::to_string(storages_.size()));
  string("cpu");
  // An untyped storage counts bytes.
  integer(storage != nullptr ? data.numel() : static_cast<int64_t>(data.nbytes()));
  end_tuple();
  bytes_ += 'Q';
  integer(0);
  integers(data.sizes);
  integers(contiguous_strides(data.sizes));
  boolean(false);
  global("collections", "OrderedDict");
  begin();
  end_tuple();
  call();
  if (storage == nullptr) global("torch", dtype_name(data.dtype));
  end_tuple();
  call();
  storages_.push_back(data);
}

std::string PickleWriter::archive() {
  bytes_ += '.';
  std::string out;
  ZipWriter zip("archive", [&](const void* data, size_t size) { out.append(static_cast<const char*>(data), size); });
  zip.add("data.pkl", bytes_);
  zip.add("byteorder", "little");
  for (size_t i = 0; i < storages_.size(); ++i) zip.add("data/" + std::to_string(i), storages_[i]);
  zip.add("version", "3\n");
  zip.finish();
  return out;
}

}  // namespace transporters::dynamo

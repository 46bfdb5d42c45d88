#include "transporters/onnx/tensor_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace transporters::onnx {
namespace {

void own(TensorData& data, std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  data.data = owner->empty() ? nullptr : owner->data();
  data.owner = owner;
}

// Bytes of a mapping stay where they are, unless they lie across the element's alignment.
void point_at(TensorData& data, const Bytes& bytes, uint64_t offset, uint64_t size) {
  const char* start = bytes.data + offset;
  if (size == 0) return;
  if (!bytes.owner || reinterpret_cast<uintptr_t>(start) % c10::elementSize(data.dtype) != 0) {
    own(data, std::string(start, size));
    return;
  }
  data.data = start;
  data.owner = bytes.owner;
  data.file = bytes.file;
  data.file_offset = offset;
}

}  // namespace

Tensor TensorReader::read(pbf_message<proto::TensorProto> message, std::string& name) {
  using F = proto::TensorProto;
  Tensor tensor;
  std::optional<std::string_view> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> numbers;
  std::map<std::string, std::string> external;
  bool is_external = false;
  name.clear();
  while (message.next()) {
    switch (message.tag()) {
      case F::dims:
        integers(message, tensor.dims);
        break;
      case F::data_type:
        tensor.type = static_cast<DataType>(integer(message));
        break;
      case F::segment:
        throw fail("tensors stored in segments are not supported");
      case F::float_data:
        fixed(message, floats);
        break;
      case F::double_data:
        fixed(message, doubles);
        break;
      case F::int32_data:
      case F::int64_data:
      case F::uint64_data:
        integers(message, numbers);
        break;
      case F::string_data:
        tensor.strings.push_back(text(message));
        break;
      case F::name:
        name = text(message);
        break;
      case F::raw_data:
        raw = bytes(message);
        break;
      case F::external_data:
        entry(message, external);
        break;
      case F::data_location:
        is_external = integer(message) == static_cast<int64_t>(proto::TensorProto_DataLocation::EXTERNAL);
        break;
      default:
        message.skip();
    }
  }
  const std::string who = "tensor '" + name + "'";
  const int bits = bits_of(tensor.type);
  uint64_t count = 1;  // of the axes that are not empty: strides multiply those
  bool empty = false;
  for (const int64_t dim : tensor.dims) {
    empty = empty || dim == 0;
    if (dim < 0 || __builtin_mul_overflow(count, std::max<uint64_t>(dim, 1), &count) || count >> 56 != 0) {
      throw fail(who + " has impossible dimensions");
    }
  }
  if (empty) count = 0;
  if (tensor.type == DataType::STRING) {
    if (tensor.strings.size() != count) throw wrong_count(who, count, tensor.strings.size());
    return tensor;
  }
  if (bits == 0) {
    throw fail(who + " has element type " + std::to_string(static_cast<int32_t>(tensor.type)) + ", which is not known");
  }
  const uint64_t size = (count * static_cast<uint64_t>(bits) + 7) / 8;
  const auto scalar = to_scalar_type(tensor.type);
  tensor.data.dtype = scalar.value_or(ScalarType::Byte);
  tensor.data.sizes = scalar ? tensor.dims : std::vector<int64_t>{static_cast<int64_t>(size)};
  tensor.data.strides = contiguous_strides(tensor.data.sizes);

  if (is_external) {
    point_at_file(tensor.data, who, external, size);
  } else if (raw) {
    if (raw->size() != size) throw wrong_size(who, size, raw->size());
    point_at(tensor.data, bytes_, static_cast<uint64_t>(raw->data() - bytes_.data), size);
  } else {
    copy_numbers(tensor, who, floats, doubles, numbers, count, size);
  }
  return tensor;
}

Error TensorReader::wrong_count(const std::string& who, uint64_t expected, uint64_t found) const {
  return fail(who + " holds " + std::to_string(found) + " elements, its dimensions say " + std::to_string(expected));
}
Error TensorReader::wrong_size(const std::string& who, uint64_t expected, uint64_t found) const {
  return fail(who + " holds " + std::to_string(found) + " bytes, its type and dimensions say " +
              std::to_string(expected));
}

void TensorReader::point_at_file(TensorData& data, const std::string& who,
                                 const std::map<std::string, std::string>& external, uint64_t size) {
  const auto location = external.find("location");
  if (location == external.end() || location->second.empty()) throw fail(who + " says not in which file its data is");
  const std::filesystem::path relative = location->second;
  // A model must not make its reader open files elsewhere.
  bool leaves = relative.is_absolute();
  for (const auto& part : relative) leaves = leaves || part == "..";
  if (leaves) throw fail(who + " has its data outside the model's folder: '" + location->second + "'");
  if (folder_.empty()) throw fail(who + " has its data in '" + location->second + "', but no folder is known");
  const auto number = [&](const char* key, uint64_t otherwise) {
    const auto entry = external.find(key);
    if (entry == external.end()) return otherwise;
    char* end = nullptr;
    errno = 0;
    const uint64_t value = std::strtoull(entry->second.c_str(), &end, 10);
    const bool is_digit = !entry->second.empty() && entry->second[0] >= '0' && entry->second[0] <= '9';
    if (!is_digit || *end != '\0' || errno != 0) throw fail(who + " has a bad " + key + ": '" + entry->second + "'");
    return value;
  };
  const auto mapped = files_.find(location->second);
  const Bytes& file = mapped != files_.end() ? mapped->second : files_[location->second] = map_file(folder_ / relative);
  const uint64_t offset = number("offset", 0);
  if (offset > file.size || size > file.size - offset) {
    throw Error({.stage = "onnx", .file = file.file}, who + " needs bytes " + std::to_string(offset) + " to " +
                                                          std::to_string(offset + size) + ", the file has " +
                                                          std::to_string(file.size));
  }
  const uint64_t length = number("length", size);
  if (length != size) throw wrong_size(who, size, length);
  point_at(data, file, offset, size);
}

void TensorReader::copy_numbers(Tensor& tensor, const std::string& who, const std::vector<float>& floats,
                                const std::vector<double>& doubles, const std::vector<int64_t>& numbers, uint64_t count,
                                uint64_t size) const {
  const auto whole = [&](const auto& list, uint64_t per_element) {
    if (list.size() != count * per_element) throw wrong_count(who, count, list.size() / per_element);
    own(tensor.data, std::string(reinterpret_cast<const char*>(list.data()), size));
  };
  switch (tensor.type) {
    case DataType::FLOAT:
      return whole(floats, 1);
    case DataType::COMPLEX64:
      return whole(floats, 2);
    case DataType::DOUBLE:
      return whole(doubles, 1);
    case DataType::COMPLEX128:
      return whole(doubles, 2);
    default:
      break;
  }
  // The low bytes of each number: one element, or one byte of packed elements.
  const size_t element = c10::elementSize(tensor.data.dtype);
  if (numbers.size() * element != size) throw wrong_count(who, size / element, numbers.size());
  std::string bytes(size, '\0');
  for (size_t i = 0; i < numbers.size(); ++i) std::memcpy(bytes.data() + i * element, &numbers[i], element);
  own(tensor.data, std::move(bytes));
}

}  // namespace transporters::onnx

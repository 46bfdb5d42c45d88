#include "transporters/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "transporters/checkpoint/json_text.h"
#include "transporters/error.h"

namespace transporters {
namespace {

using Json = nlohmann::ordered_json;

// The reference implementation refuses longer headers, so that a broken length can't ask for all memory.
constexpr uint64_t kMaxHeader = 100'000'000;

[[noreturn]] void fail(const MappedFile& file, const std::string& message) {
  throw Error({.stage = "checkpoint", .file = file.path()}, message);
}

// What a file that is no safetensors file looks like, with what to do about it; "" when there is no idea.
std::string recognise(std::string_view text) {
  const auto starts = [&](std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; };
  if (starts("version https://git-lfs.github.com")) {
    std::string expected;
    if (const auto at = text.find("\nsize "); at != std::string_view::npos) {
      const auto digits = text.substr(at + 6, text.find('\n', at + 1) - at - 6);
      if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos)
        expected = " of the real file of " + std::string(digits) + " bytes";
    }
    return "this is a Git LFS pointer (" + std::to_string(text.size()) + " bytes of text) in place" + expected +
           "; run 'git lfs pull', or download the checkpoint again";
  }
  if (starts("PK\x03\x04") || starts("\x80\x02"))
    return "this is a PyTorch pickle file, not safetensors; convert it with safetensors.torch.save_file";
  if (starts("GGUF")) return "this is a GGUF file, not safetensors";
  if (starts("<!DOCTYPE") || starts("<!doctype") || starts("<html") || starts("<?xml"))
    return "this is a web page, not safetensors; the download failed, download the checkpoint again";
  return "";
}

// Parses the header; every object's keys must differ, since a later duplicate would silently win.
Json parse_header(const MappedFile& file, std::string_view header) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int, nlohmann::detail::parse_event_t event, Json& value) {
    using nlohmann::detail::parse_event_t;
    if (event == parse_event_t::object_start) keys.emplace_back();
    if (event == parse_event_t::object_end) keys.pop_back();
    if (event == parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      fail(file, "the header names '" + value.get<std::string>() + "' twice; the file is broken, write it again");
    return true;
  };
  try {
    return Json::parse(header, check);
  } catch (const nlohmann::json::exception& e) {
    fail(file, std::string("the header is not valid JSON (") + e.what() + "); download or write the file again");
  }
}

// A whole number of the header that fits in an unsigned 63-bit size.
uint64_t size_value(const MappedFile& file, const std::string& tensor, const char* what, const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return number;
  }
  fail(file, "tensor '" + tensor + "': expected " + what + " to be a whole number from 0 to 2^63-1, got " +
                 describe_json(value));
}

std::string shape_text(const std::vector<int64_t>& sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

struct Extent {
  uint64_t begin;
  uint64_t end;
  std::string name;
};

// One header entry: type, sizes and offsets, which must agree with each other.
TensorData parse_entry(const MappedFile& file, const std::string& name, const Json& entry, Extent& extent) {
  const auto fail_tensor = [&](const std::string& message) { fail(file, "tensor '" + name + "': " + message); };
  if (!entry.is_object())
    fail_tensor("expected an object with dtype, shape and data_offsets, got " + describe_json(entry));
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key)) fail_tensor(std::string("the header gives no ") + key);

  TensorData tensor;
  const auto& dtype = entry["dtype"];
  const auto type = dtype.is_string() ? dtype_from_safetensors(dtype.get<std::string>()) : std::nullopt;
  if (!type)
    fail_tensor("unknown dtype " + describe_json(dtype) +
                "; known are BOOL, I8 to I64, U8 to U64, F8_*, F16, BF16, F32, F64, C64");
  tensor.dtype = *type;

  if (!entry["shape"].is_array())
    fail_tensor("expected shape to be a list of sizes, got " + describe_json(entry["shape"]));
  uint64_t nbytes = c10::elementSize(tensor.dtype);
  bool overflows = false;
  for (const auto& size : entry["shape"]) {
    const uint64_t value = size_value(file, name, "a size", size);
    tensor.sizes.push_back(static_cast<int64_t>(value));
    // An axis of size 0 does not excuse the others: strides multiply them all the same.
    if (value != 0) overflows |= __builtin_mul_overflow(nbytes, value, &nbytes);
  }
  if (overflows || nbytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    fail_tensor("shape " + shape_text(tensor.sizes) + " needs more bytes than can be counted");
  tensor.strides = contiguous_strides(tensor.sizes);
  nbytes = tensor.nbytes();

  const auto& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2)
    fail_tensor("expected data_offsets to be [begin, end], got " + describe_json(offsets));
  extent = {size_value(file, name, "an offset", offsets[0]), size_value(file, name, "an offset", offsets[1]), name};
  if (extent.end < extent.begin) fail_tensor("data_offsets " + describe_json(offsets) + " end before they begin");
  if (extent.end - extent.begin != nbytes)
    fail_tensor("expected " + std::to_string(nbytes) + " bytes for shape " + shape_text(tensor.sizes) + " of " +
                dtype.get<std::string>() + ", but data_offsets " + describe_json(offsets) + " hold " +
                std::to_string(extent.end - extent.begin));
  return tensor;
}

// Tensors must fill the rest of the file without holes or overlaps, as the format demands.
void check_layout(const MappedFile& file, std::vector<Extent> extents, uint64_t data_begin) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t position = 0;
  const Extent* previous = nullptr;
  for (const auto& extent : extents) {
    if (extent.begin < position)
      fail(file, "tensor '" + extent.name + "' overlaps '" + previous->name + "' (offset " +
                     std::to_string(extent.begin) + " lies before " + std::to_string(position) +
                     "); the file is broken, download or write it again");
    if (extent.begin > position)
      fail(file, "bytes " + std::to_string(position) + " to " + std::to_string(extent.begin) +
                     " belong to no tensor (before '" + extent.name +
                     "'); the file is broken, download or write it again");
    position = extent.end;
    previous = &extent;
  }
  const uint64_t available = file.size() - data_begin;
  const std::string sizes =
      "expected a file of " + std::to_string(data_begin + position) + " bytes, found " + std::to_string(file.size());
  if (position > available)
    fail(file, "truncated by " + std::to_string(position - available) + " bytes: " + sizes +
                   "; the download or copy was cut short, fetch the file again");
  if (position < available)
    fail(file, std::to_string(available - position) + " bytes too many: " + sizes +
                   "; the file is broken, download or write it again");
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result;
  result.mapping_ = MappedFile::open(path);
  const MappedFile& file = *result.mapping_;
  const auto text = file.text();
  if (text.empty()) fail(file, "the file is empty (0 bytes); the download or copy failed, fetch the file again");
  if (const auto other = recognise(text.substr(0, 1024)); !other.empty()) fail(file, other);
  if (text.size() < 8)
    fail(file, "expected at least 8 bytes, found " + std::to_string(text.size()) +
                   "; this is no safetensors file or a truncated one, fetch it again");

  uint64_t header_size = 0;
  for (size_t i = 8; i-- > 0;) header_size = header_size << 8 | static_cast<unsigned char>(text[i]);
  if (header_size > kMaxHeader)
    fail(file, "the header claims " + std::to_string(header_size) + " bytes, the format allows " +
                   std::to_string(kMaxHeader) + "; this is no safetensors file, or a broken one");
  if (header_size > text.size() - 8)
    fail(file, "truncated inside the header: it needs " + std::to_string(header_size + 8) + " bytes, found " +
                   std::to_string(text.size()) + "; the download or copy was cut short, fetch the file again");

  const auto header = parse_header(file, text.substr(8, header_size));
  if (!header.is_object())
    fail(file, "expected the header to be a JSON object, got " + std::string(header.type_name()));
  const uint64_t data_begin = 8 + header_size;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object())
        fail(file, "expected __metadata__ to be an object of strings, got " + describe_json(entry));
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string())
          fail(file, "expected __metadata__ '" + key + "' to be a string, got " + describe_json(value));
        result.metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    Extent extent;
    auto tensor = parse_entry(file, name, entry, extent);
    tensor.file = path;
    tensor.file_offset = data_begin + extent.begin;
    extents.push_back(extent);
    result.names_.push_back(name);
    result.tensors_.emplace(name, std::move(tensor));
  }
  check_layout(file, std::move(extents), data_begin);
  return result;
}

TensorData SafetensorsFile::get(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(*mapping_, "no tensor '" + name + "'" + did_you_mean(name, names_));
  TensorData tensor = found->second;
  const uint64_t nbytes = tensor.nbytes();
  if (nbytes == 0) return tensor;
  const std::byte* bytes = mapping_->data() + tensor.file_offset;
  if (reinterpret_cast<uintptr_t>(bytes) % c10::elementSize(tensor.dtype) == 0) {
    tensor.data = bytes;
    tensor.owner = mapping_;
  } else {
    // Kernels may use loads that need alignment.
    const std::shared_ptr<std::byte[]> copy(new std::byte[nbytes]);
    std::memcpy(copy.get(), bytes, nbytes);
    tensor.data = copy.get();
    tensor.owner = copy;
  }
  return tensor;
}

}  // namespace transporters

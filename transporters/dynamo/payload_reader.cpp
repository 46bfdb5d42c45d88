#include "transporters/dynamo/payload_reader.h"

#include <cstring>
#include <optional>

#include "transporters/dynamo/json_access.h"
#include "transporters/dynamo/pickle_reader.h"
#include "transporters/dynamo/schema.h"

namespace transporters::dynamo {
namespace {

std::vector<int64_t> numbers(const ConstJson& json) {
  std::vector<int64_t> values;
  for (const ConstJson& element : array(json)) {
    const auto [tag, value] = tagged(element);
    if (tag != "as_int") json_fail(element, "expected a number, weights have no symbolic sizes");
    values.push_back(integer(value));
  }
  return values;
}

TensorData read_tensor(const ZipReader& zip, const std::string& record, const ConstJson& meta) {
  const auto dtype = dtype_from_schema(integer(field(meta, "dtype")));
  if (!dtype) json_fail(field(meta, "dtype"), "unknown element type " + field(meta, "dtype").dump());
  TensorData data;
  data.dtype = *dtype;
  data.sizes = numbers(field(meta, "sizes"));
  data.strides = numbers(field(meta, "strides"));
  const auto [tag, offset_json] = tagged(field(meta, "storage_offset"));
  const int64_t offset = tag == "as_int" ? integer(offset_json) : -1;
  if (integer(field(meta, "layout")) != kStrided) json_fail(meta, "sparse tensors are not supported");
  if (data.sizes.size() != data.strides.size()) json_fail(meta, "sizes and strides differ in number");

  const std::string_view bytes = zip.get(record);
  if (const auto problem = place_in_storage(data, bytes, zip.owner(), offset)) json_fail(meta, record + " " + *problem);
  if (data.owner == zip.owner()) {
    data.file = zip.path();
    data.file_offset = zip.offset_of(bytes) + static_cast<uint64_t>(offset) * c10::elementSize(*dtype);
  }
  return data;
}

}  // namespace

std::map<std::string, TensorData> read_payloads(const ZipReader& zip, const std::string& model,
                                                const std::string& folder, const std::string& suffix) {
  std::map<std::string, TensorData> tensors;
  const std::string legacy = folder + model + ".pt";
  if (zip.contains(legacy)) {
    const PickleValue value = read_pickle_archive(zip.get(legacy), zip.owner(), zip.path() + ":" + legacy);
    for (const auto& [key, element] : value.items(zip.path() + ":" + legacy)) tensors.emplace(key, element.tensor(key));
    return tensors;
  }
  const std::string config = folder + model + suffix;
  with_json(zip.get_checked(config), zip.path(), config, [&](const ConstJson& json) {
    for (const auto& [target, meta] : object(field(json, "config")).items()) {
      const std::string record = folder + string(field(meta, "path_name"));
      if (boolean(field(meta, "use_pickle"))) {
        const PickleValue value = read_pickle_archive(zip.get(record), zip.owner(), zip.path() + ":" + record);
        tensors.emplace(target, value.tensor(target));
      } else if (string(field(meta, "path_name")).starts_with(record::kConstantPrefix) ||
                 string(field(meta, "path_name")).starts_with(record::kWeightPrefix)) {
        tensors.emplace(target, read_tensor(zip, record, field(meta, "tensor_meta")));
      } else {
        json_fail(meta, "'" + target + "' is a custom object (" + record + "), which needs Python");
      }
    }
  });
  return tensors;
}

}  // namespace transporters::dynamo

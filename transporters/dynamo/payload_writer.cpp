#include "transporters/dynamo/payload_writer.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "transporters/dynamo/model_json.h"

namespace transporters::dynamo {
namespace {

using Json = nlohmann::ordered_json;

// A record: memory from `begin` to `end`, or the elements of one tensor where its memory has gaps.
struct Payload {
  std::uintptr_t begin;
  std::uintptr_t end;
  ScalarType dtype;
  std::vector<size_t> tensors;
};

std::uintptr_t begin_of(const TensorData& data) { return reinterpret_cast<std::uintptr_t>(data.data); }

std::uintptr_t end_of(const TensorData& data) {
  if (data.numel() == 0) return begin_of(data);
  int64_t last = 0;
  for (size_t i = 0; i < data.sizes.size(); ++i) last += (data.sizes[i] - 1) * data.strides[i];
  return begin_of(data) + static_cast<uint64_t>(last + 1) * c10::elementSize(data.dtype);
}

// Tensors of one type whose memory overlaps go into one record.
std::vector<Payload> group(const std::vector<PayloadTensor>& tensors) {
  std::vector<size_t> by_address(tensors.size());
  std::iota(by_address.begin(), by_address.end(), size_t{0});
  std::stable_sort(by_address.begin(), by_address.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t i) { return std::pair(tensors[i].data.dtype, begin_of(tensors[i].data)); };
    return key(a) < key(b);
  });
  std::vector<Payload> payloads;
  for (const size_t i : by_address) {
    const TensorData& data = tensors[i].data;
    const auto begin = begin_of(data), end = end_of(data);
    const bool empty = begin == end;
    if (!payloads.empty() && !empty) {
      Payload& last = payloads.back();
      const bool aligned = (begin - last.begin) % c10::elementSize(data.dtype) == 0;
      if (last.dtype == data.dtype && last.begin != last.end && begin < last.end && aligned) {
        last.end = std::max(last.end, end);
        last.tensors.push_back(i);
        continue;
      }
    }
    payloads.push_back({begin, end, data.dtype, {i}});
  }
  // In the order of the first tensor of each.
  for (Payload& payload : payloads) std::sort(payload.tensors.begin(), payload.tensors.end());
  std::sort(payloads.begin(), payloads.end(),
            [](const Payload& a, const Payload& b) { return a.tensors.front() < b.tensors.front(); });
  return payloads;
}

}  // namespace

std::vector<std::string> write_payloads(ZipWriter& zip, const std::vector<std::vector<PayloadTensor>>& models,
                                        const std::string& folder, const std::string& prefix) {
  std::vector<PayloadTensor> tensors;
  for (const auto& model : models) tensors.insert(tensors.end(), model.begin(), model.end());
  std::vector<Json> metas(tensors.size());
  const auto payloads = group(tensors);
  for (size_t n = 0; n < payloads.size(); ++n) {
    const Payload& payload = payloads[n];
    const std::string name = prefix + std::to_string(n);
    const TensorData& first = tensors[payload.tensors.front()].data;
    const uint64_t span = payload.end - payload.begin;
    const bool is_one_view = std::all_of(payload.tensors.begin(), payload.tensors.end(), [&](size_t i) {
      const TensorData& data = tensors[i].data;
      return data.data == first.data && data.sizes == first.sizes && data.strides == first.strides;
    });
    const bool gather = is_one_view && span > first.nbytes();
    if (gather) {
      zip.add(folder + name, first);
    } else {
      zip.add(folder + name, reinterpret_cast<const void*>(payload.begin), span);
    }
    for (const size_t i : payload.tensors) {
      TensorData data = tensors[i].data;
      const uint64_t offset = gather ? 0 : (begin_of(data) - payload.begin) / c10::elementSize(data.dtype);
      if (gather) data.strides = contiguous_strides(data.sizes);
      const bool requires_grad = tensors[i].is_parameter && c10::isFloatingType(data.dtype);
      metas[i] = {{"path_name", name},
                  {"is_param", tensors[i].is_parameter},
                  {"use_pickle", false},
                  {"tensor_meta", tensor_meta(data, static_cast<int64_t>(offset), requires_grad)}};
    }
  }
  std::vector<std::string> configs;
  size_t next = 0;
  for (const auto& model : models) {
    Json config = Json::object();
    for (const PayloadTensor& tensor : model) config[tensor.target] = std::move(metas[next++]);
    configs.push_back(Json{{"config", std::move(config)}}.dump(-1, ' ', /*ensure_ascii=*/true));
  }
  return configs;
}

}  // namespace transporters::dynamo

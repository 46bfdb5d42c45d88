// TensorProtos: bytes that lie raw in the model, in a data file beside it, or as repeated numbers.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "transporters/onnx/bytes.h"
#include "transporters/onnx/model.h"
#include "transporters/onnx/proto_fields.h"

namespace transporters::onnx {

class TensorReader : private ProtoFields {
 public:
  // `model` holds the messages; data files are looked for in `folder`, and refused when it is empty.
  TensorReader(Bytes model, std::filesystem::path folder)
      : ProtoFields(model.file), bytes_(std::move(model)), folder_(std::move(folder)) {}

  // Sets `name` to that of the tensor. Bytes of mappings stay where they are. Throws Error for what does not hold
  // together.
  Tensor read(pbf_message<proto::TensorProto> message, std::string& name);

 private:
  Error wrong_count(const std::string& who, uint64_t expected, uint64_t found) const;
  Error wrong_size(const std::string& who, uint64_t expected, uint64_t found) const;
  void point_at_file(TensorData& data, const std::string& who, const std::map<std::string, std::string>& external,
                     uint64_t size);
  void copy_numbers(Tensor& tensor, const std::string& who, const std::vector<float>& floats,
                    const std::vector<double>& doubles, const std::vector<int64_t>& numbers, uint64_t count,
                    uint64_t size) const;

  Bytes bytes_;
  std::filesystem::path folder_;
  std::map<std::string, Bytes> files_;  // by location
};

}  // namespace transporters::onnx

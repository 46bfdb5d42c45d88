// One exported graph of a generation loop, ready to run: a .pt2 in the interpreter, an .onnx in ONNX Runtime.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace transporters {

struct StageInput {
  std::string name;  // leaf path: "input_ids", "cache.layers.0.keys"
  at::ScalarType dtype = at::kLong;
  std::vector<std::optional<int64_t>> sizes;  // nullopt for what may vary
};

class Stage {
 public:
  virtual ~Stage() = default;
  // Those that are tensors and must be given.
  const std::vector<StageInput>& inputs() const { return inputs_; }
  // Outputs by leaf path. An input that the graph only writes entries of (a cache of fixed size) is written in place:
  // the output of its name is the tensor that was given. Throws Error when inputs do not fit.
  virtual std::map<std::string, at::Tensor> run(const std::map<std::string, at::Tensor>& inputs) = 0;

 protected:
  std::vector<StageInput> inputs_;
};

// Loads one program of a .pt2; `model` names it in an archive of several, "" is the only one.
std::unique_ptr<Stage> open_pt2_stage(const std::filesystem::path& file, const std::string& model = "");
// `library` names ONNX Runtime's; "" looks where it usually is. `threads` of one operator; 0 lets ONNX Runtime choose.
std::unique_ptr<Stage> open_onnx_stage(const std::filesystem::path& file, const std::string& library = "",
                                       int threads = 0);

}  // namespace transporters

// Runs .onnx files through the ONNX Runtime shared library, which is opened when the first session is made: nothing
// else needs it.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace transporters {

struct OnnxRuntimeOptions {
  // The shared library. When empty: the environment variable TRANSPORTERS_ONNXRUNTIME, then the library of the
  // onnxruntime wheel that was there when this was built, then what the system's loader finds.
  std::string library;
  // False turns off graph optimisation, so that the nodes run as they stand in the file.
  bool optimize = true;
  // Threads of one operator; 0 lets ONNX Runtime choose.
  int threads = 0;
};

// A loaded model. Not to be used from two threads at a time.
class OnnxRuntimeSession {
 public:
  // Throws Error (stage "onnxruntime") when the library is missing, or refuses the model.
  explicit OnnxRuntimeSession(const std::filesystem::path& model, const OnnxRuntimeOptions& options = {});
  OnnxRuntimeSession(OnnxRuntimeSession&&) noexcept;
  OnnxRuntimeSession& operator=(OnnxRuntimeSession&&) noexcept;
  ~OnnxRuntimeSession();

  const std::vector<std::string>& input_names() const;
  const std::vector<std::string>& output_names() const;

  // One tensor for each output name. Throws Error for an unknown name, for sizes outside the ranges that an export
  // recorded in the model or that differ where it names them alike (ONNX Runtime itself checks neither), and for what
  // ONNX Runtime refuses. Inputs with a default in the model may be left out.
  // `targets` are tensors for outputs to be written to, by output name; one may be the memory of an input, where the
  // model reads that input for nothing but this output. They are what is returned for these names.
  std::vector<at::Tensor> run(const std::map<std::string, at::Tensor>& inputs,
                              const std::map<std::string, at::Tensor>& targets = {});

  // "1.32.0".
  std::string version() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace transporters

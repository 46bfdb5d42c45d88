// ONNX models to disk: protobuf streamed node by node, weights straight from where they lie.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "transporters/export/atomic_file.h"
#include "transporters/onnx/model.h"

namespace transporters::onnx {

struct SaveOptions {
  // Weights go to a file beside the model, `data_file` or "<model file>.data". False: into the model, unless it would
  // exceed `max_model_size`.
  bool external_data = true;
  // Tensors of fewer bytes stay in the model even so, where shape inference can see them.
  uint64_t external_threshold = 1024;
  // Largest model file. Protobuf readers refuse more than 2 GiB - 1.
  uint64_t max_model_size = 0x7fffffff;
  // Name of the data file; empty: "<model file>.data". Models saved together with the same name share the file, and
  // weights that several of them use are in it once.
  std::string data_file;
  // Models whose weights lie in another's data file get an empty one of their own name: transformers looks for it.
  bool always_own_data_file = false;
};

// A model and its file name in the folder ("decode.onnx").
struct NamedModel {
  std::string file;
  const Model* model;
};

// Adds the files of `models` to `files`; the caller commits. Where every byte goes is settled before the first one is
// written. Weights that are the same bytes are stored once; large ones start at multiples of 4096, others of 64, so
// that runtimes can map them. A data file that an earlier export left and this one does not need is removed. Throws
// Error (stage "onnx") when a model without its weights exceeds `max_model_size`, or a value lacks a type.
void save(const std::vector<NamedModel>& models, AtomicFiles& files, const SaveOptions& options = {});

// One model to `file`; its folder is made when missing.
void save(const Model& model, const std::filesystem::path& file, const SaveOptions& options = {});

// The model with its weights inside, as bytes.
std::string serialize(const Model& model);

}  // namespace transporters::onnx

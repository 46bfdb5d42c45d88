#include "transporters/onnx/writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <protozero/varint.hpp>
#include <tuple>

#include "transporters/error.h"
#include "transporters/graph/tensor_blocks.h"

namespace transporters::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data and external data are little-endian");

// ── Wire format ──────────────────────────────────────────────────────────────
// https://protobuf.dev/programming-guides/encoding. A message is described once, by a function template over its sink;
// Sizer gives the length that has to stand before it, Stream writes it.

constexpr uint32_t kVarint = 0, kLengthDelimited = 2, kFixed32 = 5;

template <typename Field>
uint64_t tag(Field field, uint32_t wire) {
  return static_cast<uint64_t>(field) << 3 | wire;
}

class Sizer {
 public:
  uint64_t size = 0;

  template <typename Field>
  void integer(Field field, int64_t value) {
    size += length(tag(field, kVarint)) + length(static_cast<uint64_t>(value));
  }
  template <typename Field>
  void real(Field field, float) {
    size += length(tag(field, kFixed32)) + 4;
  }
  template <typename Field>
  void bytes(Field field, std::string_view value) {
    delimited(field, value.size());
  }
  template <typename Field>
  void tensor_bytes(Field field, const TensorData& data) {
    delimited(field, data.nbytes());
  }
  template <typename Field, typename Encode>
  void message(Field field, const Encode& encode) {
    Sizer inner;
    encode(inner);
    delimited(field, inner.size);
  }

 private:
  static uint64_t length(uint64_t value) { return static_cast<uint64_t>(protozero::length_of_varint(value)); }
  template <typename Field>
  void delimited(Field field, uint64_t content) {
    size += length(tag(field, kLengthDelimited)) + length(content) + content;
  }
};

template <typename Output>
class Stream {
 public:
  explicit Stream(Output& output) : output_(output) {}

  template <typename Field>
  void integer(Field field, int64_t value) {
    varint(tag(field, kVarint));
    varint(static_cast<uint64_t>(value));
  }
  template <typename Field>
  void real(Field field, float value) {
    varint(tag(field, kFixed32));
    output_.write(&value, 4);
  }
  template <typename Field>
  void bytes(Field field, std::string_view value) {
    delimited(field, value.size());
    output_.write(value.data(), value.size());
  }
  template <typename Field>
  void tensor_bytes(Field field, const TensorData& data) {
    delimited(field, data.nbytes());
    output_.write(data);
  }
  template <typename Field, typename Encode>
  void message(Field field, const Encode& encode) {
    Sizer inner;
    encode(inner);
    delimited(field, inner.size);
    encode(*this);
  }

 private:
  void varint(uint64_t value) {
    char buffer[protozero::max_varint_length];
    output_.write(buffer, static_cast<size_t>(protozero::add_varint_to_buffer(buffer, value)));
  }
  template <typename Field>
  void delimited(Field field, uint64_t content) {
    varint(tag(field, kLengthDelimited));
    varint(content);
  }

  Output& output_;
};

struct StringOutput {
  std::string text;
  void write(const void* data, size_t size) { text.append(static_cast<const char*>(data), size); }
  void write(const TensorData& data) {
    for_each_block(data, size_t{1} << 16, [this](const void* block, size_t size) { write(block, size); });
  }
};

// ── Where weights go ─────────────────────────────────────────────────────────

struct Location {
  std::string file;
  uint64_t offset;
  uint64_t length;
};
using Locations = std::map<const Value*, Location>;

// The contents of one data file.
class DataLayout {
 public:
  explicit DataLayout(std::string file) : file_(std::move(file)) {}

  Location add(const TensorData& data) {
    const auto key = std::tuple(data.data, data.dtype, data.sizes, data.strides);
    const auto [entry, is_new] = offsets_.try_emplace(key, 0);
    if (is_new) {
      const uint64_t alignment = data.nbytes() >= kLargeTensor ? 4096 : 64;
      size_ = (size_ + alignment - 1) / alignment * alignment;
      entry->second = size_;
      pieces_.push_back({size_, data});
      size_ += data.nbytes();
    }
    return {file_, entry->second, data.nbytes()};
  }

  void write(AtomicFiles& files) const {
    OutputFile& output = files.create(file_);
    output.reserve(size_);
    for (const auto& [offset, data] : pieces_) {
      output.pad_to(offset);
      output.write(data);
    }
  }

  const std::string& file() const { return file_; }
  bool empty() const { return pieces_.empty(); }

 private:
  // From here on, padding to a page costs less than half a percent.
  static constexpr uint64_t kLargeTensor = 1 << 20;

  std::string file_;
  uint64_t size_ = 0;
  std::map<std::tuple<const void*, ScalarType, std::vector<int64_t>, std::vector<int64_t>>, uint64_t> offsets_;
  std::vector<std::pair<uint64_t, TensorData>> pieces_;
};

// ── Messages ─────────────────────────────────────────────────────────────────

template <typename Sink, typename Field>
void encode_entries(Sink& sink, Field field, const std::map<std::string, std::string>& entries) {
  for (const auto& [key, value] : entries) {
    sink.message(field, [&](auto& inner) {
      inner.bytes(proto::StringStringEntryProto::key, key);
      inner.bytes(proto::StringStringEntryProto::value, value);
    });
  }
}

template <typename Sink, typename Field>
void optional_bytes(Sink& sink, Field field, std::string_view value) {
  if (!value.empty()) sink.bytes(field, value);
}

// Constants, and the defaults of inputs that have one.
void for_each_initializer(const Graph& graph, const auto& f) {
  for (const auto& value : graph.initializers()) f(*value);
  for (const Value* input : graph.inputs()) {
    if (input->initializer) f(*input);
  }
}

template <typename Sink>
void encode_tensor(Sink& sink, const Tensor& tensor, std::string_view name, const Location* external) {
  using F = proto::TensorProto;
  for (const int64_t dim : tensor.dims) sink.integer(F::dims, dim);
  sink.integer(F::data_type, static_cast<int64_t>(tensor.type));
  for (const auto& text : tensor.strings) sink.bytes(F::string_data, text);
  optional_bytes(sink, F::name, name);
  if (external) {
    const auto entry = [&](std::string_view key, std::string_view value) {
      sink.message(F::external_data, [&](auto& inner) {
        inner.bytes(proto::StringStringEntryProto::key, key);
        inner.bytes(proto::StringStringEntryProto::value, value);
      });
    };
    entry("location", external->file);
    entry("offset", std::to_string(external->offset));
    entry("length", std::to_string(external->length));
    sink.integer(F::data_location, static_cast<int64_t>(proto::TensorProto_DataLocation::EXTERNAL));
  } else if (tensor.type != DataType::STRING) {
    sink.tensor_bytes(F::raw_data, tensor.data);
  }
}

template <typename Sink>
void encode_value(Sink& sink, const Value& value) {
  sink.bytes(proto::ValueInfoProto::name, value.name());
  if (!value.other_type.empty()) return sink.bytes(proto::ValueInfoProto::type, value.other_type);
  sink.message(proto::ValueInfoProto::type, [&](auto& type) {
    type.message(proto::TypeProto::tensor_type, [&](auto& tensor) {
      tensor.integer(proto::TypeProto_Tensor::elem_type, static_cast<int64_t>(value.type));
      if (!value.shape) return;
      tensor.message(proto::TypeProto_Tensor::shape, [&](auto& shape) {
        for (const Dim& dim : *value.shape) {
          shape.message(proto::TensorShapeProto::dim, [&](auto& inner) {
            if (dim.is_known()) {
              inner.integer(proto::TensorShapeProto_Dimension::dim_value, dim.value);
            } else {
              optional_bytes(inner, proto::TensorShapeProto_Dimension::dim_param, dim.param);
            }
          });
        }
      });
    });
  });
}

template <typename Sink>
void encode_graph(Sink& sink, const Graph& graph, const Locations& locations);

template <typename Sink>
void encode_attribute(Sink& sink, const Attribute& attribute, const Locations& locations) {
  using F = proto::AttributeProto;
  using T = proto::AttributeProto_AttributeType;
  sink.bytes(F::name, attribute.name);
  const auto type = [&](T value) { sink.integer(F::type, static_cast<int64_t>(value)); };
  const auto graph = [&](F field, const Graph& held) {
    sink.message(field, [&](auto& inner) { encode_graph(inner, held, locations); });
  };
  const auto tensor = [&](F field, const Tensor& held) {
    sink.message(field, [&](auto& inner) { encode_tensor(inner, held, "", nullptr); });
  };
  const AttributeValue& value = attribute.value;
  if (const auto* i = std::get_if<int64_t>(&value)) {
    sink.integer(F::i, *i);
    type(T::INT);
  } else if (const auto* f = std::get_if<float>(&value)) {
    sink.real(F::f, *f);
    type(T::FLOAT);
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    sink.bytes(F::s, *s);
    type(T::STRING);
  } else if (const auto* t = std::get_if<Tensor>(&value)) {
    tensor(F::t, *t);
    type(T::TENSOR);
  } else if (const auto* g = std::get_if<std::shared_ptr<Graph>>(&value)) {
    graph(F::g, **g);
    type(T::GRAPH);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t element : *ints) sink.integer(F::ints, element);
    type(T::INTS);
  } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
    for (const float element : *floats) sink.real(F::floats, element);
    type(T::FLOATS);
  } else if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
    for (const auto& element : *strings) sink.bytes(F::strings, element);
    type(T::STRINGS);
  } else if (const auto* tensors = std::get_if<std::vector<Tensor>>(&value)) {
    for (const auto& element : *tensors) tensor(F::tensors, element);
    type(T::TENSORS);
  } else if (const auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value)) {
    for (const auto& element : *graphs) graph(F::graphs, *element);
    type(T::GRAPHS);
  } else if (const auto* opaque = std::get_if<Opaque>(&value)) {
    sink.bytes(opaque->type == T::SPARSE_TENSOR ? F::sparse_tensor : F::tp, opaque->bytes);
    type(opaque->type);
  } else {
    const auto& reference = std::get<AttributeReference>(value);
    sink.bytes(F::ref_attr_name, reference.name);
    type(reference.type);
  }
}

template <typename Sink>
void encode_node(Sink& sink, const Node& node, const Locations& locations) {
  using F = proto::NodeProto;
  for (const Value* input : node.inputs()) sink.bytes(F::input, input ? input->name() : "");
  for (const Value* output : node.outputs()) sink.bytes(F::output, output->name());
  optional_bytes(sink, F::name, node.name);
  sink.bytes(F::op_type, node.op);
  for (const auto& attribute : node.attributes) {
    sink.message(F::attribute, [&](auto& inner) { encode_attribute(inner, attribute, locations); });
  }
  optional_bytes(sink, F::domain, node.domain);
  optional_bytes(sink, F::overload, node.overload);
  encode_entries(sink, F::metadata_props, node.metadata);
}

template <typename Sink>
void encode_graph(Sink& sink, const Graph& graph, const Locations& locations) {
  using F = proto::GraphProto;
  for (const auto& node : graph.nodes()) {
    sink.message(F::node, [&](auto& inner) { encode_node(inner, *node, locations); });
  }
  sink.bytes(F::name, graph.name);
  for_each_initializer(graph, [&](const Value& value) {
    const auto external = locations.find(&value);
    sink.message(F::initializer, [&](auto& inner) {
      encode_tensor(inner, *value.initializer, value.name(), external == locations.end() ? nullptr : &external->second);
    });
  });
  optional_bytes(sink, F::doc_string, graph.doc);
  const auto value_info = [&](F field, const Value& value) {
    sink.message(field, [&](auto& inner) { encode_value(inner, value); });
  };
  for (const Value* input : graph.inputs()) value_info(F::input, *input);
  for (const Value* output : graph.outputs()) value_info(F::output, *output);
  for (const auto& node : graph.nodes()) {
    for (const Value* value : node->outputs()) {
      const bool has_type = value->type != DataType::UNDEFINED && value->shape;
      if (has_type && !value->name().empty() && !graph.is_output(value)) value_info(F::value_info, *value);
    }
  }
  encode_entries(sink, F::metadata_props, graph.metadata);
}

template <typename Sink>
void encode_model(Sink& sink, const Model& model, const Locations& locations) {
  using F = proto::ModelProto;
  sink.integer(F::ir_version, model.ir_version);
  optional_bytes(sink, F::producer_name, model.producer);
  optional_bytes(sink, F::producer_version, model.producer_version);
  optional_bytes(sink, F::domain, model.domain);
  if (model.version != 0) sink.integer(F::model_version, model.version);
  optional_bytes(sink, F::doc_string, model.doc);
  sink.message(F::graph, [&](auto& inner) { encode_graph(inner, *model.graph, locations); });
  for (const auto& [domain, version] : model.opsets) {
    sink.message(F::opset_import, [&](auto& inner) {
      inner.bytes(proto::OperatorSetIdProto::domain, domain);
      inner.integer(proto::OperatorSetIdProto::version, version);
    });
  }
  encode_entries(sink, F::metadata_props, model.metadata);
  for (const auto& function : model.functions) sink.bytes(F::functions, function);
}

uint64_t encoded_size(const Model& model, const Locations& locations) {
  Sizer sizer;
  encode_model(sizer, model, locations);
  return sizer.size;
}

void check(const Model& model) {
  const auto& graph = *model.graph;
  for (const auto& values : {graph.inputs(), graph.outputs()}) {
    for (const Value* value : values) {
      if (value->type == DataType::UNDEFINED && value->other_type.empty()) {
        throw Error({.stage = "onnx"}, "graph input or output '" + value->name() + "' has no type; ONNX wants one");
      }
    }
  }
}

}  // namespace

void save(const std::vector<NamedModel>& models, AtomicFiles& files, const SaveOptions& options) {
  std::vector<DataLayout> layouts;
  const auto layout_for = [&](const std::string& file) -> DataLayout& {
    for (auto& layout : layouts) {
      if (layout.file() == file) return layout;
    }
    return layouts.emplace_back(file);
  };

  std::vector<Locations> locations(models.size());
  for (size_t i = 0; i < models.size(); ++i) {
    const auto& [file, model] = models[i];
    check(*model);
    if (!options.external_data && encoded_size(*model, {}) <= options.max_model_size) continue;
    DataLayout& layout = layout_for(options.data_file.empty() ? file + ".data" : options.data_file);
    model->graph->for_each_graph([&](const Graph& graph) {
      for_each_initializer(graph, [&](const Value& value) {
        const Tensor& tensor = *value.initializer;
        if (tensor.type == DataType::STRING || tensor.data.nbytes() < options.external_threshold) return;
        locations[i].emplace(&value, layout.add(tensor.data));
      });
    });
    const uint64_t size = encoded_size(*model, locations[i]);
    if (size > options.max_model_size) {
      throw Error({.stage = "onnx", .file = (files.folder() / file).string()},
                  "the model without its weights takes " + std::to_string(size) + " bytes, more than the limit of " +
                      std::to_string(options.max_model_size) + " for one file; export fewer layers per file");
    }
  }

  // Data first: a model file that can be seen has its weights.
  for (const auto& layout : layouts) {
    if (!layout.empty()) layout.write(files);
  }
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string own_data = models[i].file + ".data";
    const bool written = std::any_of(layouts.begin(), layouts.end(), [&](const DataLayout& layout) {
      return !layout.empty() && layout.file() == own_data;
    });
    if (!written) {
      if (options.always_own_data_file)
        files.create(own_data);
      else
        files.remove(own_data);
    }
    OutputFile& output = files.create(models[i].file);
    Stream stream(output);
    encode_model(stream, *models[i].model, locations[i]);
  }
}

void save(const Model& model, const std::filesystem::path& file, const SaveOptions& options) {
  AtomicFiles files(file.parent_path());
  save({{file.filename().string(), &model}}, files, options);
  files.commit();
}

std::string serialize(const Model& model) {
  check(model);
  StringOutput output;
  Stream stream(output);
  encode_model(stream, model, {});
  return std::move(output.text);
}

}  // namespace transporters::onnx

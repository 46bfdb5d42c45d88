#include "transporters/onnx/reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <protozero/pbf_message.hpp>
#include <set>

#include "transporters/error.h"

namespace transporters::onnx {
namespace {

using protozero::pbf_message;
using protozero::pbf_wire_type;

// Subgraphs nest a few levels deep in practice.
constexpr int kMaxDepth = 32;

// Bytes kept alive by `owner`; a file's when `file` is set.
struct Bytes {
  const char* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;
  std::string file;
};

Bytes map_file(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& message) -> Error {
    return Error({.stage = "onnx", .file = path.string()}, message);
  };
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw fail(std::string("cannot open the file: ") + std::strerror(errno));
  struct stat status;
  Bytes bytes{.file = path.string()};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    throw fail("expected a regular file");
  }
  bytes.size = static_cast<uint64_t>(status.st_size);
  if (bytes.size > 0) {
    void* address = mmap(nullptr, bytes.size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int error = errno;
    close(descriptor);
    if (address == MAP_FAILED) throw fail(std::string("cannot map the file: ") + std::strerror(error));
    bytes.data = static_cast<const char*>(address);
    bytes.owner = std::shared_ptr<const void>(address, [size = bytes.size](void* mapped) { munmap(mapped, size); });
  } else {
    close(descriptor);
  }
  return bytes;
}

// Names that a graph's nodes may read: its own values, then those of the graphs around it.
struct Scope {
  const Scope* outer;
  std::map<std::string, Value*, std::less<>> values;

  Value* find(std::string_view name) const {
    const auto entry = values.find(name);
    if (entry != values.end()) return entry->second;
    return outer ? outer->find(name) : nullptr;
  }
};

struct TypeInfo {
  DataType type = DataType::UNDEFINED;
  std::optional<Shape> shape;
  std::string other;
};

class Reader {
 public:
  Reader(Bytes bytes, std::filesystem::path folder) : bytes_(std::move(bytes)), folder_(std::move(folder)) {}

  Model read() {
    try {
      return read_model();
    } catch (const protozero::exception& error) {
      throw fail("not an ONNX model, or cut short (" + std::string(error.what()) + ")");
    }
  }

 private:
  Error fail(const std::string& message) const { return Error({.stage = "onnx", .file = bytes_.file}, message); }

  // ── Fields, with the wire type checked ──
  template <typename F>
  void expect(const pbf_message<F>& message, pbf_wire_type type) const {
    if (message.has_wire_type(type)) return;
    throw fail("field " + std::to_string(static_cast<uint32_t>(message.tag())) + " has wire type " +
               std::to_string(static_cast<uint32_t>(message.wire_type())) + ", expected " +
               std::to_string(static_cast<uint32_t>(type)));
  }
  template <typename F>
  int64_t integer(pbf_message<F>& message) const {
    expect(message, pbf_wire_type::varint);
    return message.get_int64();
  }
  template <typename F>
  std::string_view bytes(pbf_message<F>& message) const {
    expect(message, pbf_wire_type::length_delimited);
    const auto view = message.get_view();
    return {view.data(), view.size()};
  }
  template <typename F>
  std::string text(pbf_message<F>& message) const {
    return std::string(bytes(message));
  }
  template <typename Inner, typename F>
  pbf_message<Inner> inner(pbf_message<F>& message) const {
    const auto view = bytes(message);
    return pbf_message<Inner>(view.data(), view.size());
  }
  // Repeated numbers may be packed or not, whatever the schema says.
  template <typename F>
  void integers(pbf_message<F>& message, std::vector<int64_t>& to) const {
    if (message.has_wire_type(pbf_wire_type::varint)) {
      to.push_back(message.get_int64());
      return;
    }
    const auto view = bytes(message);
    const char* position = view.data();
    const char* end = position + view.size();
    while (position != end) to.push_back(static_cast<int64_t>(protozero::decode_varint(&position, end)));
  }
  template <typename T, typename F>
  void fixed(pbf_message<F>& message, std::vector<T>& to) const {
    constexpr auto kWire = sizeof(T) == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64;
    if (message.has_wire_type(kWire)) {
      if constexpr (sizeof(T) == 4) {
        to.push_back(message.get_float());
      } else {
        to.push_back(message.get_double());
      }
      return;
    }
    const auto view = bytes(message);
    if (view.size() % sizeof(T) != 0) throw fail("packed numbers end in the middle of one");
    const size_t count = to.size();
    to.resize(count + view.size() / sizeof(T));
    if (view.size() > 0) std::memcpy(to.data() + count, view.data(), view.size());
  }
  template <typename F>
  void entry(pbf_message<F>& message, std::map<std::string, std::string>& to) const {
    auto pair = inner<proto::StringStringEntryProto>(message);
    std::string key, value;
    while (pair.next()) {
      switch (pair.tag()) {
        case proto::StringStringEntryProto::key: key = text(pair); break;
        case proto::StringStringEntryProto::value: value = text(pair); break;
        default: pair.skip();
      }
    }
    to[key] = value;
  }

  // ── Messages ──
  Model read_model() {
    using F = proto::ModelProto;
    Model model;
    model.producer.clear();
    pbf_message<F> message(bytes_.data, bytes_.size);
    bool has_graph = false;
    // Fields may come in any order, and the version says how to read the graph.
    for (auto first = message; first.next();) {
      if (first.tag() == F::ir_version) {
        ir_version_ = integer(first);
      } else {
        first.skip();
      }
    }
    while (message.next()) {
      switch (message.tag()) {
        case F::ir_version: model.ir_version = integer(message); break;
        case F::producer_name: model.producer = text(message); break;
        case F::producer_version: model.producer_version = text(message); break;
        case F::domain: model.domain = text(message); break;
        case F::model_version: model.version = integer(message); break;
        case F::doc_string: model.doc = text(message); break;
        case F::metadata_props: entry(message, model.metadata); break;
        case F::functions: model.functions.push_back(text(message)); break;
        case F::opset_import: {
          auto opset = inner<proto::OperatorSetIdProto>(message);
          std::string domain;
          int64_t version = 0;
          while (opset.next()) {
            switch (opset.tag()) {
              case proto::OperatorSetIdProto::domain: domain = text(opset); break;
              case proto::OperatorSetIdProto::version: version = integer(opset); break;
              default: opset.skip();
            }
          }
          model.opsets[domain == "ai.onnx" ? "" : domain] = version;
          break;
        }
        case F::graph:
          if (has_graph) throw fail("the model holds two graphs");
          has_graph = true;
          read_graph(bytes(message), *model.graph, nullptr, 0);
          break;
        default: message.skip();
      }
    }
    if (!has_graph) throw fail("not an ONNX model: it holds no graph");
    return model;
  }

  // Values have to be known before the nodes that read them, whatever the order of fields: three passes.
  void read_graph(std::string_view data, Graph& graph, const Scope* outer, int depth) {
    using F = proto::GraphProto;
    if (depth > kMaxDepth) throw fail("subgraphs nest deeper than " + std::to_string(kMaxDepth));
    Scope scope{outer, {}};
    std::map<std::string, Tensor> initializers;
    std::vector<std::string> initializer_order;
    std::map<std::string, TypeInfo> types;
    graph.name.clear();

    for (pbf_message<F> message(data.data(), data.size()); message.next();) {
      switch (message.tag()) {
        case F::name: graph.name = text(message); break;
        case F::doc_string: graph.doc = text(message); break;
        case F::metadata_props: entry(message, graph.metadata); break;
        case F::sparse_initializer: throw fail("sparse initializers are not supported");
        case F::initializer: {
          std::string name;
          Tensor tensor = read_tensor(inner<proto::TensorProto>(message), name);
          if (name.empty()) throw fail("an initializer has no name");
          if (!initializers.emplace(name, std::move(tensor)).second) throw twice(name);
          initializer_order.push_back(name);
          break;
        }
        case F::value_info: {
          auto [name, type] = read_value_info(inner<proto::ValueInfoProto>(message));
          types[name] = std::move(type);
          break;
        }
        default: message.skip();
      }
    }
    for (pbf_message<F> message(data.data(), data.size()); message.next();) {
      if (message.tag() != F::input) {
        message.skip();
        continue;
      }
      auto [name, type] = read_value_info(inner<proto::ValueInfoProto>(message));
      if (name.empty()) throw fail("a graph input has no name");
      // An input with an initializer has a default; before IR 4 every initializer is listed as an input.
      const auto initial = initializers.find(name);
      if (initial != initializers.end() && ir_version_ < 4) continue;
      define(graph, scope, name);
      Value* value = graph.add_input(name, type.type, std::move(type.shape));
      value->other_type = std::move(type.other);
      if (initial != initializers.end()) {
        value->initializer = std::move(initial->second);
        initializers.erase(initial);
      }
      scope.values[name] = value;
    }
    for (const auto& name : initializer_order) {
      if (!initializers.contains(name)) continue;
      define(graph, scope, name);
      scope.values[name] = graph.add_initializer(name, std::move(initializers.at(name)));
    }
    for (pbf_message<F> message(data.data(), data.size()); message.next();) {
      if (message.tag() == F::node) {
        read_node(inner<proto::NodeProto>(message), graph, scope, types, depth);
      } else {
        message.skip();
      }
    }
    for (pbf_message<F> message(data.data(), data.size()); message.next();) {
      if (message.tag() != F::output) {
        message.skip();
        continue;
      }
      auto [name, type] = read_value_info(inner<proto::ValueInfoProto>(message));
      Value* value = scope.find(name);
      if (value == nullptr) throw fail("graph output '" + name + "' is made by no node");
      graph.add_output(value);
      if (type.type != DataType::UNDEFINED) value->type = type.type;
      if (type.shape) value->shape = std::move(type.shape);
      if (!type.other.empty()) value->other_type = std::move(type.other);
    }
  }

  Error twice(const std::string& name) const { return fail("the name '" + name + "' is defined twice"); }

  void define(const Graph& graph, const Scope& scope, const std::string& name) const {
    if (scope.values.contains(name) || graph.is_taken(name)) throw twice(name);
  }

  void read_node(pbf_message<proto::NodeProto> message, Graph& graph, Scope& scope,
                 std::map<std::string, TypeInfo>& types, int depth) {
    using F = proto::NodeProto;
    std::string op, domain, name, overload;
    std::vector<std::string> inputs, outputs;
    std::vector<std::string_view> attributes;
    std::map<std::string, std::string> metadata;
    while (message.next()) {
      switch (message.tag()) {
        case F::input: inputs.push_back(text(message)); break;
        case F::output: outputs.push_back(text(message)); break;
        case F::name: name = text(message); break;
        case F::op_type: op = text(message); break;
        case F::domain: domain = text(message); break;
        case F::overload: overload = text(message); break;
        case F::attribute: attributes.push_back(bytes(message)); break;
        case F::metadata_props: entry(message, metadata); break;
        default: message.skip();
      }
    }
    if (op.empty()) throw fail("node '" + name + "' has no op_type");
    std::vector<Value*> values;
    for (const auto& input : inputs) {
      Value* value = input.empty() ? nullptr : scope.find(input);
      if (value == nullptr && !input.empty()) {
        throw fail("node '" + name + "' (" + op + ") reads '" + input + "', which nothing before it defines");
      }
      values.push_back(value);
    }
    std::set<std::string> own;
    for (const auto& output : outputs) {
      if (output.empty()) continue;
      define(graph, scope, output);
      if (!own.insert(output).second) throw twice(output);
    }
    Attributes read;
    for (const auto attribute : attributes) {
      read.push_back(read_attribute(pbf_message<proto::AttributeProto>(attribute.data(), attribute.size()), graph,
                                    scope, depth));
    }
    // A subgraph may have taken a name that this node's output has.
    for (const auto& output : outputs) {
      if (!output.empty()) define(graph, scope, output);
    }
    Node* node = graph.insert(nullptr, op, std::move(values), std::move(read), outputs);
    node->domain = domain == "ai.onnx" ? "" : domain;
    node->name = std::move(name);
    node->overload = std::move(overload);
    node->metadata = std::move(metadata);
    for (Value* output : node->outputs()) {
      if (output->name().empty()) continue;
      scope.values[output->name()] = output;
      const auto type = types.find(output->name());
      if (type == types.end()) continue;
      output->type = type->second.type;
      output->shape = std::move(type->second.shape);
      output->other_type = std::move(type->second.other);
    }
  }

  Attribute read_attribute(pbf_message<proto::AttributeProto> message, Graph& graph, const Scope& scope, int depth) {
    using F = proto::AttributeProto;
    using T = proto::AttributeProto_AttributeType;
    Attribute attribute;
    std::string reference;
    auto type = T::UNDEFINED;
    int64_t i = 0;
    float f = 0;
    std::string s, opaque;
    std::vector<int64_t> ints;
    std::vector<float> floats;
    std::vector<std::string> strings;
    std::vector<Tensor> tensors;
    std::vector<std::shared_ptr<Graph>> graphs;
    const auto subgraph = [&] {
      graphs.push_back(std::make_shared<Graph>(&graph));
      read_graph(bytes(message), *graphs.back(), &scope, depth + 1);
    };
    std::string ignored;
    while (message.next()) {
      switch (message.tag()) {
        case F::name: attribute.name = text(message); break;
        case F::ref_attr_name: reference = text(message); break;
        case F::type: type = static_cast<T>(integer(message)); break;
        case F::i: i = integer(message); break;
        case F::f:
          expect(message, pbf_wire_type::fixed32);
          f = message.get_float();
          break;
        case F::s: s = text(message); break;
        case F::t:
        case F::tensors: tensors.push_back(read_tensor(inner<proto::TensorProto>(message), ignored)); break;
        case F::g:
        case F::graphs: subgraph(); break;
        case F::sparse_tensor:
        case F::tp: opaque = text(message); break;
        case F::ints: integers(message, ints); break;
        case F::floats: fixed(message, floats); break;
        case F::strings: strings.push_back(text(message)); break;
        default: message.skip();
      }
    }
    if (attribute.name.empty()) throw fail("an attribute has no name");
    const auto only = [&](auto& list) {
      if (list.size() != 1) throw fail("attribute '" + attribute.name + "' does not hold what its type says");
      return std::move(list.front());
    };
    if (!reference.empty()) {
      attribute.value = AttributeReference{reference, type};
      return attribute;
    }
    switch (type) {
      case T::INT: attribute.value = i; break;
      case T::FLOAT: attribute.value = f; break;
      case T::STRING: attribute.value = std::move(s); break;
      case T::TENSOR: attribute.value = only(tensors); break;
      case T::GRAPH: attribute.value = only(graphs); break;
      case T::INTS: attribute.value = std::move(ints); break;
      case T::FLOATS: attribute.value = std::move(floats); break;
      case T::STRINGS: attribute.value = std::move(strings); break;
      case T::TENSORS: attribute.value = std::move(tensors); break;
      case T::GRAPHS: attribute.value = std::move(graphs); break;
      case T::SPARSE_TENSOR:
      case T::TYPE_PROTO: attribute.value = Opaque{type, std::move(opaque)}; break;
      default:
        throw fail("attribute '" + attribute.name + "' has type " + std::to_string(static_cast<int32_t>(type)) +
                   ", which is not supported");
    }
    return attribute;
  }

  std::pair<std::string, TypeInfo> read_value_info(pbf_message<proto::ValueInfoProto> message) const {
    using F = proto::ValueInfoProto;
    std::string name;
    TypeInfo info;
    while (message.next()) {
      switch (message.tag()) {
        case F::name: name = text(message); break;
        case F::type: info = read_type(bytes(message)); break;
        default: message.skip();
      }
    }
    return {name, info};
  }

  TypeInfo read_type(std::string_view data) const {
    using F = proto::TypeProto;
    TypeInfo info;
    for (pbf_message<F> message(data.data(), data.size()); message.next();) {
      switch (message.tag()) {
        case F::tensor_type: {
          auto tensor = inner<proto::TypeProto_Tensor>(message);
          while (tensor.next()) {
            switch (tensor.tag()) {
              case proto::TypeProto_Tensor::elem_type: info.type = static_cast<DataType>(integer(tensor)); break;
              case proto::TypeProto_Tensor::shape: info.shape = read_shape(inner<proto::TensorShapeProto>(tensor)); break;
              default: tensor.skip();
            }
          }
          break;
        }
        case F::sequence_type:
        case F::map_type:
        case F::optional_type:
        case F::sparse_tensor_type:
        case F::opaque_type:
          info.other = std::string(data);
          message.skip();
          break;
        default: message.skip();
      }
    }
    return info;
  }

  Shape read_shape(pbf_message<proto::TensorShapeProto> message) const {
    using F = proto::TensorShapeProto_Dimension;
    Shape shape;
    while (message.next()) {
      if (message.tag() != proto::TensorShapeProto::dim) {
        message.skip();
        continue;
      }
      Dim& dim = shape.emplace_back();
      auto field = inner<F>(message);
      while (field.next()) {
        switch (field.tag()) {
          case F::dim_value: dim = Dim::of(integer(field)); break;
          case F::dim_param: dim = Dim::named(text(field)); break;
          default: field.skip();
        }
      }
      // Some writers say "unknown" with a negative number.
      if (dim.value < 0) dim.value = -1;
    }
    return shape;
  }

  Tensor read_tensor(pbf_message<proto::TensorProto> message, std::string& name) {
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
        case F::dims: integers(message, tensor.dims); break;
        case F::data_type: tensor.type = static_cast<DataType>(integer(message)); break;
        case F::segment: throw fail("tensors stored in segments are not supported");
        case F::float_data: fixed(message, floats); break;
        case F::double_data: fixed(message, doubles); break;
        case F::int32_data:
        case F::int64_data:
        case F::uint64_data: integers(message, numbers); break;
        case F::string_data: tensor.strings.push_back(text(message)); break;
        case F::name: name = text(message); break;
        case F::raw_data: raw = bytes(message); break;
        case F::external_data: entry(message, external); break;
        case F::data_location:
          is_external = integer(message) == static_cast<int64_t>(proto::TensorProto_DataLocation::EXTERNAL);
          break;
        default: message.skip();
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

  Error wrong_count(const std::string& who, uint64_t expected, uint64_t found) const {
    return fail(who + " holds " + std::to_string(found) + " elements, its dimensions say " + std::to_string(expected));
  }
  Error wrong_size(const std::string& who, uint64_t expected, uint64_t found) const {
    return fail(who + " holds " + std::to_string(found) + " bytes, its type and dimensions say " +
                std::to_string(expected));
  }

  static void own(TensorData& data, std::string bytes) {
    auto owner = std::make_shared<const std::string>(std::move(bytes));
    data.data = owner->empty() ? nullptr : owner->data();
    data.owner = owner;
  }

  // Bytes of a mapping stay where they are, unless they lie across the element's alignment.
  static void point_at(TensorData& data, const Bytes& bytes, uint64_t offset, uint64_t size) {
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

  void point_at_file(TensorData& data, const std::string& who, const std::map<std::string, std::string>& external,
                     uint64_t size) {
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
    const Bytes& file =
        mapped != files_.end() ? mapped->second : files_[location->second] = map_file(folder_ / relative);
    const uint64_t offset = number("offset", 0);
    if (offset > file.size || size > file.size - offset) {
      throw Error({.stage = "onnx", .file = file.file},
                  who + " needs bytes " + std::to_string(offset) + " to " + std::to_string(offset + size) +
                      ", the file has " + std::to_string(file.size));
    }
    const uint64_t length = number("length", size);
    if (length != size) throw wrong_size(who, size, length);
    point_at(data, file, offset, size);
  }

  void copy_numbers(Tensor& tensor, const std::string& who, const std::vector<float>& floats,
                    const std::vector<double>& doubles, const std::vector<int64_t>& numbers, uint64_t count,
                    uint64_t size) const {
    const auto whole = [&](const auto& list, uint64_t per_element) {
      if (list.size() != count * per_element) throw wrong_count(who, count, list.size() / per_element);
      own(tensor.data, std::string(reinterpret_cast<const char*>(list.data()), size));
    };
    switch (tensor.type) {
      case DataType::FLOAT: return whole(floats, 1);
      case DataType::COMPLEX64: return whole(floats, 2);
      case DataType::DOUBLE: return whole(doubles, 1);
      case DataType::COMPLEX128: return whole(doubles, 2);
      default: break;
    }
    // The low bytes of each number: one element, or one byte of packed elements.
    const size_t element = c10::elementSize(tensor.data.dtype);
    if (numbers.size() * element != size) throw wrong_count(who, size / element, numbers.size());
    std::string bytes(size, '\0');
    for (size_t i = 0; i < numbers.size(); ++i) std::memcpy(bytes.data() + i * element, &numbers[i], element);
    own(tensor.data, std::move(bytes));
  }

  Bytes bytes_;
  std::filesystem::path folder_;
  int64_t ir_version_ = 0;
  std::map<std::string, Bytes> files_;  // by location
};

}  // namespace

Model load(const std::filesystem::path& file) {
  auto folder = file.parent_path();
  return Reader(map_file(file), folder.empty() ? "." : folder).read();
}

Model parse(std::string_view bytes, const std::filesystem::path& folder) {
  return Reader({.data = bytes.data(), .size = bytes.size()}, folder).read();
}

}  // namespace transporters::onnx

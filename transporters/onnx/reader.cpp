#include "transporters/onnx/reader.h"

#include <set>

#include "transporters/error.h"
#include "transporters/onnx/proto_fields.h"
#include "transporters/onnx/tensor_reader.h"

namespace transporters::onnx {
namespace {

// Subgraphs nest a few levels deep in practice.
constexpr int kMaxDepth = 32;

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

class Reader : private ProtoFields {
 public:
  Reader(Bytes bytes, const std::filesystem::path& folder)
      : ProtoFields(bytes.file), bytes_(bytes), tensors_(std::move(bytes), folder) {}

  Model read() {
    try {
      return read_model();
    } catch (const protozero::exception& error) {
      throw fail("not an ONNX model, or cut short (" + std::string(error.what()) + ")");
    }
  }

 private:
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
        case F::ir_version:
          model.ir_version = integer(message);
          break;
        case F::producer_name:
          model.producer = text(message);
          break;
        case F::producer_version:
          model.producer_version = text(message);
          break;
        case F::domain:
          model.domain = text(message);
          break;
        case F::model_version:
          model.version = integer(message);
          break;
        case F::doc_string:
          model.doc = text(message);
          break;
        case F::metadata_props:
          entry(message, model.metadata);
          break;
        case F::functions:
          model.functions.push_back(text(message));
          break;
        case F::opset_import: {
          auto opset = inner<proto::OperatorSetIdProto>(message);
          std::string domain;
          int64_t version = 0;
          while (opset.next()) {
            switch (opset.tag()) {
              case proto::OperatorSetIdProto::domain:
                domain = text(opset);
                break;
              case proto::OperatorSetIdProto::version:
                version = integer(opset);
                break;
              default:
                opset.skip();
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
        default:
          message.skip();
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
        case F::name:
          graph.name = text(message);
          break;
        case F::doc_string:
          graph.doc = text(message);
          break;
        case F::metadata_props:
          entry(message, graph.metadata);
          break;
        case F::sparse_initializer:
          throw fail("sparse initializers are not supported");
        case F::initializer: {
          std::string name;
          Tensor tensor = tensors_.read(inner<proto::TensorProto>(message), name);
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
        default:
          message.skip();
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
        case F::input:
          inputs.push_back(text(message));
          break;
        case F::output:
          outputs.push_back(text(message));
          break;
        case F::name:
          name = text(message);
          break;
        case F::op_type:
          op = text(message);
          break;
        case F::domain:
          domain = text(message);
          break;
        case F::overload:
          overload = text(message);
          break;
        case F::attribute:
          attributes.push_back(bytes(message));
          break;
        case F::metadata_props:
          entry(message, metadata);
          break;
        default:
          message.skip();
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
      read.push_back(
          read_attribute(pbf_message<proto::AttributeProto>(attribute.data(), attribute.size()), graph, scope, depth));
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
        case F::name:
          attribute.name = text(message);
          break;
        case F::ref_attr_name:
          reference = text(message);
          break;
        case F::type:
          type = static_cast<T>(integer(message));
          break;
        case F::i:
          i = integer(message);
          break;
        case F::f:
          expect(message, pbf_wire_type::fixed32);
          f = message.get_float();
          break;
        case F::s:
          s = text(message);
          break;
        case F::t:
        case F::tensors:
          tensors.push_back(tensors_.read(inner<proto::TensorProto>(message), ignored));
          break;
        case F::g:
        case F::graphs:
          subgraph();
          break;
        case F::sparse_tensor:
        case F::tp:
          opaque = text(message);
          break;
        case F::ints:
          integers(message, ints);
          break;
        case F::floats:
          fixed(message, floats);
          break;
        case F::strings:
          strings.push_back(text(message));
          break;
        default:
          message.skip();
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
      case T::INT:
        attribute.value = i;
        break;
      case T::FLOAT:
        attribute.value = f;
        break;
      case T::STRING:
        attribute.value = std::move(s);
        break;
      case T::TENSOR:
        attribute.value = only(tensors);
        break;
      case T::GRAPH:
        attribute.value = only(graphs);
        break;
      case T::INTS:
        attribute.value = std::move(ints);
        break;
      case T::FLOATS:
        attribute.value = std::move(floats);
        break;
      case T::STRINGS:
        attribute.value = std::move(strings);
        break;
      case T::TENSORS:
        attribute.value = std::move(tensors);
        break;
      case T::GRAPHS:
        attribute.value = std::move(graphs);
        break;
      case T::SPARSE_TENSOR:
      case T::TYPE_PROTO:
        attribute.value = Opaque{type, std::move(opaque)};
        break;
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
        case F::name:
          name = text(message);
          break;
        case F::type:
          info = read_type(bytes(message));
          break;
        default:
          message.skip();
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
              case proto::TypeProto_Tensor::elem_type:
                info.type = static_cast<DataType>(integer(tensor));
                break;
              case proto::TypeProto_Tensor::shape:
                info.shape = read_shape(inner<proto::TensorShapeProto>(tensor));
                break;
              default:
                tensor.skip();
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
        default:
          message.skip();
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
          case F::dim_value:
            dim = Dim::of(integer(field));
            break;
          case F::dim_param:
            dim = Dim::named(text(field));
            break;
          default:
            field.skip();
        }
      }
      // Some writers say "unknown" with a negative number.
      if (dim.value < 0) dim.value = -1;
    }
    return shape;
  }

  Bytes bytes_;
  TensorReader tensors_;
  int64_t ir_version_ = 0;
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

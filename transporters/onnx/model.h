// An ONNX model in memory: what ModelProto says, with values as objects and weights as views of the bytes they came
// from. Field meanings: https://github.com/onnx/onnx/blob/main/docs/IR.md
//
// A Graph owns its nodes and values; Node* and Value* stay valid until erased. Each value knows its uses, so that
// rewrites need no index of their own. Names are unique in a graph and the subgraphs below it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "transporters/graph/tensor_data.h"
#include "transporters/onnx/schema.h"

namespace transporters::onnx {

using DataType = proto::TensorProto_DataType;

// The ONNX type of a torch type and back. to_data_type throws Error for what ONNX lacks (complex32, quantised types);
// to_scalar_type gives nullopt for what torch lacks (string) or what ONNX packs (int4).
DataType to_data_type(ScalarType dtype);
std::optional<ScalarType> to_scalar_type(DataType type);
// Lower-case name as ONNX's documents write it: "float", "int64", "bfloat16".
std::string_view name_of(DataType type);
// Bits of one element; 0 for strings, the undefined type and unknown numbers.
int bits_of(DataType type);

// A dimension: a number, a named symbol, or unknown.
struct Dim {
  int64_t value = -1;  // known when >= 0
  std::string param;   // "batch", "2*sequence"; empty when none

  static Dim of(int64_t value) { return {value, ""}; }
  static Dim named(std::string param) { return {-1, std::move(param)}; }
  bool is_known() const { return value >= 0; }
  bool operator==(const Dim&) const = default;
};
using Shape = std::vector<Dim>;

// A constant tensor. Types that pack several elements in a byte (int4, uint2, float4e2m1, ...) hold their bytes in
// `data` as a 1-D uint8 tensor; strings are in `strings`; other types in `data`, with sizes equal to `dims`.
struct Tensor {
  DataType type = DataType::UNDEFINED;
  std::vector<int64_t> dims;
  TensorData data;
  std::vector<std::string> strings;

  static Tensor of(TensorData data);
  int64_t numel() const;
};

class Graph;
class Node;

// A message that this model carries without looking inside: sparse tensors, types of sequences and maps.
struct Opaque {
  proto::AttributeProto_AttributeType type;
  std::string bytes;
  bool operator==(const Opaque&) const = default;
};

// Stands for an attribute of the function around the node.
struct AttributeReference {
  std::string name;
  proto::AttributeProto_AttributeType type;
};

using AttributeValue = std::variant<int64_t, float, std::string, Tensor, std::shared_ptr<Graph>, std::vector<int64_t>,
                                    std::vector<float>, std::vector<std::string>, std::vector<Tensor>,
                                    std::vector<std::shared_ptr<Graph>>, Opaque, AttributeReference>;

struct Attribute {
  std::string name;
  AttributeValue value;
};
using Attributes = std::vector<Attribute>;

// Node `node` reads the value as its input number `input`.
struct Use {
  Node* node;
  size_t input;
  bool operator==(const Use&) const = default;
};

class Value {
 public:
  const std::string& name() const { return name_; }  // empty: an optional output that is left out
  Graph& graph() const { return *graph_; }
  Node* producer() const { return producer_; }  // null for graph inputs and initializers
  size_t index() const { return index_; }       // among the producer's outputs
  // Of this graph's nodes and its subgraphs' nodes; graph outputs are not uses.
  const std::vector<Use>& uses() const { return uses_; }
  bool is_initializer() const { return initializer.has_value(); }

  DataType type = DataType::UNDEFINED;  // UNDEFINED: not known
  std::optional<Shape> shape;           // nullopt: rank not known
  std::optional<Tensor> initializer;    // a constant, or the default of a graph input
  std::string other_type;  // a serialised TypeProto when this is no tensor (sequence, map, optional), else empty

 private:
  friend class Graph;
  friend class Node;
  std::string name_;
  Graph* graph_ = nullptr;
  Node* producer_ = nullptr;
  size_t index_ = 0;
  std::vector<Use> uses_;
};

class Node {
 public:
  std::string op;      // "Gemm"
  std::string domain;  // "" is ONNX's own
  std::string name;
  std::string overload;
  Attributes attributes;
  std::map<std::string, std::string> metadata;

  bool is(std::string_view type) const { return op == type && domain.empty(); }
  Graph& graph() const { return *graph_; }
  // Null where an optional input is left out.
  std::span<Value* const> inputs() const { return inputs_; }
  Value* input(size_t index) const { return index < inputs_.size() ? inputs_[index] : nullptr; }
  std::span<Value* const> outputs() const { return outputs_; }
  Value* output(size_t index = 0) const { return outputs_.at(index); }
  void set_input(size_t index, Value* value);
  void set_inputs(std::vector<Value*> inputs);

  // The attribute, or null. The typed reads give `otherwise` when it is absent and throw Error when it has another
  // type.
  const AttributeValue* find(std::string_view attribute) const;
  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  float real(std::string_view attribute, float otherwise) const;
  std::string string(std::string_view attribute, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view attribute) const;
  // Sets or replaces.
  void set(std::string_view attribute, AttributeValue value);

  Node* next() const;  // null at the end
  Node* prev() const;  // null at the start

 private:
  friend class Graph;
  Graph* graph_ = nullptr;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::vector<std::unique_ptr<Value>> owned_;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

class Graph {
 public:
  // `parent`: the graph around this subgraph, whose values it may read.
  explicit Graph(Graph* parent = nullptr) : parent_(parent) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Graph* parent() const { return parent_; }

  std::string name = "main_graph";
  std::string doc;
  std::map<std::string, std::string> metadata;

  // Names that are taken get a suffix ("x_1") here and in every member that gives a name.
  Value* add_input(std::string_view name, DataType type, std::optional<Shape> shape);
  Value* add_initializer(std::string_view name, Tensor tensor);
  // A value can be several outputs.
  void add_output(Value* value) { outputs_.push_back(value); }
  void set_output(size_t index, Value* value) { outputs_.at(index) = value; }
  void set_outputs(std::vector<Value*> values) { outputs_ = std::move(values); }
  // Inserts before `before` (null: at the end) a node with one output per name; an empty name is an output left out.
  Node* insert(Node* before, std::string_view op, std::vector<Value*> inputs, Attributes attributes,
               const std::vector<std::string>& output_names);
  // Throws InternalError when an output has uses or is a graph output.
  void erase(Node* node);
  void move_before(Node* node, Node* before);  // null: to the end
  void erase_initializer(Value* value);
  // Uses and graph outputs of `from` read `to` afterwards.
  void replace_all_uses(Value* from, Value* to);

  std::span<Value* const> inputs() const { return inputs_; }
  std::span<Value* const> outputs() const { return outputs_; }
  std::span<const std::unique_ptr<Value>> initializers() const { return initializers_; }
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  Node* front() const { return nodes_.empty() ? nullptr : nodes_.front().get(); }
  bool is_input(const Value* value) const;
  bool is_output(const Value* value) const;

  void rename(Value* value, std::string_view name);
  // Keeps a name from being given out; the value that it is kept for takes it with rename_to_reserved.
  void reserve(std::string_view name) { root().names_.insert(std::string(name)); }
  void rename_to_reserved(Value* value, std::string_view name);
  bool is_taken(std::string_view name) const { return root().names_.contains(std::string(name)); }

  // Calls f for this graph and every graph in its nodes' attributes, outer graphs first.
  void for_each_graph(const std::function<void(Graph&)>& f);

 private:
  Graph& root() { return parent_ ? parent_->root() : *this; }
  const Graph& root() const { return parent_ ? parent_->root() : *this; }
  std::string unique_name(std::string_view wanted);
  std::unique_ptr<Value> make_value(std::string_view name);

  Graph* parent_;
  std::vector<std::unique_ptr<Value>> owned_inputs_;
  std::vector<std::unique_ptr<Value>> initializers_;
  std::list<std::unique_ptr<Node>> nodes_;  // after the values they read: nodes go first
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::unordered_set<std::string> names_;  // of the root: those of all graphs below
  std::map<std::string, int> next_suffix_;
};

struct Model {
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  // by domain
  std::string producer = "transporters";
  std::string producer_version;
  std::string domain;
  int64_t version = 0;
  std::string doc;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> functions;  // serialised FunctionProtos, carried as they are
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();

  // One line per input, initializer, node and output.
  std::string str() const;
};

// The oldest IR version that goes with an opset of ONNX's own domain.
int64_t ir_version_for(int64_t opset);

}  // namespace transporters::onnx

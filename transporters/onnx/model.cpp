#include "transporters/onnx/model.h"

#include <algorithm>
#include <numeric>

#include "transporters/error.h"

namespace transporters::onnx {

Tensor Tensor::of(TensorData data) {
  Tensor tensor;
  tensor.type = to_data_type(data.dtype);
  tensor.dims = data.sizes;
  tensor.data = std::move(data);
  return tensor;
}

int64_t Tensor::numel() const { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }

void Node::set_input(size_t index, Value* value) {
  if (index >= inputs_.size()) inputs_.resize(index + 1, nullptr);
  if (Value* old = inputs_[index]) std::erase(old->uses_, Use{this, index});
  inputs_[index] = value;
  if (value) value->uses_.push_back({this, index});
}

void Node::set_inputs(std::vector<Value*> inputs) {
  for (size_t i = 0; i < inputs_.size(); ++i) set_input(i, nullptr);
  inputs_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) set_input(i, inputs[i]);
}

const AttributeValue* Node::find(std::string_view attribute) const {
  for (const auto& [name, value] : attributes) {
    if (name == attribute) return &value;
  }
  return nullptr;
}

namespace {

template <typename T>
const T* typed(const Node& node, std::string_view attribute) {
  const AttributeValue* value = node.find(attribute);
  if (value == nullptr) return nullptr;
  if (const T* held = std::get_if<T>(value)) return held;
  throw Error({.stage = "onnx", .op = node.op}, "attribute '" + std::string(attribute) + "' has another type");
}

}  // namespace

int64_t Node::integer(std::string_view attribute, int64_t otherwise) const {
  const auto* value = typed<int64_t>(*this, attribute);
  return value ? *value : otherwise;
}

float Node::real(std::string_view attribute, float otherwise) const {
  const auto* value = typed<float>(*this, attribute);
  return value ? *value : otherwise;
}

std::string Node::string(std::string_view attribute, std::string_view otherwise) const {
  const auto* value = typed<std::string>(*this, attribute);
  return value ? *value : std::string(otherwise);
}

std::vector<int64_t> Node::integers(std::string_view attribute) const {
  const auto* value = typed<std::vector<int64_t>>(*this, attribute);
  return value ? *value : std::vector<int64_t>{};
}

void Node::set(std::string_view attribute, AttributeValue value) {
  for (auto& [name, held] : attributes) {
    if (name == attribute) {
      held = std::move(value);
      return;
    }
  }
  attributes.push_back({std::string(attribute), std::move(value)});
}

Node* Node::next() const {
  const auto next = std::next(position_);
  return next == graph_->nodes().end() ? nullptr : next->get();
}

Node* Node::prev() const { return position_ == graph_->nodes().begin() ? nullptr : std::prev(position_)->get(); }

std::string Graph::unique_name(std::string_view wanted) {
  Graph& root = this->root();
  std::string name(wanted);
  if (root.names_.insert(name).second) return name;
  int& suffix = root.next_suffix_[name];
  while (true) {
    std::string candidate = name + "_" + std::to_string(++suffix);
    if (root.names_.insert(candidate).second) return candidate;
  }
}

std::unique_ptr<Value> Graph::make_value(std::string_view name) {
  auto value = std::make_unique<Value>();
  value->graph_ = this;
  if (!name.empty()) value->name_ = unique_name(name);
  return value;
}

Value* Graph::add_input(std::string_view name, DataType type, std::optional<Shape> shape) {
  owned_inputs_.push_back(make_value(name));
  Value* value = owned_inputs_.back().get();
  value->type = type;
  value->shape = std::move(shape);
  inputs_.push_back(value);
  return value;
}

Value* Graph::add_initializer(std::string_view name, Tensor tensor) {
  initializers_.push_back(make_value(name));
  Value* value = initializers_.back().get();
  value->type = tensor.type;
  value->shape.emplace();
  for (const int64_t dim : tensor.dims) value->shape->push_back(Dim::of(dim));
  value->initializer = std::move(tensor);
  return value;
}

Node* Graph::insert(Node* before, std::string_view op, std::vector<Value*> inputs, Attributes attributes,
                    const std::vector<std::string>& output_names) {
  const auto where = before ? before->position_ : nodes_.end();
  const auto position = nodes_.insert(where, std::make_unique<Node>());
  Node* node = position->get();
  node->op = op;
  node->graph_ = this;
  node->position_ = position;
  node->attributes = std::move(attributes);
  for (const auto& name : output_names) {
    node->owned_.push_back(make_value(name));
    Value* value = node->owned_.back().get();
    value->producer_ = node;
    value->index_ = node->outputs_.size();
    node->outputs_.push_back(value);
  }
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  node->set_inputs(std::move(inputs));
  return node;
}

void Graph::erase(Node* node) {
  for (const Value* output : node->outputs_) {
    if (!output->uses_.empty() || is_output(output)) {
      throw InternalError("erasing ONNX node '" + node->op + "' whose output '" + output->name_ + "' is still used");
    }
  }
  node->set_inputs({});
  for (auto& [name, value] : node->attributes) {
    // Nodes of a subgraph read values of this graph: those uses end with it.
    const auto detach = [](Graph& subgraph) {
      subgraph.for_each_graph([](Graph& graph) {
        for (const auto& inner : graph.nodes_) inner->set_inputs({});
      });
    };
    if (auto* graph = std::get_if<std::shared_ptr<Graph>>(&value)) detach(**graph);
    if (auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value)) {
      for (const auto& graph : *graphs) detach(*graph);
    }
  }
  for (const Value* output : node->outputs_) root().names_.erase(output->name_);
  nodes_.erase(node->position_);
}

void Graph::move_before(Node* node, Node* before) {
  nodes_.splice(before ? before->position_ : nodes_.end(), nodes_, node->position_);
}

void Graph::erase_initializer(Value* value) {
  if (!value->uses_.empty() || is_output(value)) {
    throw InternalError("erasing ONNX initializer '" + value->name_ + "' that is still used");
  }
  root().names_.erase(value->name_);
  std::erase_if(initializers_, [&](const auto& held) { return held.get() == value; });
}

bool Graph::is_input(const Value* value) const {
  return std::find(inputs_.begin(), inputs_.end(), value) != inputs_.end();
}

bool Graph::is_output(const Value* value) const {
  return std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end();
}

void Graph::replace_all_uses(Value* from, Value* to) {
  if (from == to) return;
  const std::vector<Use> uses = from->uses_;
  for (const Use& use : uses) use.node->set_input(use.input, to);
  from->graph_->for_each_graph(
      [&](Graph& graph) { std::replace(graph.outputs_.begin(), graph.outputs_.end(), from, to); });
}

void Graph::rename(Value* value, std::string_view name) {
  if (value->name_ == name) return;
  root().names_.erase(value->name_);
  value->name_ = unique_name(name);
}

void Graph::rename_to_reserved(Value* value, std::string_view name) {
  root().names_.erase(value->name_);
  value->name_ = name;
  root().names_.insert(value->name_);
}

void Graph::for_each_graph(const std::function<void(Graph&)>& f) {
  f(*this);
  for (const auto& node : nodes_) {
    for (auto& [name, value] : node->attributes) {
      if (auto* graph = std::get_if<std::shared_ptr<Graph>>(&value)) (*graph)->for_each_graph(f);
      if (auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value)) {
        for (const auto& graph : *graphs) graph->for_each_graph(f);
      }
    }
  }
}

}  // namespace transporters::onnx

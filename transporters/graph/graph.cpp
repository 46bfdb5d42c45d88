#include "transporters/graph/graph.h"

#include <algorithm>

#include "transporters/error.h"

namespace transporters {
namespace {

// "aten::add.Tensor" -> "add".
std::string_view short_name(const OpSchema& schema) {
  std::string_view name = schema.base_name();
  const auto colons = name.find("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

// Rewrites each value inside an argument.
void map_values(Argument& argument, const std::function<Value*(Value*)>& f) {
  if (auto* value = std::get_if<Value*>(&argument)) {
    *value = f(*value);
  } else if (auto* values = std::get_if<Values>(&argument)) {
    for (auto*& element : *values)
      if (element != nullptr) element = f(element);
  }
}

// Calls f(value, element) for each value in an argument.
template <typename F>
void for_each_element(const Argument& argument, F f) {
  if (auto* const* value = std::get_if<Value*>(&argument)) {
    f(*value, size_t{0});
  } else if (const auto* values = std::get_if<Values>(&argument)) {
    for (size_t i = 0; i < values->size(); ++i)
      if ((*values)[i] != nullptr) f((*values)[i], i);
  }
}

}  // namespace

std::string Graph::unique_name(std::string_view wanted) {
  std::string name(wanted.empty() ? "value" : wanted);
  if (!names_.contains(name)) return name;
  int& suffix = next_suffix_[name];
  std::string candidate;
  do candidate = name + "_" + std::to_string(++suffix);
  while (names_.contains(candidate));
  return candidate;
}

void Graph::add_uses(Node* node, size_t argument) {
  for_each_element(node->arguments_[argument].value, [&](Value* value, size_t element) {
    if (value->graph_ != this) throw InternalError("value %" + value->name_ + " belongs to another graph");
    value->uses_.push_back({node, argument, element});
  });
}

void Graph::remove_uses(Node* node, size_t argument) {
  for_each_element(node->arguments_[argument].value, [&](Value* value, size_t element) {
    auto& uses = value->uses_;
    const auto found = std::find(uses.rbegin(), uses.rend(), Use{node, argument, element});
    if (found == uses.rend()) throw InternalError("value %" + value->name_ + " misses a use by '" + node->op() + "'");
    uses.erase(std::next(found).base());
  });
}

void Graph::shift_uses(Node* node, size_t first, int by) {
  // From the far end when indices grow, so that a use is never taken for its neighbour's.
  std::vector<size_t> order;
  for (size_t i = first; i < node->arguments_.size(); ++i) order.push_back(i);
  if (by > 0) std::reverse(order.begin(), order.end());
  for (const size_t now : order) {
    for_each_element(node->arguments_[now].value, [&](Value* value, size_t element) {
      const Use before{node, now - static_cast<size_t>(by), element};
      *std::find(value->uses_.begin(), value->uses_.end(), before) = {node, now, element};
    });
  }
}

Value* Graph::add_input(std::string_view name, ValueType type) {
  auto value = std::make_unique<Value>();
  value->name_ = unique_name(name);
  value->set_type(std::move(type));
  value->index_ = inputs_.size();
  value->graph_ = this;
  names_[value->name_] = value.get();
  inputs_.push_back(value.get());
  owned_inputs_.push_back(std::move(value));
  return inputs_.back();
}

void Graph::erase_input(Value* input) {
  if (input->graph_ != this || input->producer_ != nullptr)
    throw InternalError("value %" + input->name_ + " is no input of this graph");
  if (!input->uses_.empty() || is_output(input))
    throw InternalError("graph input %" + input->name_ + " is still used, it can't be erased");
  const auto index = static_cast<std::ptrdiff_t>(input->index_);
  names_.erase(input->name_);
  inputs_.erase(inputs_.begin() + index);
  owned_inputs_.erase(owned_inputs_.begin() + index);
  for (size_t i = static_cast<size_t>(index); i < inputs_.size(); ++i) inputs_[i]->index_ = i;
}

void Graph::reorder_inputs(std::span<Value* const> order) {
  if (order.size() != inputs_.size() || !std::is_permutation(order.begin(), order.end(), inputs_.begin()))
    throw InternalError("the new order of graph inputs does not name each of them once");
  inputs_.assign(order.begin(), order.end());
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->index_ = i;
  // erase_input relies on both lists having one order.
  std::sort(owned_inputs_.begin(), owned_inputs_.end(),
            [](const auto& a, const auto& b) { return a->index() < b->index(); });
}

bool Graph::is_output(const Value* value) const {
  return std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end();
}

Node* Graph::insert(Node* before, std::string_view op, std::vector<NamedArgument> arguments,
                    std::vector<ValueType> output_types, std::string_view name) {
  auto owned = std::make_unique<Node>();
  Node* node = owned.get();
  node->schema_ = &get_schema(op);
  node->graph_ = this;
  const auto position = before == nullptr ? nodes_.end() : before->position_;
  try {
    for (auto& argument : arguments) node->set(argument.name, std::move(argument.value));
  } catch (...) {
    for (size_t i = 0; i < node->arguments_.size(); ++i) remove_uses(node, i);
    throw;
  }
  node->position_ = nodes_.insert(position, std::move(owned));
  add_outputs(node, std::move(output_types), name);
  return node;
}

void Graph::add_outputs(Node* node, std::vector<ValueType> types, std::string_view name) {
  if (!node->outputs_.empty()) throw InternalError("op '" + node->op() + "' has its outputs already");
  std::string base(name.empty() ? short_name(*node->schema_) : name);
  const bool several = types.size() > 1;
  while (several && names_.contains(base + "_0"))
    base = std::string(name.empty() ? short_name(*node->schema_) : name) + "_" + std::to_string(++next_suffix_[base]);
  for (size_t i = 0; i < types.size(); ++i) {
    auto value = std::make_unique<Value>();
    value->name_ = unique_name(several ? base + "_" + std::to_string(i) : base);
    value->set_type(std::move(types[i]));
    value->producer_ = node;
    value->index_ = i;
    value->graph_ = this;
    names_[value->name_] = value.get();
    node->outputs_.push_back(value.get());
    node->owned_.push_back(std::move(value));
  }
}

void Graph::erase(Node* node) {
  for (const auto* output : node->outputs_)
    if (!output->uses_.empty() || is_output(output))
      throw InternalError("op '" + node->op() + "' can't be erased: its output %" + output->name_ + " is still used");
  for (size_t i = 0; i < node->arguments_.size(); ++i) remove_uses(node, i);
  for (const auto* output : node->outputs_) names_.erase(output->name_);
  nodes_.erase(node->position_);
}

void Graph::move_before(Node* node, Node* before) {
  if (node == before) return;
  nodes_.splice(before == nullptr ? nodes_.end() : before->position_, nodes_, node->position_);
}

void Graph::replace_all_uses(Value* from, Value* to) {
  if (from == to) return;
  if (to->graph_ != this || from->graph_ != this)
    throw InternalError("values %" + from->name_ + " and %" + to->name_ + " are of different graphs");
  for (const Use& use : from->uses_) {
    Argument& argument = use.node->arguments_[use.argument].value;
    if (auto* values = std::get_if<Values>(&argument)) {
      (*values)[use.element] = to;
    } else {
      argument = to;
    }
    to->uses_.push_back(use);
  }
  from->uses_.clear();
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

void Graph::rename(Value* value, std::string_view name) {
  if (value->name_ == name) return;
  // Copied first: `name` may be a view into the value's own name.
  const std::string wanted(name);
  names_.erase(value->name_);
  value->name_ = unique_name(wanted);
  names_[value->name_] = value;
}

Value* Graph::find_value(std::string_view name) const {
  const auto found = names_.find(std::string(name));
  return found == names_.end() ? nullptr : found->second;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  std::unordered_map<const Value*, Value*> values;
  const auto copy_value = [&](const Value& value, Node* producer) {
    auto copied = std::make_unique<Value>();
    copied->name_ = value.name_;
    copied->type_ = value.type_;
    copied->producer_ = producer;
    copied->index_ = value.index_;
    copied->graph_ = copy.get();
    copy->names_[copied->name_] = copied.get();
    values[&value] = copied.get();
    return copied;
  };
  for (const auto* input : inputs_) {
    copy->owned_inputs_.push_back(copy_value(*input, nullptr));
    copy->inputs_.push_back(copy->owned_inputs_.back().get());
  }
  for (const auto& node : nodes_) {
    auto& copied = copy->nodes_.emplace_back(std::make_unique<Node>());
    copied->schema_ = node->schema_;
    copied->graph_ = copy.get();
    copied->module_path = node->module_path;
    copied->source = node->source;
    copied->position_ = std::prev(copy->nodes_.end());
    copied->arguments_ = node->arguments_;
    for (size_t i = 0; i < copied->arguments_.size(); ++i) {
      map_values(copied->arguments_[i].value, [&](Value* value) {
        const auto found = values.find(value);
        if (found == values.end())
          throw InternalError("value %" + value->name() + " is read before it is defined by '" + node->op() + "'");
        return found->second;
      });
      copy->add_uses(copied.get(), i);
    }
    for (const auto* output : node->outputs_) {
      copied->owned_.push_back(copy_value(*output, copied.get()));
      copied->outputs_.push_back(copied->owned_.back().get());
    }
  }
  for (const auto* output : outputs_) copy->outputs_.push_back(values.at(output));
  copy->next_suffix_ = next_suffix_;
  return copy;
}

}  // namespace transporters

// The graph: ATen operators in execution order, functional (no op writes to its inputs), with schema-named arguments.
//
// A Graph owns its nodes and their values; Node* and Value* stay valid until that node is erased. Arguments that equal
// the schema's default are not stored, so that one computation has one form; reading them gives the default back.
// Ops with a list result (split, unbind) have one output per element.
#pragma once

#include <functional>
#include <initializer_list>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transporters/graph/argument.h"
#include "transporters/graph/schema.h"
#include "transporters/graph/value.h"

namespace transporters {

class Node {
 public:
  const OpSchema& schema() const { return *schema_; }
  const std::string& op() const { return schema_->name; }
  bool is(std::string_view op) const { return schema_->name == op; }
  Graph& graph() const { return *graph_; }

  // Stored arguments, in schema order.
  std::span<const NamedArgument> arguments() const { return arguments_; }
  // The argument, or the schema's default. get throws InternalError when the schema has no such argument or it has no
  // default and was not given; try_get returns null.
  const Argument& get(std::string_view name) const;
  const Argument* try_get(std::string_view name) const;
  bool is_none(std::string_view name) const;
  // Typed reads: throw Error naming the op and the argument when it holds another type.
  Value* tensor(std::string_view name) const;
  Value* tensor_or_null(std::string_view name) const;  // null for None
  const Values& tensors(std::string_view name) const;
  Expr size(std::string_view name) const;        // int or SymInt
  int64_t integer(std::string_view name) const;  // a constant int
  std::optional<int64_t> integer_or_none(std::string_view name) const;
  std::vector<Expr> sizes(std::string_view name) const;  // int[] or SymInt[]; a single int gives one element
  std::vector<int64_t> integers(std::string_view name) const;
  double real(std::string_view name) const;  // float, or int converted
  std::optional<double> real_or_none(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::string string(std::string_view name) const;
  ScalarType dtype(std::string_view name) const;
  std::optional<ScalarType> dtype_or_none(std::string_view name) const;

  // Sets or replaces an argument; a value equal to the schema's default removes it.
  void set(std::string_view name, Argument value);

  std::span<Value* const> outputs() const { return outputs_; }
  // The only output; throws InternalError when there are none or several.
  Value* output() const;
  // Calls f(Value*) for each value read (null list elements skipped), in argument order.
  void for_each_input(const std::function<void(Value*)>& f) const;

  // Dotted path of the module that ran the op ("model.layers.0.self_attn"), and the user's source lines if known.
  std::string module_path;
  std::string source;

  Node* next() const;  // null at the end
  Node* prev() const;  // null at the start

 private:
  friend class Graph;
  const OpSchema* schema_ = nullptr;
  Graph* graph_ = nullptr;
  std::vector<NamedArgument> arguments_;
  std::vector<Value*> outputs_;
  std::list<std::unique_ptr<Node>>::iterator position_;
  std::vector<std::unique_ptr<Value>> owned_;
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  std::unique_ptr<Graph> clone() const;

  // Adds a graph input at the end. A taken name gets a numeric suffix ("x_1").
  Value* add_input(std::string_view name, ValueType type);
  // Removes an input without uses; throws InternalError otherwise.
  void erase_input(Value* input);
  // Puts the inputs into the given order, which must name each of them once.
  void reorder_inputs(std::span<Value* const> order);
  std::span<Value* const> inputs() const { return inputs_; }

  // Appends an output. A value can be several outputs.
  void add_output(Value* value) { outputs_.push_back(value); }
  void set_output(size_t index, Value* value) { outputs_.at(index) = value; }
  void erase_output(size_t index) { outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(index)); }
  std::span<Value* const> outputs() const { return outputs_; }
  bool is_output(const Value* value) const;

  // Inserts a node before `before` (null: at the end). Output names derive from the op ("aten::add.Tensor" -> "add",
  // "add_1", ...) unless `name` is given. Throws Error for an unknown op or argument name.
  Node* insert(Node* before, std::string_view op, std::vector<NamedArgument> arguments,
               std::vector<ValueType> output_types, std::string_view name = "");
  Node* append(std::string_view op, std::vector<NamedArgument> arguments, std::vector<ValueType> output_types,
               std::string_view name = "") {
    return insert(nullptr, op, std::move(arguments), std::move(output_types), name);
  }
  // Gives a node that was inserted without outputs its outputs: for types that are inferred from the node itself.
  void add_outputs(Node* node, std::vector<ValueType> types, std::string_view name = "");
  // Erases a node whose outputs have no uses and are no graph outputs; throws InternalError otherwise.
  void erase(Node* node);
  // Moves a node before another (null: to the end).
  void move_before(Node* node, Node* before);

  // Every use of `from`, graph outputs included, reads `to` afterwards.
  void replace_all_uses(Value* from, Value* to);
  // Gives a value a name; a taken one gets a suffix.
  void rename(Value* value, std::string_view name);

  // Iteration in execution order. Erasing the node the iterator stands on is allowed after stepping past it.
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Node;
    using difference_type = std::ptrdiff_t;
    using pointer = Node*;
    using reference = Node&;
    explicit iterator(std::list<std::unique_ptr<Node>>::const_iterator it) : it_(it) {}
    Node& operator*() const { return **it_; }
    Node* operator->() const { return it_->get(); }
    iterator& operator++() {
      ++it_;
      return *this;
    }
    iterator operator++(int) {
      auto old = *this;
      ++it_;
      return old;
    }
    bool operator==(const iterator&) const = default;

   private:
    std::list<std::unique_ptr<Node>>::const_iterator it_;
  };
  iterator begin() const { return iterator(nodes_.begin()); }
  iterator end() const { return iterator(nodes_.end()); }
  Node* front() const { return nodes_.empty() ? nullptr : nodes_.front().get(); }
  size_t size() const { return nodes_.size(); }
  // The value of that name, or null.
  Value* find_value(std::string_view name) const;

 private:
  friend class Node;
  std::string unique_name(std::string_view wanted);
  void add_uses(Node* node, size_t argument);
  void remove_uses(Node* node, size_t argument);
  // Arguments from `first` on have moved by `by` places in node->arguments(); their uses follow.
  void shift_uses(Node* node, size_t first, int by);

  std::list<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Value>> owned_inputs_;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::unordered_map<std::string, Value*> names_;
  std::unordered_map<std::string, int> next_suffix_;
};

}  // namespace transporters

// Types and values of the graph.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "transporters/symbolic/expr.h"

namespace transporters {

using ScalarType = c10::ScalarType;
using symbolic::Expr;

class Node;
class Graph;

// Tensor type: sizes may be symbolic. Every tensor lives on the CPU.
struct TensorType {
  ScalarType dtype = ScalarType::Float;
  std::vector<Expr> sizes;
  std::vector<Expr> strides;  // in elements; empty means contiguous

  size_t rank() const { return sizes.size(); }
  // No strides, or those of a row-major tensor; the stride of a dimension of size 1 does not matter.
  bool is_contiguous() const;
  bool operator==(const TensorType&) const = default;
};

// A number that the graph computes (item, sym_size): `expr` is its value, often a fresh unbacked symbol.
struct NumberType {
  Expr expr;
  bool operator==(const NumberType&) const = default;
};

using ValueType = std::variant<TensorType, NumberType>;

// One use of a value: `node` reads it in node->arguments()[argument], at `element` of a list (0 otherwise).
struct Use {
  Node* node;
  size_t argument;
  size_t element;
  bool operator==(const Use&) const = default;
};

// A value is made by one node, or is a graph input (producer() is null). Owned by its Graph; an address stays valid
// until the producing node is erased.
class Value {
 public:
  const std::string& name() const { return name_; }
  Node* producer() const { return producer_; }
  size_t index() const { return index_; }                 // among the producer's outputs, or the graph's inputs
  const std::vector<Use>& uses() const { return uses_; }  // graph outputs are not uses; see Graph::is_output
  Graph& graph() const { return *graph_; }

  const ValueType& type() const { return type_; }
  bool is_tensor() const { return std::holds_alternative<TensorType>(type_); }
  // Throws InternalError when this is not a tensor.
  const TensorType& tensor() const;
  ScalarType dtype() const { return tensor().dtype; }
  const std::vector<Expr>& sizes() const { return tensor().sizes; }
  size_t rank() const { return tensor().rank(); }
  // Strides that are contiguous anyway are dropped, so that one type has one form.
  void set_type(ValueType type);

 private:
  friend class Graph;
  friend class Node;
  std::string name_;
  ValueType type_;
  Node* producer_ = nullptr;
  size_t index_ = 0;
  Graph* graph_ = nullptr;
  std::vector<Use> uses_;
};

}  // namespace transporters

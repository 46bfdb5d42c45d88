// Symbolic sizes as nodes. Our graphs compute with expressions; in a .pt2 file an argument is a constant or the name of
// a node, so each expression becomes a chain of nodes over aten.sym_size, Python's operators and torch.sym_*, made
// where it is first needed, each once. Names of operators and their arguments are those of
// torch/_export/serde/serialize.py.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "transporters/dynamo/names.h"
#include "transporters/graph/program.h"
#include "transporters/graph/symbol_sources.h"

namespace transporters::dynamo {

using Json = nlohmann::ordered_json;

// The collections of schema.Graph while they grow.
struct GraphJson {
  Json inputs = Json::array();
  Json outputs = Json::array();
  Json nodes = Json::array();
  Json tensor_values = Json::object();
  Json sym_int_values = Json::object();
  Json sym_float_values = Json::object();
  Json sym_bool_values = Json::object();
};

// A float as the schema has it: infinities and NaN are words.
Json real_json(double value);

class SizeNodes {
 public:
  SizeNodes(const Program& program, const SymbolNames& symbols, ValueNames& names, GraphJson& graph);

  // schema.Argument for a number; makes the nodes that it needs.
  Json argument(const Expr& expr);
  Json argument(const std::vector<Expr>& exprs);
  // schema.Argument that names a number which the graph has already.
  Json argument(const Value* number) const;
  // schema.SymInt of a size inside a type; makes no nodes.
  Json size(const Expr& expr) const;
  // Declares a number that an input or an op's output brings, and returns its schema.Argument.
  Json define(const Value* number);
  // Nodes made from now on carry this metadata.
  void set_metadata(Json metadata) { metadata_ = std::move(metadata); }

 private:
  std::string emit(const Expr& expr);
  std::string emit_symbol(const std::string& symbol);
  std::string emit_sum(const Expr& expr);
  std::string emit_product(const Expr& expr);
  // f(f(a, b), c) over the operands.
  std::string emit_chain(const char* target, const std::vector<Expr>& operands,
                         Expr (*combine)(const Expr&, const Expr&));
  std::string call(const char* target, const std::vector<std::pair<const char*, Json>>& inputs, const Expr& value);
  bool reads_boolean(const Expr& expr) const;
  void declare(const std::string& name, const Expr& value);
  // schema.Argument of a node's name by the type of its value.
  static Json named(const std::string& name, symbolic::Type type);
  Json value_json(const Expr& expr) const;

  const Program& program_;
  const SymbolNames& symbols_;
  ValueNames& names_;
  GraphJson& graph_;
  std::map<std::string, SymbolSource> sources_;
  std::unordered_map<Expr, std::string> made_;
  std::unordered_map<const Value*, std::string> numbers_;
  Json metadata_ = Json::object();
};

}  // namespace transporters::dynamo

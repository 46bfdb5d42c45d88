#include "transporters/onnx/runtime_types.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace transporters::onnx {
namespace {

// Types by letter: f float, d double, h float16, b bfloat16, l int64, i int32, s int16, c int8, u uint8, t uint16,
// n uint32, m uint64, o bool.
char letter(DataType type) {
  switch (type) {
    case DataType::FLOAT:
      return 'f';
    case DataType::DOUBLE:
      return 'd';
    case DataType::FLOAT16:
      return 'h';
    case DataType::BFLOAT16:
      return 'b';
    case DataType::INT64:
      return 'l';
    case DataType::INT32:
      return 'i';
    case DataType::INT16:
      return 's';
    case DataType::INT8:
      return 'c';
    case DataType::UINT8:
      return 'u';
    case DataType::UINT16:
      return 't';
    case DataType::UINT32:
      return 'n';
    case DataType::UINT64:
      return 'm';
    case DataType::BOOL:
      return 'o';
    default:
      return '\0';
  }
}

struct Row {
  std::string_view op;
  std::string_view types;  // with kernels
};

// ONNX Runtime 1.32, CPU provider, opsets 18 to 24: found by loading a model of each op in each type. Ops without a row
// only move elements or take every type. float16 counts where the runtime inserts the casts itself. Sorted by op.
constexpr Row kRows[] = {
    {"Abs", "fdhliscutnm"},
    {"Acos", "fh"},
    {"Acosh", "fh"},
    {"Add", "fdhliscutnm"},
    {"ArgMax", "fdhlicu"},
    {"ArgMin", "fdhlicu"},
    {"Asin", "fh"},
    {"Asinh", "fh"},
    {"Atan", "fh"},
    {"Atanh", "fh"},
    {"AveragePool", "fh"},
    {"BatchNormalization", "fh"},
    {"BitwiseAnd", "liscutnm"},
    {"BitwiseNot", "liscutnm"},
    {"BitwiseOr", "liscutnm"},
    {"BitwiseXor", "liscutnm"},
    {"Ceil", "fdh"},
    {"Celu", "f"},
    {"Clip", "fdhlicunm"},
    {"Compress", "fdhliscutnmo"},
    {"Conv", "fh"},
    {"ConvTranspose", "fh"},
    {"Cos", "fdh"},
    {"Cosh", "fh"},
    {"CumSum", "fdhli"},
    {"DepthToSpace", "fdhcu"},
    {"Div", "fdhliscutnm"},
    {"Einsum", "fdhli"},
    {"Elu", "fh"},
    {"Equal", "fdhliscutnmo"},
    {"Erf", "fh"},
    {"Exp", "fdh"},
    {"Expand", "fdhliscutnmo"},
    {"Floor", "fdh"},
    {"GRU", "fdh"},
    {"Gelu", "fh"},
    {"Gemm", "fdh"},
    {"Greater", "fdhliscutnm"},
    {"GreaterOrEqual", "fdhliscutnm"},
    {"GridSample", "fh"},
    {"HardSigmoid", "fh"},
    {"HardSwish", "fh"},
    {"InstanceNormalization", "fh"},
    {"LRN", "f"},
    {"LSTM", "fdh"},
    {"LeakyRelu", "fh"},
    {"Less", "fdhliscutnm"},
    {"LessOrEqual", "fdhliscutnm"},
    {"Log", "fdh"},
    {"LogSoftmax", "fdh"},
    {"MatMul", "fdhlinm"},
    {"Max", "fdhlicunm"},
    {"MaxPool", "fdhcu"},
    {"Min", "fdhlicunm"},
    {"Mish", "fh"},
    {"Mod", "fdhliscutnm"},
    {"Mul", "fdhliscutnm"},
    {"Multinomial", "fh"},
    {"Neg", "fdhlisc"},
    {"NonZero", "fhliuo"},
    {"PRelu", "fh"},
    {"Pad", "fdhlicunmo"},
    {"Pow", "fdhli"},
    {"RMSNormalization", "fdh"},
    {"RNN", "fh"},
    {"Range", "fdlis"},
    {"Reciprocal", "fdh"},
    {"ReduceL1", "fdhli"},
    {"ReduceL2", "fdhli"},
    {"ReduceMax", "fdhlicu"},
    {"ReduceMean", "fdhli"},
    {"ReduceMin", "fdhlicu"},
    {"ReduceProd", "fdhli"},
    {"ReduceSum", "fdhli"},
    {"Relu", "fdhic"},
    {"Resize", "fhicu"},
    {"Round", "fdh"},
    {"Selu", "fh"},
    {"Shrink", "fdhliscutnm"},
    {"Sigmoid", "fdh"},
    {"Sign", "fdhbliscutnm"},
    {"Sin", "fdh"},
    {"Sinh", "fh"},
    {"Size", "fdhliscutnmo"},
    {"Softmax", "fdh"},
    {"Softplus", "fh"},
    {"Softsign", "fh"},
    {"Sqrt", "fdh"},
    {"Sub", "fdhliscutnm"},
    {"Tan", "fh"},
    {"Tanh", "fdh"},
    {"Tile", "fdhliscutnmo"},
    {"TopK", "fdhliscu"},
    {"Trilu", "fdhlio"},
    {"Unique", "fdhlc"},
    {"Where", "fdhliun"},
};

// Candidates in order of preference: first those that hold every value, then the nearest.
std::string_view wider(char type) {
  switch (type) {
    case 'o':
      return "uilf";
    case 'c':
    case 's':
    case 'u':
    case 't':
      return "ilf";
    case 'i':
    case 'n':
      return "ldf";
    case 'm':
      return "lfd";
    case 'l':
      return "df";
    case 'h':
    case 'b':
    case 'd':
      return "f";
    default:
      return "";
  }
}

DataType type_of(char type) {
  switch (type) {
    case 'd':
      return DataType::DOUBLE;
    case 'l':
      return DataType::INT64;
    case 'i':
      return DataType::INT32;
    case 'u':
      return DataType::UINT8;
    default:
      return DataType::FLOAT;
  }
}

// Integers must wrap where torch's do; reals that are rounded less are welcome.
bool may_stay_wide(DataType type) {
  return type == DataType::BFLOAT16 || type == DataType::FLOAT16 || type == DataType::DOUBLE || type == DataType::BOOL;
}

std::vector<size_t> all(size_t count) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

}  // namespace

std::optional<DataType> computed_type(std::string_view op, DataType type) {
  const auto row = std::lower_bound(std::begin(kRows), std::end(kRows), op,
                                    [](const Row& row, std::string_view name) { return row.op < name; });
  const char wanted = letter(type);
  if (row == std::end(kRows) || row->op != op || wanted == '\0') return std::nullopt;
  if (row->types.find(wanted) != std::string_view::npos) return std::nullopt;
  for (const char candidate : wider(wanted)) {
    if (row->types.find(candidate) != std::string_view::npos) return type_of(candidate);
  }
  return std::nullopt;
}

TypedPlaces typed_places(const Node& node) {
  static const std::map<std::string_view, TypedPlaces> kPlaces = {
      {"ArgMax", {{0}, {}}},
      {"ArgMin", {{0}, {}}},
      {"Compress", {{0}, {0}}},
      {"CumSum", {{0}, {0}}},
      {"Equal", {{0, 1}, {}}},
      {"Expand", {{0}, {0}}},
      {"GRU", {{0, 1, 2, 3, 5}, {0, 1}}},
      {"Greater", {{0, 1}, {}}},
      {"GreaterOrEqual", {{0, 1}, {}}},
      {"LSTM", {{0, 1, 2, 3, 5, 6}, {0, 1, 2}}},
      {"Less", {{0, 1}, {}}},
      {"LessOrEqual", {{0, 1}, {}}},
      {"MaxPool", {{0}, {0}}},
      {"Multinomial", {{0}, {}}},
      {"NonZero", {{0}, {}}},
      {"Pad", {{0, 2}, {0}}},
      {"RNN", {{0, 1, 2, 3, 5}, {0, 1}}},
      {"ReduceL1", {{0}, {0}}},
      {"ReduceL2", {{0}, {0}}},
      {"ReduceMax", {{0}, {0}}},
      {"ReduceMean", {{0}, {0}}},
      {"ReduceMin", {{0}, {0}}},
      {"ReduceProd", {{0}, {0}}},
      {"ReduceSum", {{0}, {0}}},
      {"Resize", {{0}, {0}}},
      {"Size", {{0}, {}}},
      {"Tile", {{0}, {0}}},
      {"TopK", {{0}, {0}}},
      {"Trilu", {{0}, {0}}},
      {"Unique", {{0}, {0}}},
      {"Where", {{1, 2}, {0}}},
  };
  const auto entry = kPlaces.find(node.op);
  return entry != kPlaces.end() ? entry->second : TypedPlaces{all(node.inputs().size()), all(node.outputs().size())};
}

bool convert_types(Model& model) {
  bool changed = false;
  // Values already known in a wider type, so that a chain of converted ops rounds only where something else reads it.
  std::map<std::pair<const Value*, DataType>, Value*> converted;
  model.graph->for_each_graph([&](Graph& graph) {
    for (Node* node = graph.front(); node != nullptr; node = node->next()) {
      if (!node->domain.empty()) continue;
      const TypedPlaces places = typed_places(*node);
      const Value* first = places.inputs.empty() ? nullptr : node->input(places.inputs[0]);
      if (first == nullptr) continue;
      const DataType type = first->type;
      const auto computed = computed_type(node->op, type);
      if (!computed) continue;
      changed = true;
      for (const size_t place : places.inputs) {
        Value* input = node->input(place);
        if (input == nullptr || input->type != type) continue;
        Value*& wide = converted[{input, *computed}];
        const bool is_visible = wide && (&wide->graph() == &graph || wide->graph().parent() == nullptr);
        if (!is_visible) {
          Node* cast =
              graph.insert(node, "Cast", {input}, {{"to", static_cast<int64_t>(*computed)}}, {input->name() + "/Cast"});
          cast->name = cast->output()->name();
          wide = cast->output();
          wide->type = *computed;
          wide->shape = input->shape;
        }
        node->set_input(place, wide);
      }
      for (const size_t place : places.outputs) {
        if (place >= node->outputs().size() || node->output(place)->type != type) continue;
        // The node's output is now the wide one; a Cast takes over its name and its readers.
        Value* wide = node->output(place);
        const std::string name = wide->name();
        Node* cast = graph.insert(node->next(), "Cast", {wide}, {{"to", static_cast<int64_t>(type)}}, {name + "/Cast"});
        cast->name = cast->output()->name();
        Value* narrow = cast->output();
        narrow->type = type;
        narrow->shape = wide->shape;
        graph.replace_all_uses(wide, narrow);
        cast->set_input(0, wide);
        wide->type = *computed;
        graph.rename(wide, name + "/" + std::string(name_of(*computed)));
        graph.rename(narrow, name);
        if (may_stay_wide(type)) converted[{narrow, *computed}] = wide;
      }
    }
  });
  return changed;
}

}  // namespace transporters::onnx

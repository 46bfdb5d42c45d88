#include <cstring>
#include <sstream>

#include "transporters/onnx/model.h"

namespace transporters::onnx {
namespace {

void print_list(std::ostream& out, const auto& list, const auto& print) {
  out << "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out << ", ";
    print(list[i]);
  }
  out << "]";
}

std::string type_of(const Value& value) {
  if (!value.other_type.empty()) return "?";
  std::ostringstream out;
  out << name_of(value.type);
  if (value.shape) {
    print_list(out, *value.shape, [&](const Dim& dim) {
      if (dim.is_known()) {
        out << dim.value;
      } else {
        out << (dim.param.empty() ? "?" : dim.param);
      }
    });
  }
  return out.str();
}

template <typename T>
void print_elements(std::ostream& out, const TensorData& data) {
  const auto count = static_cast<size_t>(data.numel());
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, static_cast<const char*>(data.data) + i * sizeof(T), sizeof(T));
    out << (i ? ", " : "") << +element;
  }
}

// The elements of a small constant, or nothing.
void print_contents(std::ostream& out, const Tensor& tensor) {
  const TensorData& data = tensor.data;
  if (data.numel() > 16 || !data.is_contiguous() || !to_scalar_type(tensor.type)) return;
  const bool is_scalar = tensor.dims.empty();
  out << " = " << (is_scalar ? "" : "[");
  switch (data.dtype) {
    case ScalarType::Float:
      print_elements<float>(out, data);
      break;
    case ScalarType::Double:
      print_elements<double>(out, data);
      break;
    case ScalarType::Long:
      print_elements<int64_t>(out, data);
      break;
    case ScalarType::Int:
      print_elements<int32_t>(out, data);
      break;
    case ScalarType::Bool:
      print_elements<uint8_t>(out, data);
      break;
    default:
      out << "...";
  }
  out << (is_scalar ? "" : "]");
}

void print_graph(std::ostream& out, const Graph& graph, const std::string& indent);

void print_attribute(std::ostream& out, const AttributeValue& value, const std::string& indent) {
  if (const auto* i = std::get_if<int64_t>(&value)) {
    out << *i;
  } else if (const auto* f = std::get_if<float>(&value)) {
    out << *f;
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    out << '"' << *s << '"';
  } else if (const auto* t = std::get_if<Tensor>(&value)) {
    out << name_of(t->type);
    print_list(out, t->dims, [&](int64_t dim) { out << dim; });
    print_contents(out, *t);
  } else if (const auto* g = std::get_if<std::shared_ptr<Graph>>(&value)) {
    print_graph(out, **g, indent + "  ");
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    print_list(out, *ints, [&](int64_t element) { out << element; });
  } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
    print_list(out, *floats, [&](float element) { out << element; });
  } else if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
    print_list(out, *strings, [&](const std::string& element) { out << '"' << element << '"'; });
  } else {
    out << "...";
  }
}

void print_graph(std::ostream& out, const Graph& graph, const std::string& indent) {
  const auto names = [&](std::span<Value* const> values, bool with_types) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) out << ", ";
      if (values[i] == nullptr || values[i]->name().empty()) {
        out << "_";
      } else {
        out << values[i]->name();
        if (with_types) out << ": " << type_of(*values[i]);
        if (with_types && values[i]->initializer) print_contents(out, *values[i]->initializer);
      }
    }
  };
  out << "graph(";
  names(graph.inputs(), true);
  out << ") {\n";
  for (const auto& value : graph.initializers()) {
    out << indent << "  " << value->name() << ": " << type_of(*value);
    print_contents(out, *value->initializer);
    out << "\n";
  }
  for (const auto& node : graph.nodes()) {
    out << indent << "  ";
    names(node->outputs(), false);
    out << " = " << (node->domain.empty() ? "" : node->domain + "::") << node->op << "(";
    names(node->inputs(), false);
    for (size_t i = 0; i < node->attributes.size(); ++i) {
      out << (i || !node->inputs().empty() ? ", " : "") << node->attributes[i].name << "=";
      print_attribute(out, node->attributes[i].value, indent + "  ");
    }
    out << ")\n";
  }
  out << indent << "  return ";
  names(graph.outputs(), true);
  out << "\n" << indent << "}";
}

}  // namespace

std::string Model::str() const {
  std::ostringstream out;
  for (const auto& [domain, version] : opsets)
    out << "opset " << (domain.empty() ? "" : domain + " ") << version << "\n";
  print_graph(out, *graph, "");
  out << "\n";
  return out.str();
}

}  // namespace transporters::onnx

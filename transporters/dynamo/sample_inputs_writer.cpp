#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "transporters/dynamo/call_spec.h"
#include "transporters/dynamo/pickle_writer.h"
#include "transporters/dynamo/sample_inputs.h"

namespace transporters::dynamo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 100;

// Raised inside when a value has no known pickle form; the record is left empty then.
struct Unknown {};

class InputWriter {
 public:
  explicit InputWriter(const Program& program) : program_(program) {
    for (const ExampleInput& example : program.example_inputs) examples_.emplace(example.path, &example.data);
    for (const InputSpec& input : program.inputs)
      if (input.kind == InputKind::UserInput) inputs_.push_back(&input);
  }

  std::string write() {
    value(input_spec(program_));
    return pickle_.archive();
  }

 private:
  void value(const TreeSpec& spec) {
    if (spec.is_leaf()) return leaf(*inputs_[next_++]);
    if (spec.type == "builtins.tuple") {
      pickle_.begin();
      for (const TreeSpec& child : spec.children) value(child);
      return pickle_.end_tuple();
    }
    if (spec.type == "builtins.list") {
      pickle_.begin_list();
      for (const TreeSpec& child : spec.children) value(child);
      return pickle_.end_list();
    }
    const Json context = Json::parse(spec.context, nullptr, /*allow_exceptions=*/false);
    if (spec.type == "builtins.dict" && context.is_array() && context.size() == spec.children.size()) {
      pickle_.begin_dict();
      for (size_t i = 0; i < spec.children.size(); ++i) {
        plain(context[i], 0);
        value(spec.children[i]);
      }
      return pickle_.end_dict();
    }
    if (!context.is_object() || context.value("_t", Json()) != "obj") throw Unknown();
    // An object described by its context: its leaves come in order.
    leaves_.clear();
    for (const TreeSpec& child : spec.children) {
      if (!child.is_leaf()) throw Unknown();
      leaves_.push_back(inputs_[next_++]);
    }
    plain(context, 0);
  }

  void leaf(const InputSpec& input) {
    if (input.value == nullptr)
      return std::visit([this](const auto& constant) { write_constant(constant); }, input.constant);
    if (!input.value->is_tensor()) {
      const auto number = std::get<NumberType>(input.value->type()).expr.evaluate([this](std::string_view symbol) {
        const auto hint = program_.hints.find(std::string(symbol));
        return hint == program_.hints.end() ? std::nullopt : std::optional(hint->second);
      });
      if (!number) throw Unknown();
      return std::visit([this](auto known) { write_constant(known); }, *number);
    }
    const auto found = examples_.find(input.target);
    if (found == examples_.end()) throw Unknown();
    pickle_.tensor(*found->second);
  }

  void write_constant(const None&) { pickle_.none(); }
  void write_constant(int64_t value) { pickle_.integer(value); }
  void write_constant(bool value) { pickle_.boolean(value); }
  void write_constant(double value) { pickle_.real(value); }
  void write_constant(const std::string& value) { pickle_.string(value); }
  void write_constant(const Expr& value) {
    if (!value.as_integer()) throw Unknown();
    pickle_.integer(*value.as_integer());
  }
  template <typename T>
  void write_constant(const T&) {
    throw Unknown();
  }

  // A class by the "module:name" of transformers' contexts.
  void class_named(const Json& path) {
    if (!path.is_string()) throw Unknown();
    const auto& name = path.get_ref<const std::string&>();
    const auto colon = name.find(':');
    // Protocol 2 has no names inside classes.
    if (colon == std::string::npos || name.find('.', colon) != std::string::npos ||
        name.find('\n') != std::string::npos)
      throw Unknown();
    pickle_.global(name.substr(0, colon), name.substr(colon + 1));
  }

  // A value of transformers' contexts (transformers.exporters.exporter_dynamo): JSON, with objects tagged by "_t".
  void plain(const Json& json, int depth) {
    if (depth > kMaxDepth) throw Unknown();
    if (json.is_null()) return pickle_.none();
    if (json.is_boolean()) return pickle_.boolean(json.get<bool>());
    if (json.is_number_integer()) return pickle_.integer(json.get<int64_t>());
    if (json.is_number()) return pickle_.real(json.get<double>());
    if (json.is_string()) return pickle_.string(json.get<std::string>());
    if (json.is_array()) {
      pickle_.begin_list();
      for (const Json& element : json) plain(element, depth + 1);
      return pickle_.end_list();
    }
    if (!json.contains("_t")) return dictionary(json, depth);
    const std::string tag = json["_t"].is_string() ? json["_t"].get<std::string>() : "";
    if (tag == "tensor" || tag == "sym") {
      const Json& index = json.at("i");
      if (!index.is_number_unsigned() || index.get<size_t>() >= leaves_.size()) throw Unknown();
      return leaf(*leaves_[index.get<size_t>()]);
    }
    if (tag == "device") {
      pickle_.global("torch", "device");
      pickle_.begin();
      plain(json.at("s"), depth + 1);
      pickle_.end_tuple();
      return pickle_.call();
    }
    if (tag == "dtype" && json.at("n").is_string()) return pickle_.global("torch", json.at("n").get<std::string>());
    if (tag == "type") return class_named(json.at("p"));
    if (tag == "items") {
      pickle_.begin_dict();
      for (const Json& item : json.at("v")) {
        plain(item.at(0), depth + 1);
        plain(item.at(1), depth + 1);
      }
      return pickle_.end_dict();
    }
    if (tag == "obj" && json.at("s").is_object()) {
      class_named(json.at("p"));
      pickle_.begin();
      pickle_.end_tuple();
      pickle_.make_object();
      dictionary(json.at("s"), depth);
      return pickle_.set_state();
    }
    throw Unknown();
  }

  void dictionary(const Json& json, int depth) {
    pickle_.begin_dict();
    for (const auto& [key, element] : json.items()) {
      pickle_.string(key);
      plain(element, depth + 1);
    }
    pickle_.end_dict();
  }

  const Program& program_;
  std::map<std::string, const TensorData*> examples_;
  std::vector<const InputSpec*> inputs_;
  size_t next_ = 0;
  std::vector<const InputSpec*> leaves_;  // of the object being written
  PickleWriter pickle_;
};

}  // namespace

std::string write_sample_inputs(const Program& program) {
  try {
    return InputWriter(program).write();
  } catch (const Unknown&) {
    return "";
  } catch (const Json::exception&) {  // a context without the members that its tag promises
    return "";
  }
}

}  // namespace transporters::dynamo

#include "transporters/onnx/reader.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <protozero/pbf_writer.hpp>
#include <random>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/error.h"
#include "transporters/onnx/writer.h"

using namespace transporters;
using onnx::DataType;
using onnx::Model;
namespace proto = onnx::proto;
namespace fs = std::filesystem;

namespace {

protozero::pbf_tag_type tag(auto field) { return static_cast<protozero::pbf_tag_type>(field); }

std::string graph_of(const std::function<void(protozero::pbf_writer&)>& fill) {
  std::string graph, model;
  protozero::pbf_writer writer(graph);
  fill(writer);
  protozero::pbf_writer outer(model);
  outer.add_int64(tag(proto::ModelProto::ir_version), 8);
  outer.add_message(tag(proto::ModelProto::graph), graph);
  return model;
}

std::string tensor_of(const std::function<void(protozero::pbf_writer&)>& fill, DataType type,
                      std::vector<int64_t> dims) {
  return graph_of([&](protozero::pbf_writer& graph) {
    protozero::pbf_writer tensor(graph, tag(proto::GraphProto::initializer));
    for (const int64_t dim : dims) tensor.add_int64(tag(proto::TensorProto::dims), dim);
    tensor.add_int32(tag(proto::TensorProto::data_type), static_cast<int32_t>(type));
    tensor.add_string(tag(proto::TensorProto::name), "w");
    fill(tensor);
  });
}

void external(protozero::pbf_writer& tensor, const std::string& location, const std::string& offset) {
  const auto entry = [&](const std::string& key, const std::string& value) {
    protozero::pbf_writer pair(tensor, tag(proto::TensorProto::external_data));
    pair.add_string(tag(proto::StringStringEntryProto::key), key);
    pair.add_string(tag(proto::StringStringEntryProto::value), value);
  };
  entry("location", location);
  entry("offset", offset);
  tensor.add_int32(tag(proto::TensorProto::data_location), 1);
}

std::string node(const std::string& input, const std::string& output) {
  std::string text;
  protozero::pbf_writer writer(text);
  writer.add_string(tag(proto::NodeProto::input), input);
  writer.add_string(tag(proto::NodeProto::output), output);
  writer.add_string(tag(proto::NodeProto::op_type), "Abs");
  return text;
}

}  // namespace

TEST_CASE("numbers in typed fields are read as their type") {
  const auto read = [](const std::string& bytes) {
    Model model = onnx::parse(bytes);
    return *model.graph->initializers()[0]->initializer;
  };
  const std::vector<float> floats = {1.5f, -2.0f};
  auto tensor =
      read(tensor_of([&](auto& t) { t.add_packed_float(4, floats.begin(), floats.end()); }, DataType::FLOAT, {2}));
  CHECK(std::memcmp(tensor.data.data, floats.data(), 8) == 0);
  const std::vector<int32_t> numbers = {-1, 300};
  tensor =
      read(tensor_of([&](auto& t) { t.add_packed_int32(5, numbers.begin(), numbers.end()); }, DataType::INT16, {2}));
  CHECK(static_cast<const int16_t*>(tensor.data.data)[0] == -1);
  CHECK(static_cast<const int16_t*>(tensor.data.data)[1] == 300);
  tensor = read(tensor_of([&](auto& t) { t.add_int64(7, -5); }, DataType::INT64, {}));
  CHECK(*static_cast<const int64_t*>(tensor.data.data) == -5);
  tensor = read(tensor_of(
      [&](auto& t) {
        t.add_int32(5, 0x21);
        t.add_int32(5, 0x03);
      },
      DataType::INT4, {3}));
  CHECK(tensor.data.sizes == std::vector<int64_t>{2});
}

TEST_CASE("what does not hold together is refused with the reason") {
  const auto message = [](const std::string& bytes) -> std::string {
    try {
      onnx::parse(bytes);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto none = [](auto&) {};
  CHECK_MESSAGE(message("") == "[onnx] not an ONNX model: it holds no graph", message(""));
  CHECK(message("version https://git-lfs.github.com/spec/v1").find("not an ONNX model") != std::string::npos);
  CHECK(message(tensor_of(none, DataType::FLOAT, {2})).find("holds 0 elements, its dimensions say 2") !=
        std::string::npos);
  CHECK(message(tensor_of([](auto& t) { t.add_bytes(9, "123"); }, DataType::FLOAT, {1})).find("holds 3 bytes") !=
        std::string::npos);
  CHECK(message(tensor_of(none, DataType::FLOAT, {-1})).find("impossible dimensions") != std::string::npos);
  CHECK(message(tensor_of(none, DataType::FLOAT, {int64_t{1} << 40, int64_t{1} << 40})).find("impossible") !=
        std::string::npos);
  CHECK(message(tensor_of(none, DataType::FLOAT, {0, int64_t{1} << 40, int64_t{1} << 40})).find("impossible") !=
        std::string::npos);
  CHECK(message(tensor_of(none, DataType::FLOAT, {int64_t{1} << 40, 0})) == "");
  CHECK(message(tensor_of(none, static_cast<DataType>(99), {1})).find("element type 99") != std::string::npos);
  CHECK(message(tensor_of([](auto& t) { external(t, "../secret", "0"); }, DataType::FLOAT, {1}))
            .find("outside the model's folder") != std::string::npos);
  CHECK(message(tensor_of([](auto& t) { external(t, "/etc/passwd", "0"); }, DataType::FLOAT, {1}))
            .find("outside the model's folder") != std::string::npos);
  CHECK(message(graph_of([](auto& g) { g.add_message(1, node("x", "y")); })).find("reads 'x'") != std::string::npos);
  CHECK(message(graph_of([](auto& g) {
          g.add_message(1, node("", "y"));
          g.add_message(1, node("", "y"));
        })).find("'y' is defined twice") != std::string::npos);
  CHECK(message(graph_of([](auto& g) { g.add_int32(1, 5); })).find("wire type") != std::string::npos);
}

TEST_CASE("a packed list may be empty") {
  const Model model = onnx::parse(graph_of([](auto& g) {
    std::string text = node("", "y");
    protozero::pbf_writer writer(text);
    protozero::pbf_writer attribute(writer, tag(proto::NodeProto::attribute));
    attribute.add_string(tag(proto::AttributeProto::name), "scales");
    attribute.add_int32(tag(proto::AttributeProto::type), 6);
    attribute.add_bytes(tag(proto::AttributeProto::floats), "");
    attribute.commit();
    g.add_message(1, text);
  }));
  const auto* value = model.graph->front()->find("scales");
  REQUIRE(value != nullptr);
  CHECK(std::get<std::vector<float>>(*value).empty());
}

TEST_CASE("an output without a type can be read, and not be written") {
  const Model model = onnx::parse(graph_of([](auto& g) {
    g.add_message(1, node("", "y"));
    protozero::pbf_writer output(g, tag(proto::GraphProto::output));
    output.add_string(tag(proto::ValueInfoProto::name), "y");
  }));
  CHECK(model.graph->outputs().size() == 1);
  CHECK_THROWS_WITH_AS(onnx::serialize(model), doctest::Contains("'y' has no type; ONNX wants one"), Error);
}

TEST_CASE("a data file that is too short is named") {
  const tests::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  std::ofstream(folder / "data") << "12345678";
  const auto bytes = [](const std::string& offset) {
    return tensor_of([&](auto& t) { external(t, "data", offset); }, DataType::FLOAT, {2});
  };
  const Model model = onnx::parse(bytes("0"), folder);
  CHECK(std::memcmp(model.graph->initializers()[0]->initializer->data.data, "12345678", 8) == 0);
  CHECK_THROWS_WITH_AS(onnx::parse(bytes("4"), folder), doctest::Contains("needs bytes 4 to 12, the file has 8"),
                       Error);
  CHECK_THROWS_WITH_AS(onnx::parse(bytes("-4"), folder), doctest::Contains("bad offset"), Error);
  CHECK_THROWS_WITH_AS(onnx::parse(bytes("18446744073709551615"), folder), doctest::Contains("the file has 8"), Error);
  fs::remove(folder / "data");
  CHECK_THROWS_WITH_AS(onnx::parse(bytes("0"), folder), doctest::Contains("No such file"), Error);
}

TEST_CASE("damaged files never do more than throw") {
  Model model;
  model.opsets[""] = 20;
  auto& graph = *model.graph;
  auto* x = graph.add_input("x", DataType::FLOAT, onnx::Shape{onnx::Dim::named("n")});
  auto inner = std::make_shared<onnx::Graph>(&graph);
  inner->add_output(inner->insert(nullptr, "Neg", {x}, {}, {"inside"})->output());
  inner->outputs()[0]->type = DataType::FLOAT;
  auto* node = graph.insert(nullptr, "If", {x}, {{"then_branch", inner}, {"axes", std::vector<int64_t>{1, 2}}}, {"y"});
  node->output()->type = DataType::FLOAT;
  graph.add_output(node->output());
  static const float kNumbers[3] = {1, 2, 3};
  graph.add_initializer("w", onnx::Tensor::of({.sizes = {3}, .strides = {1}, .data = kNumbers}));
  const std::string bytes = onnx::serialize(model);

  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    if (round % 4 == 0) damaged.resize(random() % bytes.size());
    for (unsigned i = 0; !damaged.empty() && i <= random() % 4; ++i)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      onnx::serialize(onnx::parse(damaged));
    } catch (const Error&) {
      ++refused;
    } catch (const InternalError&) {
      ++refused;  // an input or output whose type was damaged can't be written again
    }
  }
  CHECK(refused > 1000);
}

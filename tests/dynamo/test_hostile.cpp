// Damaged and hostile archives: each gives one clear error.
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/dynamo/support.h"
#include "transporters/checkpoint/mapped_file.h"
#include "transporters/dynamo/zip_reader.h"
#include "transporters/dynamo/zip_writer.h"

namespace transporters::dynamo {
namespace {

using Json = nlohmann::ordered_json;
using Records = std::vector<std::pair<std::string, std::string>>;

Program small_program() {
  Program net = parse_program(R"(program Net
symbol N in [1, 8] hint 2
input %w: f32[2, 3] = parameter "w"
input %c: f32[1] = constant "c"
input %x: f32[N, 3] = user "x"
%linear: f32[N, 2] = aten::linear(input=%x, weight=%w)
%view: f32[2*N] = aten::view(self=%linear, size=[2*N])
output %view = user "y"
)");
  net.state = {{"w", counting({2, 3})}, {"c", counting({1})}};
  return net;
}

// The records of a good archive, changed by `change`, written again and loaded; what the error says after the path.
class Archive {
 public:
  Archive() {
    save(small_program(), folder_ / "good.pt2");
    bytes_ = read_file(folder_ / "good.pt2");
    const ZipReader zip(MappedFile::open((folder_ / "good.pt2").string()));
    for (const std::string& name : zip.names())
      if (name != ".data/serialization_id") records_.emplace_back(name, zip.get(name));
  }

  const std::string& bytes() const { return bytes_; }

  std::string load_bytes(const std::string& bytes) const {
    const auto path = folder_ / "bad.pt2";
    write_file(path, bytes);
    std::string message = error_of([&] { load(path); });
    const auto at = message.find(path.string());
    if (at != std::string::npos) message.replace(at, path.string().size(), "FILE");
    return message;
  }

  std::string load_records(const std::function<void(Records&)>& change) const {
    Records records = records_;
    change(records);
    std::string bytes;
    ZipWriter zip("model", [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); });
    for (const auto& [name, content] : records) zip.add(name, content);
    zip.finish();
    return load_bytes(bytes);
  }

  std::string load_record(const std::string& record, const std::function<void(std::string&)>& change) const {
    return load_records([&](Records& records) {
      for (auto& [name, content] : records)
        if (name == record) change(content);
    });
  }

  std::string load_model(const std::function<void(Json&)>& change) const {
    return load_record("models/model.json", [&](std::string& content) {
      Json json = Json::parse(content);
      change(json);
      content = json.dump();
    });
  }

 private:
  TemporaryFolder folder_;
  std::string bytes_;
  Records records_;
};

Json& graph(Json& model) { return model["graph_module"]["graph"]; }

TEST_CASE("the archive that the others are made of loads") {
  const Archive archive;
  CHECK(archive.load_bytes(archive.bytes()) == "");
  CHECK(archive.load_records([](Records&) {}) == "");
}

TEST_CASE("files that are no archives") {
  const Archive archive;
  CHECK(archive.load_bytes("") == "[dynamo] FILE: the file is empty");
  CHECK(archive.load_bytes("version https://git-lfs.github.com/spec/v1") ==
        "[dynamo] FILE: not a .pt2 file: it has no zip directory");
  CHECK(archive.load_bytes(archive.bytes().substr(0, 1000)) ==
        "[dynamo] FILE: the file ends before its directory of records; it was cut off, copy or export it again");
  CHECK(archive.load_records([](Records& records) { records = {{"hello.txt", "x"}}; }) ==
        "[dynamo] FILE: a zip file, but not a .pt2 archive: the record 'archive_format' is missing");
  const TemporaryFolder folder;
  CHECK(error_of([&] { load(folder / "missing.pt2"); }).find("cannot be opened: No such file") != std::string::npos);
}

TEST_CASE("every way to cut or to damage the file gives an error or the same program") {
  const Archive archive;
  const std::string& good = archive.bytes();
  for (size_t size = 1; size < good.size(); size += 97) CHECK(archive.load_bytes(good.substr(0, size)) != "");
  // Anything may be damaged; weights have no checksum that is read, everything else must be noticed or harmless.
  for (size_t at = 0; at < good.size(); at += 13) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    archive.load_bytes(bad);
  }
}

TEST_CASE("damaged zip directories") {
  const Archive archive;
  const auto end = archive.bytes().rfind("PK\x05\x06");
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string bad = archive.bytes();
    bad.replace(at, bytes.size(), bytes);
    return archive.load_bytes(bad);
  };
  const std::string huge("\xff\xff\xff\x7f", 4);
  CHECK(with(end + 16, huge).find("the directory of records should be") != std::string::npos);
  CHECK(with(end + 10, "\xff").find("of the directory of records is damaged") != std::string::npos);
  const auto entry = archive.bytes().find("PK\x01\x02");
  CHECK(with(entry + 42, huge) == "[dynamo] FILE: the record 'data/weights/weight_0' is not where the directory says");
  CHECK(with(entry + 24, huge).find("'data/weights/weight_0' should have 2147483647 bytes, more than the file has") !=
        std::string::npos);
  CHECK(with(entry + 10, std::string("\x08\x00", 2)).find("'data/weights/weight_0' is compressed") !=
        std::string::npos);
  CHECK(with(entry + 8, std::string("\x01\x00", 2)).find("'data/weights/weight_0' is encrypted") != std::string::npos);
  CHECK(archive.load_records([](Records& records) { records.push_back(records.front()); }) ==
        "[dynamo] FILE: the record 'model/data/weights/weight_0' is there twice");
  const auto json = archive.bytes().find("\"graph_module\"");
  CHECK(with(json, "'") == "[dynamo] FILE: the record 'models/model.json' is damaged: its checksum differs");
}

TEST_CASE("missing records and foreign versions") {
  const Archive archive;
  const auto without = [&](const std::string& name) {
    return archive.load_records(
        [&](Records& records) { std::erase_if(records, [&](const auto& record) { return record.first == name; }); });
  };
  CHECK(without("models/model.json") == "[dynamo] FILE: the archive has no model (models/*.json)");
  CHECK(without("data/weights/weight_0") == "[dynamo] FILE: the record 'data/weights/weight_0' is missing");
  CHECK(without("data/weights/model_weights_config.json") ==
        "[dynamo] FILE: the record 'data/weights/model_weights_config.json' is missing");
  CHECK(without("data/sample_inputs/model.pt") == "");
  CHECK(without("extra/transporters.json") == "");
  const auto with = [&](const std::string& name, const std::string& content) {
    return archive.load_record(name, [&](std::string& old) { old = content; });
  };
  CHECK(with("archive_format", "pt3") == "[dynamo] FILE: the archive's format is 'pt3', expected 'pt2'");
  CHECK(with("archive_version", "7") == "[dynamo] FILE: archive version 7 is not supported, expected 0");
  CHECK(with("byteorder", "big") == "[dynamo] FILE: the archive was written on a big-endian machine");
  CHECK(with("data/sample_inputs/model.pt", "garbage") == "");  // only a help
  CHECK(archive.load_records([](Records& records) { records.emplace_back("models/other.json", "{}"); }) ==
        "[dynamo] FILE: the archive has 2 models, expected one; choose from 'model', 'other'");
}

TEST_CASE("JSON that is none, or of another shape") {
  const Archive archive;
  const auto model = [&](const std::string& text) {
    return archive.load_record("models/model.json", [&](std::string& content) { content = text; });
  };
  CHECK(model("{\"graph_module\": ").find("models/model.json: not JSON: ") != std::string::npos);
  CHECK(model("[]") == "[dynamo] FILE: models/model.json: expected an object, got array");
  CHECK(model("{}") == "[dynamo] FILE: models/model.json: 'graph_module' is missing");
  CHECK(model(std::string(5000, '[')).find("models/model.json: ") != std::string::npos);
  const std::string nested = std::string(5000, '[') + std::string(5000, ']');
  CHECK(model(nested) == "[dynamo] FILE: models/model.json: nested deeper than 200 levels");
  CHECK(
      archive.load_model([](Json& json) { json["schema_version"]["major"] = 9; }) ==
      "[dynamo] FILE: models/model.json: schema_version: schema version 9.20 is not supported; this version reads 8.x, "
      "which torch 2.6 and later write");
}

TEST_CASE("graphs that do not hold together name the place") {
  const Archive archive;
  const std::string at = "[dynamo] FILE: models/model.json: graph_module.graph.";
  CHECK(archive.load_model([](Json& json) {
    graph(json)["nodes"][0]["inputs"][0]["arg"] = {{"as_tensor", {{"name", "y"}}}};
  }) == at + "nodes[0].inputs[0].arg.as_tensor.name: 'y' is used before it is defined");
  CHECK(archive.load_model([](Json& json) { graph(json)["nodes"][0]["inputs"][0]["name"] = "inputs"; }) ==
        at + "nodes[0].inputs[0]: 'aten::linear' has no argument 'inputs'");
  CHECK(archive.load_model([](Json& json) { graph(json)["nodes"][0]["target"] = "torch.ops.mylib.foo.default"; }) ==
        at + "nodes[0]: the op 'mylib::foo' is not registered in this process; load the library that defines it first");
  CHECK(archive.load_model([](Json& json) { graph(json)["nodes"][0]["target"] = "torch.ops.higher_order.cond"; }) ==
        at + "nodes[0]: the higher-order op 'cond' is not supported; export the model without control flow, under "
             "torch.no_grad()");
  CHECK(archive.load_model([](Json& json) {
    graph(json)["nodes"][0]["target"] = "torch.ops.higher_order.wrap_with_autocast";
  }) == at +
            "nodes[0]: a region under torch.autocast is not supported; call run_decompositions() on the program before "
            "saving it, which makes the casts explicit");
  CHECK(archive.load_model([](Json& json) {
    graph(json)["sym_float_values"]["f"] = {{"as_expr", {{"expr_str", "Symbol('zuf0')"}, {"hint", nullptr}}}};
    graph(json)["nodes"][0]["outputs"][0] = {{"as_sym_float", {{"as_name", "f"}}}};
  }) == at +
            "nodes[0].outputs[0]: a floating-point number that is read from a tensor ('f') is not supported; keep it a "
            "tensor: leave out item() or float()");
  CHECK(archive.load_model([](Json& json) { graph(json)["nodes"][0]["target"] = "os.system"; }) ==
        at + "nodes[0]: 'os.system' is not supported");
  CHECK(archive.load_model([](Json& json) { graph(json)["nodes"][0]["inputs"].erase(1); }) ==
        at + "nodes[0]: 'aten::linear': the argument 'weight' is missing");
  CHECK(archive.load_model([](Json& json) { graph(json)["nodes"][0]["inputs"][1]["arg"] = {{"as_strings", {"w"}}}; }) ==
        at + "nodes[0]: 'aten::linear': the argument 'weight' does not match the schema's type: [\"w\"]");
  CHECK(archive.load_model([](Json& json) {
    graph(json)["nodes"][0]["inputs"][1]["arg"] = {{"as_optional_tensor", {{"as_none", true}}}};
  }) == at + "nodes[0]: 'aten::linear': the argument 'weight' does not match the schema's type: None");
  CHECK(archive.load_model([](Json& json) { graph(json)["nodes"].push_back(graph(json)["nodes"][0]); }) ==
        at + "nodes[4].outputs[0].as_tensor.name: 'linear' is defined twice");
  CHECK(archive.load_model([](Json& json) { graph(json)["tensor_values"].erase("linear"); }) ==
        at + "nodes[0].outputs[0].as_tensor.name: the tensor 'linear' is not described in tensor_values");
  CHECK(archive.load_model([](Json& json) { graph(json)["tensor_values"]["x"]["dtype"] = 99; }) ==
        at + "tensor_values.x.dtype: unknown element type 99");
  CHECK(archive.load_model([](Json& json) { graph(json)["tensor_values"]["x"]["device"]["type"] = "cuda"; }) ==
        at + "tensor_values.x: the tensor is on 'cuda'; move the model to the CPU before exporting it");
  CHECK(archive.load_model([](Json& json) { graph(json)["tensor_values"]["x"]["sizes"][1] = {{"as_int", -3}}; }) ==
        at + "tensor_values.x.sizes[1]: a size is negative");
  CHECK(archive.load_model([](Json& json) {
    graph(json)["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"] = "__import__('os')";
  }) == at + "tensor_values.x.sizes[0].as_expr.expr_str: column 12 of expression '__import__('os')': '__import__' is "
             "no function that sizes can be computed with");
  CHECK(
      archive.load_model([](Json& json) { graph(json)["inputs"].erase(0); }) ==
      "[dynamo] FILE: models/model.json: graph_module.signature.input_specs: the graph has 2 inputs, its signature 3");
  CHECK(archive.load_model([](Json& json) {
    json["graph_module"]["signature"]["input_specs"][0] = {{"token", {{"arg", {{"name", "t"}}}}}};
  }) == "[dynamo] FILE: models/model.json: graph_module.signature.input_specs[0]: inputs of kind 'token' are not "
        "supported");
  CHECK(archive.load_model([](Json& json) { json["range_constraints"]["s0"]["min_val"] = 9; }) ==
        "[dynamo] FILE: models/model.json: range_constraints.s0: the range of 's0' is empty");
  CHECK(archive.load_model([](Json& json) {
    json["graph_module"]["signature"]["output_specs"][0] = {
        {"user_input_mutation", {{"arg", {{"name", "view"}}}, {"user_input_name", "view"}}}};
  }) == "[dynamo] FILE: models/model.json: graph_module.signature.output_specs[0]: writes to a value that is no input");
  CHECK(archive.load_model([](Json& json) {
    json["graph_module"]["signature"]["output_specs"][0] = {
        {"buffer_mutation", {{"arg", {{"name", "view"}}}, {"buffer_name", "nothing"}}}};
    json["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] =
        R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": []}])";
  }) == "[dynamo] FILE: invalid program: the mutated buffer 'nothing' does not exist; the file is damaged, export it "
        "again");
  CHECK(archive.load_model([](Json& json) { json["guards_code"] = {"L['z'].size()[0] == 1"}; }) ==
        "[dynamo] FILE: models/model.json: guards_code[0]: the guard reads an input that is not there");
}

TEST_CASE("weights that do not fit") {
  const Archive archive;
  const auto config = [&](const std::function<void(Json&)>& change) {
    return archive.load_record("data/weights/model_weights_config.json", [&](std::string& content) {
      Json json = Json::parse(content);
      change(json["config"]["w"]);
      content = json.dump();
    });
  };
  const std::string at =
      "[dynamo] FILE: data/weights/model_weights_config.json: config.w.tensor_meta: data/weights/weight_0 ";
  const auto sizes = [](Json& w, int64_t rows, int64_t row_stride) {
    w["tensor_meta"]["sizes"][0]["as_int"] = rows;
    w["tensor_meta"]["strides"][0]["as_int"] = row_stride;
  };
  CHECK(config([&](Json& w) { sizes(w, 3, 3); }) == at + "has 24 bytes, too few for a tensor that reaches element 8");
  CHECK(config([&](Json& w) { sizes(w, 2, int64_t{1} << 62); }).find("has 24 bytes, too few") != std::string::npos);
  CHECK(config([&](Json& w) { sizes(w, int64_t{1} << 62, int64_t{1} << 62); }) == at + "has sizes beyond 64 bits");
  // Strides multiply the axes beside an empty one.
  CHECK(config([&](Json& w) {
          const Json huge = {{"as_int", int64_t{1} << 40}}, none = {{"as_int", 0}};
          w["tensor_meta"]["sizes"] = {none, huge, huge};
          w["tensor_meta"]["strides"] = {none, none, none};
        }) == at + "has sizes beyond 64 bits");
  CHECK(config([&](Json& w) { sizes(w, -1, 3); }) == at + "has negative sizes, strides or offset");
  CHECK(config([&](Json& w) { w["tensor_meta"]["storage_offset"]["as_int"] = -1; }) ==
        at + "has negative sizes, strides or offset");
  CHECK(config([&](Json& w) { sizes(w, 1, 3); }) ==
        "[dynamo] FILE: the data for 'w' has another type or other sizes than the graph expects");
  CHECK(config([&](Json& w) { w["path_name"] = "../../../../etc/passwd"; }).find("which needs Python") !=
        std::string::npos);
  CHECK(config([&](Json& w) { w["use_pickle"] = true; }).find("weight_0: not a .pt2 file") != std::string::npos);
}

}  // namespace
}  // namespace transporters::dynamo

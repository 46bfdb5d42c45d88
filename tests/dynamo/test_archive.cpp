#include <nlohmann/json.hpp>

#include "tests/dynamo/support.h"
#include "transporters/checkpoint/mapped_file.h"
#include "transporters/dynamo/zip_reader.h"

namespace transporters::dynamo {
namespace {

using Json = nlohmann::ordered_json;

const char* const kText = R"(program Net
symbol batch in [1, 16] hint 3
symbol beta in [0, inf] hint 4
input %w: f32[2, 3] = parameter "net.weight"
input %v: f32[2, 3] = parameter "net.tied"
input %rows: f32[1, 3] = parameter "net.row"
input %stats: f32[3] = buffer "stats"
input %cache: f32[3] = buffer "cache" non_persistent
input %c: f32[] = constant "lifted"
input %x: f32[batch, 3] = user "x"
input %past: f32[beta, 2*beta + batch] = user "for.0"
input None = user "mask"
%linear: f32[batch, 2] = aten::linear(input=%x, weight=%w)  @ net
%add: f32[batch, 2] = aten::add.Tensor(self=%linear, other=%linear, alpha=-inf)  @ net.inner
%full: f32[batch + beta] = aten::full(size=[batch + beta], fill_value=batch)
%again: f32[batch + beta, 2] = aten::zeros(size=[batch + beta, 2], dtype=f32)
%new: f32[3] = aten::add.Tensor(self=%stats, other=1)
aten::_assert_scalar(self=batch <= beta, assert_msg="too small")
output %new = buffer_mutation "stats"
output %add = user "y.0"
output %full = user "y.1"
output %again = user "y.2"
output None = user "y.3"
output batch*beta = user "y.4"
)";

Program program() {
  Program net = parse_program(kText);
  const TensorData weight = counting({2, 3});
  TensorData row = weight;
  row.sizes = {1, 3};
  row.strides = {3, 1};
  row.data = static_cast<const float*>(weight.data) + 3;
  net.state = {{"net.weight", weight},   {"net.tied", weight},     {"net.row", row},
               {"stats", counting({3})}, {"cache", counting({3})}, {"lifted", counting({})}};
  net.in_spec = TreeSpec::tuple({TreeSpec::tuple({TreeSpec::leaf(), TreeSpec::list({TreeSpec::leaf()})}),
                                 TreeSpec::dict({"mask"}, {TreeSpec::leaf()})});
  net.out_spec = TreeSpec::dict({"y"}, {TreeSpec::list(std::vector<TreeSpec>(5))});
  net.example_inputs = {{"x", counting({3, 3})}, {"for.0", counting({4, 11})}};
  return net;
}

Json model_of(const ZipReader& zip) { return Json::parse(zip.get_checked("models/model.json")); }

// A key per node: "target name".
std::vector<std::string> node_lines(const Json& model) {
  std::vector<std::string> lines;
  for (const Json& node : model["graph_module"]["graph"]["nodes"])
    lines.push_back(node["target"].get<std::string>() + " " + node["name"].get<std::string>());
  return lines;
}

TEST_CASE("an archive has the records that torch.export.load reads") {
  const TemporaryFolder folder;
  save(program(), folder / "net.pt2", {.extra_files = {{"note.txt", "kept"}}});
  const ZipReader zip(MappedFile::open((folder / "net.pt2").string()));
  CHECK(zip.names() == std::vector<std::string>{
                           "data/weights/weight_0", "data/weights/weight_1", "data/weights/model_weights_config.json",
                           "data/constants/tensor_0", "data/constants/tensor_1",
                           "data/constants/model_constants_config.json", "models/model.json",
                           "data/sample_inputs/model.pt", "extra/transporters.json", "extra/note.txt", "archive_format",
                           "archive_version", ".data/version", "byteorder", ".data/serialization_id"});
  CHECK(zip.get("archive_format") == "pt2");
  CHECK(zip.get("extra/note.txt") == "kept");
  CHECK(zip.get(".data/serialization_id").size() == 40);
  for (const std::string& name : zip.names()) {
    zip.get_checked(name);
    CHECK(zip.offset_of(zip.get(name)) % 64 == 0);
  }
}

TEST_CASE("tensors that share memory are written once") {
  const TemporaryFolder folder;
  save(program(), folder / "net.pt2");
  const ZipReader zip(MappedFile::open((folder / "net.pt2").string()));
  CHECK(zip.get("data/weights/weight_0").size() == 24);  // the weight, its twin and a row of it
  CHECK(zip.get("data/weights/weight_1").size() == 12);
  const Json config = Json::parse(zip.get("data/weights/model_weights_config.json"))["config"];
  std::vector<std::string> order;
  for (const auto& [target, meta] : config.items())
    order.push_back(target + " " + meta["path_name"].get<std::string>());
  CHECK(order ==
        std::vector<std::string>{"net.weight weight_0", "net.tied weight_0", "net.row weight_0", "stats weight_1"});
  CHECK(config["net.row"]["tensor_meta"]["storage_offset"] == Json{{"as_int", 3}});
  CHECK(config["net.row"]["is_param"] == true);
  CHECK(config["stats"]["is_param"] == false);
}

TEST_CASE("sizes become nodes, each once, where they are first needed") {
  const TemporaryFolder folder;
  save(program(), folder / "net.pt2");
  const Json model = model_of(ZipReader(MappedFile::open((folder / "net.pt2").string())));
  CHECK(node_lines(model) ==
        std::vector<std::string>{"torch.ops.aten.linear.default linear", "torch.ops.aten.add.Tensor add",
                                 "torch.ops.aten.sym_size.int sym_size_int",
                                 "torch.ops.aten.sym_size.int sym_size_int_1", "_operator.add add_1",
                                 "torch.ops.aten.full.default full", "torch.ops.aten.zeros.default again",
                                 "torch.ops.aten.add.Tensor new", "_operator.le le",
                                 "torch.ops.aten._assert_scalar.default _assert_scalar_default", "_operator.mul mul"});
  const Json& graph = model["graph_module"]["graph"];
  // The users' "batch" and "beta" mean nothing, or something else, to sympy.
  CHECK(graph["sym_int_values"]["add_1"]["as_expr"]["expr_str"] ==
        "Add(Symbol('s0', positive=True, integer=True), Symbol('s1', nonnegative=True, integer=True))");
  CHECK(graph["sym_int_values"]["add_1"]["as_expr"]["hint"] == Json{{"as_int", 7}});
  CHECK(model["range_constraints"] ==
        Json{{"s0", {{"min_val", 1}, {"max_val", 16}}}, {"s1", {{"min_val", 0}, {"max_val", nullptr}}}});
  CHECK(model["guards_code"] ==
        Json::array({"L['arg_1'][0].size()[1] == (L['x'].size()[0] + (2 * L['arg_1'][0].size()[0]))"}));
  const Json& add = graph["nodes"][1];
  CHECK(add["inputs"][2] == Json{{"name", "alpha"}, {"arg", {{"as_float", "-Infinity"}}}, {"kind", 2}});
  CHECK(add["metadata"]["nn_module_stack"] ==
        "L__self__,,Net;L__self__net,net,torch.nn.modules.module.Module;"
        "L__self__net_inner,net.inner,torch.nn.modules.module.Module");
  CHECK(graph["tensor_values"]["p_net_weight"]["requires_grad"] == true);
}

TEST_CASE("the signature follows torch.export's") {
  const TemporaryFolder folder;
  save(program(), folder / "net.pt2");
  const Json module = model_of(ZipReader(MappedFile::open((folder / "net.pt2").string())))["graph_module"];
  std::vector<std::string> inputs, outputs;
  for (const Json& spec : module["signature"]["input_specs"]) inputs.push_back(spec.begin().key());
  for (const Json& spec : module["signature"]["output_specs"]) outputs.push_back(spec.begin().key());
  CHECK(inputs == std::vector<std::string>{"parameter", "parameter", "parameter", "buffer", "buffer", "tensor_constant",
                                           "user_input", "user_input", "constant_input"});
  CHECK(outputs == std::vector<std::string>{"buffer_mutation", "user_output", "user_output", "user_output",
                                            "user_output", "user_output"});
  std::string names;
  for (const Json& input : module["graph"]["inputs"])
    if (input.contains("as_tensor")) names += input["as_tensor"]["name"].get<std::string>() + " ";
  CHECK(names == "p_net_weight p_net_tied p_net_row b_stats b_cache c_lifted x for_0 ");
  const Json& root = module["module_call_graph"][0];
  CHECK(root["fqn"] == "");
  // "for" can't be an argument of Python code.
  CHECK(root["signature"]["forward_arg_names"] == Json{"x", "arg_1", "mask"});
  CHECK(module["module_call_graph"][1] == Json{{"fqn", "net"}, {"signature", nullptr}});
}

TEST_CASE("arguments get names that Python code can have") {
  const TemporaryFolder folder;
  const auto written = [&](const std::vector<std::string>& names, const TreeSpec& spec) {
    Program net = parse_program("program Net\ninput %w: f32[2] = parameter \"w\"\noutput %w = user \"y\"\n");
    net.state["w"] = counting({2});
    for (const std::string& name : names)
      net.inputs.push_back(
          {.value = net.graph->add_input("x", TensorType{ScalarType::Float, {2}, {}}), .target = name});
    net.in_spec = spec;
    save(net, folder / "net.pt2");
    const Program read = load(folder / "net.pt2");
    for (size_t i = 0; i < names.size(); ++i) CHECK(read.inputs[i + 1].target == names[i]);
    const ZipReader zip(MappedFile::open((folder / "net.pt2").string()));
    return model_of(zip)["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"];
  };
  const auto call = [](size_t positional, const std::vector<std::string>& keywords) {
    return TreeSpec::tuple({TreeSpec::tuple(std::vector<TreeSpec>(positional)),
                            TreeSpec::dict(keywords, std::vector<TreeSpec>(keywords.size()))});
  };
  CHECK(written({"x", "self"}, call(2, {})) == Json{"x", "arg_1"});
  CHECK(written({"past.0", "past.1", "2d"}, call(3, {})) == Json{"past", "arg_1", "arg_2"});
  CHECK(written({"for", "arg_0"}, call(2, {})) == Json{"arg_0", "arg_1"});
  CHECK(written({"torch", "arg_0", "device"}, call(1, {"arg_0", "device"})) == Json{"arg_0_", "arg_0", "device"});
  // Without a structure: keyword arguments where all can be.
  CHECK(written({"x", "mask"}, {}) == Json{"x", "mask"});
  CHECK(written({"x", "mask.0"}, {}) == Json{"x", "mask"});
  CHECK(error_of([&] { written({"x", "for"}, call(1, {"for"})); }) ==
        "[dynamo] the keyword argument 'for' can't be an argument of the Python code that torch makes of a .pt2 file; "
        "rename it, or pass it by position");
}

TEST_CASE("the same program gives the same bytes, and reads back") {
  const TemporaryFolder folder;
  save(program(), folder / "a.pt2");
  save(program(), folder / "b.pt2");
  CHECK(read_file(folder / "a.pt2") == read_file(folder / "b.pt2"));

  const Program read = load(folder / "a.pt2");
  save(read, folder / "c.pt2");
  CHECK(read_file(folder / "a.pt2") == read_file(folder / "c.pt2"));
  CHECK(read.ranges.at("batch") == symbolic::Range{1, 16});
  CHECK(read.hints.at("beta") == 4);
  CHECK(read.in_spec == program().in_spec);
  CHECK(read.architecture == "Net");
  CHECK(elements(read.state.at("net.row")) == std::vector<float>{3, 4, 5});
  CHECK(read.state.at("net.weight").is_same_as(read.state.at("net.tied")));
  CHECK(read.state.at("net.weight").file == (folder / "a.pt2").string());
  REQUIRE(read.example_inputs.size() == 2);
  CHECK(read.example_inputs[1].path == "for.0");
  CHECK(elements(read.example_inputs[1].data) == elements(counting({4, 11})));
  verify(read);
}

TEST_CASE("strided and empty tensors") {
  const TemporaryFolder folder;
  Program net = parse_program(
      "program Net\ninput %t: f32[3, 2] strides [1, 3] = parameter \"t\"\ninput %g: f32[2, 1] = buffer \"g\"\n"
      "input %e: f32[0, 4] = buffer \"e\"\ninput %x: f32[2] = user \"x\"\noutput %x = user \"x\"\n");
  const TensorData memory = counting({2, 3});
  TensorData transposed = memory, column = counting({2, 3});
  transposed.sizes = {3, 2};
  transposed.strides = {1, 3};
  column.sizes = {2, 1};
  column.strides = {3, 1};
  TensorData empty;
  empty.sizes = {0, 4};
  empty.strides = {4, 1};
  net.state = {{"t", transposed}, {"g", column}, {"e", empty}};
  save(net, folder / "net.pt2");
  const Program read = load(folder / "net.pt2");
  CHECK(read.state.at("t").strides == std::vector<int64_t>{1, 3});  // as it lies in memory
  CHECK(elements(read.state.at("g")) == std::vector<float>{0, 3});  // gathered: the rest belongs to nobody
  CHECK(read.state.at("e").numel() == 0);
  const ZipReader zip(MappedFile::open((folder / "net.pt2").string()));
  CHECK(zip.get("data/weights/weight_1").size() == 8);
}

TEST_CASE("what a program lacks is told before anything is written") {
  const TemporaryFolder folder;
  Program net = program();
  net.state.erase("stats");
  CHECK(error_of([&] { save(net, folder / "net.pt2"); }) ==
        "[dynamo] the program has no data for 'stats'; load its weights first");
  Program quantised = program();
  quantised.graph->inputs()[6]->set_type(TensorType{ScalarType::QInt8, {2, 3}, {}});
  CHECK(error_of([&] { save(quantised, folder / "net.pt2"); }) ==
        "[dynamo] a .pt2 file can't hold tensors of type QInt8; convert them first");
  CHECK(!std::filesystem::exists(folder / "net.pt2"));
  CHECK(error_of([&] { save(program(), folder / "no" / "net.pt2"); }) == "");
}

}  // namespace
}  // namespace transporters::dynamo

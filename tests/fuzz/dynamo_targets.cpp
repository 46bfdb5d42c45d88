#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets.h"
#include "transporters/dynamo/payload_reader.h"
#include "transporters/dynamo/pickle_reader.h"
#include "transporters/dynamo/pickle_writer.h"
#include "transporters/dynamo/pt2.h"
#include "transporters/dynamo/sympy.h"
#include "transporters/dynamo/zip_reader.h"
#include "transporters/dynamo/zip_writer.h"
#include "transporters/error.h"

namespace transporters::fuzz {
namespace {

using namespace dynamo;
using Records = std::vector<std::pair<std::string, std::string>>;

std::string zip_of(const std::string& root, const Records& records) {
  std::string bytes;
  ZipWriter zip(root, [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); });
  for (const auto& [name, content] : records) zip.add(name, content);
  zip.finish();
  return bytes;
}

Records records_of(const std::string& bytes) {
  const ZipReader zip(bytes, nullptr, "seed");
  Records records;
  for (const std::string& name : zip.names())
    if (name != ".data/serialization_id") records.emplace_back(name, zip.get(name));
  return records;
}

const std::vector<std::string>& opcode_words() {
  static const std::vector<std::string> words{"(",
                                              ")",
                                              "]",
                                              "}",
                                              "t",
                                              "\x85",
                                              "\x86",
                                              "\x87",
                                              "a",
                                              "e",
                                              "s",
                                              "u",
                                              "q\x01",
                                              "h\x01",
                                              "b",
                                              "R",
                                              "\x81",
                                              "0",
                                              ".",
                                              "N",
                                              "\x88",
                                              "K\x05",
                                              "M\xff\xff",
                                              "Q",
                                              "\x93",
                                              "\x94",
                                              "2",
                                              "]\x94h\x00\x61",
                                              "ccollections\nOrderedDict\n)R",
                                              "ctorch\nSize\n"};
  return words;
}

// The pickled code as opcodes, the archive around it as records.
std::string mutate_pickle_archive(const std::string& bytes, Random& random) {
  if (random.one_in(6)) return mutate_bytes(bytes, bytes, random);
  Records records = records_of(bytes);
  for (auto& [name, content] : records) {
    if (name != "data.pkl") continue;
    content = random.one_in(2) ? mutate_words(content, opcode_words(), random) : mutate_bytes(content, content, random);
  }
  if (random.one_in(6) && records.size() > 1)
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(random.below(records.size())));
  return zip_of("archive", records);
}

std::vector<std::string> pickle_seeds() {
  const TensorData weight = tensor({2, 3});
  TensorData transposed = weight;
  transposed.sizes = {3, 2};
  transposed.strides = {1, 3};
  const TensorData counts = tensor({4}, ScalarType::UInt32);
  PickleWriter state;
  state.begin_dict();
  state.string("w");
  state.tensor(transposed);
  state.string("n");
  state.tensor(counts);
  state.end_dict();
  PickleWriter values;
  values.begin();
  values.integer(-5);
  values.integer(int64_t{1} << 40);
  values.real(0.1);
  values.begin_list();
  values.none();
  values.boolean(true);
  values.tensor(weight);
  values.end_list();
  values.global("my.module", "Class");
  values.begin();
  values.end_tuple();
  values.make_object();
  values.begin_dict();
  values.string("a");
  values.integer(7);
  values.end_dict();
  values.set_state();
  values.end_tuple();
  return {state.archive(), values.archive()};
}

void touch_all(const PickleValue& value, int depth) {
  if (depth > 20) return;
  if (const auto* data = value.get_if<TensorData>(); data != nullptr && data->is_contiguous())
    touch(data->data, data->nbytes());
  if (const PickleList* list = value.list())
    for (const PickleValue& element : *list) touch_all(element, depth + 1);
  if (const PickleDict* dict = value.dict())
    for (const auto& [key, element] : *dict) touch_all(element, depth + 1);
}

class Pickle final : public Target {
 public:
  Pickle() : Target("pickle") {}
  std::vector<Files> seeds() override {
    std::vector<Files> seeds;
    for (const std::string& bytes : pickle_seeds()) seeds.push_back({{"", bytes}});
    return seeds;
  }
  Files mutate(const Files& seed, Random& random) const override {
    return {{"", mutate_pickle_archive(seed.at(""), random)}};
  }
  void read(const Files& input, const std::filesystem::path&) const override {
    touch_all(read_pickle_archive(input.at(""), nullptr, "x.pt"), 0);
  }
};

const std::vector<std::string>& expression_words() {
  static const std::vector<std::string> words{"s0",
                                              "s1",
                                              "u0",
                                              "+",
                                              "-",
                                              "*",
                                              "**",
                                              "/",
                                              "//",
                                              "%",
                                              "(",
                                              ")",
                                              ",",
                                              "not ",
                                              "~",
                                              "and ",
                                              "==",
                                              "<",
                                              "!=",
                                              "Max(",
                                              "Mod(",
                                              "Pow(",
                                              "Add(",
                                              "Mul(",
                                              "Integer(",
                                              "FloorDiv(",
                                              "CleanDiv(",
                                              "PythonMod(",
                                              "LShift(",
                                              "RShift(",
                                              "ModularIndexing(",
                                              "FloatPow(",
                                              "TruncToInt(",
                                              "//s0",
                                              "%s1",
                                              "*(s0+s1)",
                                              "**s0",
                                              "-1.5",
                                              ">s1",
                                              "Piecewise(ExprCondPair(",
                                              "Where(",
                                              "Eq(",
                                              "Float('1e308')",
                                              "Float('0')",
                                              "oo",
                                              "True",
                                              "0.5",
                                              "L['x'].size()[0]",
                                              "L['x']",
                                              ".size()[",
                                              "Symbol('s0', integer=True)",
                                              "ToFloat(",
                                              "OpaqueUnaryFn_sqrt("};
  return words;
}

class Sympy final : public Target {
 public:
  Sympy() : Target("sympy") {}
  std::vector<Files> seeds() override {
    std::vector<Files> seeds;
    for (const char* text :
         {"Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(-1))", "2*s0**2 + s1 - 1",
          "FloorDiv(Mod(s0*s1, 7), 2)", "L['x'].size()[0] % 2 == 0 and (s0 < 9 or not s1 >= 3)",
          "TruncToInt(FloatTrueDiv(ToFloat(Max(s0, s1, 4)), Float('1.5', precision=53)))",
          "Piecewise(ExprCondPair(s0, Ne(s1, 1)), ExprCondPair(Min(s0, 3), True))", "PythonMod(-s0, 3)*LShift(s1, 2)",
          "Where(And(Le(s0, s1), Eq(ModularIndexing(s0, 2, 3), 1)), CeilToInt(IntTrueDiv(s0, s1)), s0//2)",
          "Pow(Add(s0, s1), Integer(3)) - FloatPow(ToFloat(s0), 0.5)"})
      seeds.push_back({{"", text}});
    return seeds;
  }
  Files mutate(const Files& seed, Random& random) const override {
    return {{"", random.one_in(8) ? mutate_bytes(seed.at(""), seed.at(""), random)
                                  : mutate_words(seed.at(""), expression_words(), random)}};
  }
  void read(const Files& input, const std::filesystem::path&) const override {
    const symbolic::Expr expr =
        from_sympy(input.at(""), {[](const std::string& name) { return symbolic::Expr::symbol(name); },
                                  [](const std::vector<std::string>& path, int dim) {
                                    return symbolic::Expr::symbol(path[0] + std::to_string(dim));
                                  }});
    touch(expr.str().data(), expr.str().size());
  }
};

class Tree final : public Target {
 public:
  Tree() : Target("tree_spec") {}
  std::vector<Files> seeds() override {
    const TreeSpec leaf = TreeSpec::leaf();
    std::vector<Files> seeds;
    for (
        const TreeSpec& spec :
        {TreeSpec::tuple(
             {TreeSpec::tuple({}), TreeSpec::dict({"input_ids", "mask"}, {leaf, TreeSpec::list({leaf, leaf})})}),
         TreeSpec{
             "transformers.cache_utils.DynamicCache",
             R"({"_t": "obj", "s": {"layers": [{"_t": "obj", "s": {"keys": {"_t": "tensor", "i": 0}}}, {"_t": "items", "v": [["values", {"_t": "sym", "i": 1}]]}]}})",
             {leaf, leaf}},
         TreeSpec{
             "collections.defaultdict", R"({"default_factory_module": "builtins", "dict_context": ["a"]})", {leaf}},
         TreeSpec{"my.DataClass", R"([["first", "second"], ["third"]])", {leaf, leaf}}})
      seeds.push_back({{"", spec.dumps()}});
    return seeds;
  }
  Files mutate(const Files& seed, Random& random) const override { return {{"", mutate_json(seed.at(""), random)}}; }
  void read(const Files& input, const std::filesystem::path&) const override {
    const TreeSpec spec = TreeSpec::loads(input.at(""));
    if (spec.leaf_paths().size() != spec.num_leaves()) throw InternalError("a tree has other leaves than paths");
    TreeSpec::loads(spec.dumps());
  }
};

// Programs whose reading goes through sizes, guards, inner lists, and ops that write to their inputs.
constexpr const char* kPrograms[] = {R"(program Net
symbol N in [1, 8] hint 2
symbol M in [0, inf] hint 3
input %w: f32[2, 3] = parameter "w"
input %c: f32[1] = constant "c"
input %x: f32[N, 3] = user "x"
input %y: f32[M, 3] = user "past.0"
%linear: f32[N, 2] = aten::linear(input=%x, weight=%w)
%view: f32[2*N] = aten::view(self=%linear, size=[2*N])
%cat: f32[N + M, 3] = aten::cat(tensors=[%x, %y])
%sum: f32[3] = aten::sum.dim_IntList(self=%cat, dim=[0])
output %view = user "y"
output %sum = user "sum"
)",
                                     R"(program Writes
symbol N in [2, 100] hint 5
input %b: f32[4] = buffer "b"
input %x: f32[N, 4] = user "x"
%slice: f32[N, 2] = aten::slice.Tensor(self=%x, dim=1, start=0, end=2)
%select: f32[4] = aten::select.int(self=%x, dim=0, index=1)
%add: f32[4] = aten::add.Tensor(self=%b, other=%select)
%split: f32[N, 2], %split_1: f32[N, 2] = aten::split.Tensor(self=%x, split_size=2, dim=1)
%mul: f32[N, 2] = aten::mul.Tensor(self=%split, other=%split_1)
%perm: f32[2, N] = aten::permute(self=%mul, dims=[1, 0])
%to: f16[2, N] = aten::_to_copy(self=%perm, dtype=f16)
output %add = buffer_mutation "b"
output %to = user "half"
)"};

std::string pickle_of_payloads(const Records& records, const std::string& folder, const std::string& suffix) {
  const std::string bytes = zip_of("model", records);
  const ZipReader zip(bytes, nullptr, "seed");
  PickleWriter writer;
  writer.begin_dict();
  for (const auto& [name, data] : read_payloads(zip, "model", folder, suffix)) {
    writer.string(name);
    writer.tensor(data);
  }
  writer.end_dict();
  return writer.archive();
}

class Pt2 final : public Target {
 public:
  Pt2() : Target("pt2") {}

  std::vector<Files> seeds() override {
    const auto file = std::filesystem::temp_directory_path() / ("fuzz_seed." + std::to_string(getpid()) + ".pt2");
    std::vector<Files> seeds;
    for (const char* text : kPrograms) {
      Program program = parse_program(text);
      for (const InputSpec& input : program.inputs) {
        std::vector<int64_t> sizes;
        for (const auto& size : input.value->sizes()) sizes.push_back(size.as_integer().value_or(2));
        if (input.kind == InputKind::UserInput) {
          program.example_inputs.push_back({input.target, tensor(sizes)});
        } else {
          program.state.emplace(input.target, tensor(sizes));
        }
      }
      save(program, file);
      std::ifstream stream(file, std::ios::binary);
      seeds.push_back({{"x.pt2", {std::istreambuf_iterator<char>(stream), {}}}});
      seeds.push_back({{"x.pt2", older_layout(seeds.back().at("x.pt2"))}});
    }
    std::filesystem::remove(file);
    return seeds;
  }

  Files mutate(const Files& seed, Random& random) const override {
    const std::string& bytes = seed.at("x.pt2");
    if (random.one_in(10)) return {{"x.pt2", mutate_bytes(bytes, bytes, random)}};
    Records records = records_of(bytes);
    switch (random.below(12)) {
      case 0:
        records.erase(records.begin() + static_cast<std::ptrdiff_t>(random.below(records.size())));
        break;
      case 1:
        std::swap(records[random.below(records.size())].second, records[random.below(records.size())].second);
        break;
      case 2:
        records.emplace_back(random.pick(records).first + (random.one_in(2) ? "" : "2"), random.pick(records).second);
        break;
      default:
        for (auto& [name, content] : records) {
          const bool is_model = name == "models/model.json";
          if (!random.one_in(is_model ? 1 : 6)) continue;
          if (is_model && random.one_in(3)) content = exchange_names(content, random);
          if (name.ends_with(".json"))
            content = mutate_json(content, random);
          else if (name.ends_with(".pt") && !content.empty())
            content = mutate_pickle_archive(content, random);
          else
            content = mutate_bytes(content, bytes, random);
        }
    }
    return {{"x.pt2", zip_of("model", records)}};
  }

  void read(const Files&, const std::filesystem::path& folder) const override {
    const Program program = load(folder / "x.pt2");
    for (const auto& [name, data] : program.state)
      if (data.is_contiguous()) touch(data.data, data.nbytes());
    for (const auto& example : program.example_inputs)
      if (example.data.is_contiguous()) touch(example.data.data, example.data.nbytes());
    verify(program);
    touch(program.str().data(), 1);
  }

 private:
  // Weights and constants as torch 2.7 wrote them: one pickled dictionary each.
  static std::string older_layout(const std::string& bytes) {
    Records records = records_of(bytes);
    std::erase_if(records, [](const auto& record) { return record.first.starts_with("extra/"); });
    const std::string weights = pickle_of_payloads(records, "data/weights/", "_weights_config.json");
    const std::string constants = pickle_of_payloads(records, "data/constants/", "_constants_config.json");
    std::erase_if(records, [](const auto& record) {
      return record.first.starts_with("data/weights/") || record.first.starts_with("data/constants/");
    });
    records.emplace_back("data/weights/model.pt", weights);
    records.emplace_back("data/constants/model.pt", constants);
    return zip_of("model", records);
  }

  // Another op of the same library, an op that writes, another name: what the structure alone does not give.
  static std::string exchange_names(std::string json, Random& random) {
    static const std::vector<std::string> kOps{"aten.add.Tensor",
                                               "aten.add_.Tensor",
                                               "aten.mul_.Tensor",
                                               "aten.copy_.default",
                                               "aten.zero_.default",
                                               "aten.permute.default",
                                               "aten.transpose.int",
                                               "aten.view.default",
                                               "aten.select.int",
                                               "aten.slice.Tensor",
                                               "aten.split.Tensor",
                                               "aten.unbind.int",
                                               "aten.as_strided.default",
                                               "aten.index_put_.default",
                                               "aten._assert_scalar.default",
                                               "aten.sym_size.int",
                                               "aten.sym_constrain_range_for_size.default",
                                               "aten.cat.default",
                                               "aten.linear.default",
                                               "aten.squeeze_.dim",
                                               "aten.fill_.Scalar",
                                               "aten.reshape.default",
                                               "aten.diagonal.default",
                                               "aten.resize_.default",
                                               "aten.t.default",
                                               "aten.unflatten.int",
                                               "higher_order.wrap_with_set_grad_enabled",
                                               "aten.detach_.default",
                                               "aten.narrow.default",
                                               "aten.nonzero.default"};
    static const std::vector<std::string> kNames{"x",
                                                 "b",
                                                 "w",
                                                 "add",
                                                 "slice_1",
                                                 "select",
                                                 "mul",
                                                 "self",
                                                 "other",
                                                 "dim",
                                                 "size",
                                                 "as_tensor",
                                                 "as_tensors",
                                                 "as_int",
                                                 "as_ints",
                                                 "as_sym_int",
                                                 "as_sym_ints",
                                                 "as_none",
                                                 "as_name",
                                                 "as_expr",
                                                 "as_float",
                                                 "as_bool",
                                                 "as_string",
                                                 "user_input_mutation",
                                                 "buffer_mutation",
                                                 "user_output",
                                                 "buffer",
                                                 "parameter"};
    const bool op = random.one_in(2);
    const std::string open = op ? "torch.ops." : "\"";
    std::vector<size_t> places;
    for (size_t at = json.find(open); at != std::string::npos; at = json.find(open, at + 1))
      places.push_back(at + open.size());
    if (places.empty()) return json;
    const size_t begin = random.pick(places), end = json.find('"', begin);
    if (end != std::string::npos) json.replace(begin, end - begin, random.pick(op ? kOps : kNames));
    return json;
  }
};

}  // namespace

std::vector<std::unique_ptr<Target>> dynamo_targets() {
  std::vector<std::unique_ptr<Target>> targets;
  targets.push_back(std::make_unique<Pt2>());
  targets.push_back(std::make_unique<Pickle>());
  targets.push_back(std::make_unique<Sympy>());
  targets.push_back(std::make_unique<Tree>());
  return targets;
}

}  // namespace transporters::fuzz

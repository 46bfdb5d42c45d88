#include <doctest/doctest.h>

#include "transporters/error.h"
#include "transporters/graph/tree_spec.h"

using transporters::Error;
using transporters::TreeSpec;

namespace {
const char* const kInSpec =
    R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", "children_spec": []}, {"type": "builtins.dict", "context": "[\"input_ids\", \"attention_mask\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}]}])";

const char* const kCacheContext =
    R"({"_t": "obj", "p": "transformers.cache_utils:DynamicCache", "s": {"layers": [{"_t": "obj", "p": "transformers.cache_utils:DynamicLayer", "s": {"keys": {"_t": "tensor", "i": 0}, "values": {"_t": "tensor", "i": 1}, "is_initialized": true}}], "offloading": false}})";
}  // namespace

TEST_CASE("a tree spec is written as treespec_dumps writes it") {
  const TreeSpec spec = TreeSpec::tuple(
      {TreeSpec::tuple({}), TreeSpec::dict({"input_ids", "attention_mask"}, {TreeSpec::leaf(), TreeSpec::leaf()})});
  CHECK(spec.dumps() == kInSpec);
  CHECK(spec.num_leaves() == 2);
  CHECK(TreeSpec::leaf().dumps() == R"([1, {"type": null, "context": null, "children_spec": []}])");
  CHECK(
      TreeSpec::list({TreeSpec::dict({"\xc3\xbc\""}, {TreeSpec::leaf()})}).dumps() ==
      R"([1, {"type": "builtins.list", "context": "null", "children_spec": [{"type": "builtins.dict", "context": "[\"\\u00fc\\\"\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]}])");
}

TEST_CASE("reading and writing a tree spec gives the same bytes") {
  for (
      const char* text :
      {kInSpec, R"([1, {"type": null, "context": null, "children_spec": []}])",
       R"([1, {"type": "collections.deque", "context": "3", "children_spec": [{"type": null, "context": null, "children_spec": []}]}])",
       R"([1, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["q"]}, "children_spec": [{"type": null, "context": null, "children_spec": []}]}])",
       R"([1, {"type": "my.Type", "context": "no JSON \ud83d\ude00", "children_spec": []}])"}) {
    const TreeSpec spec = TreeSpec::loads(text);
    CHECK(spec.dumps() == text);
    CHECK(TreeSpec::loads(spec.dumps()) == spec);
  }
}

TEST_CASE("leaf paths use the names of the context") {
  TreeSpec cache{"transformers.cache_utils:DynamicCache", kCacheContext, {TreeSpec::leaf(), TreeSpec::leaf()}};
  const TreeSpec output{
      "transformers.modeling_outputs.CausalLMOutputWithPast", R"(["logits", "cache"])", {TreeSpec::leaf(), cache}};
  CHECK(output.leaf_paths() == std::vector<std::string>{"logits", "cache.layers.0.keys", "cache.layers.0.values"});
  CHECK(TreeSpec::list({TreeSpec::leaf(), TreeSpec::tuple({TreeSpec::leaf()})}).leaf_paths() ==
        std::vector<std::string>{"0", "1.0"});
  const TreeSpec dataclass{"my.Data", R"([["a", "b"], ["c"]])", {TreeSpec::leaf(), TreeSpec::leaf()}};
  CHECK(dataclass.leaf_paths() == std::vector<std::string>{"a", "b"});
  const TreeSpec pairs{
      "my.Cache",
      R"({"_t": "obj", "p": "my:Cache", "s": {"states": {"_t": "items", "v": [[0, {"_t": "tensor", "i": 0}]]}, "n": {"_t": "sym", "i": 1}}})",
      {TreeSpec::leaf(), TreeSpec::leaf()}};
  CHECK(pairs.leaf_paths() == std::vector<std::string>{"states.0", "n"});
  CHECK(TreeSpec::leaf().leaf_paths() == std::vector<std::string>{""});
  CHECK(TreeSpec::loads(kInSpec).leaf_paths() == std::vector<std::string>{"1.input_ids", "1.attention_mask"});
}

TEST_CASE("text that is no tree spec is refused") {
  auto message = [](const std::string& text) -> std::string {
    try {
      TreeSpec::loads(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("[1, {") == "[tree spec] not JSON: [1, {");
  CHECK(message("{}") == "[tree spec] expected [protocol, tree]");
  CHECK(message("[2, {}]") == "[tree spec] protocol 2 is not known; this version reads protocol 1");
  CHECK(message("[1, 3]") == "[tree spec] expected an object, got number");
  CHECK(message(R"([1, {"type": null, "context": null}])") == "[tree spec] an object lacks 'children_spec'");
  CHECK(message(R"([1, {"type": null, "context": null, "children_spec": 1}])") ==
        "[tree spec] 'children_spec' is no list");
  CHECK(message(R"([1, {"type": 7, "context": null, "children_spec": []}])") == "[tree spec] 'type' is no name");
  CHECK(message(R"([1, {"type": null, "context": null, "children_spec": [{}]}])") == "[tree spec] a leaf has children");
  std::string deep = R"({"type": null, "context": null, "children_spec": []})";
  for (int i = 0; i < 300; ++i)
    deep = R"({"type": "builtins.list", "context": "null", "children_spec": [)" + deep + "]}";
  CHECK(message("[1, " + deep + "]") == "[tree spec] nested deeper than 256 levels");
  const std::string brackets = std::string(100'000, '[') + std::string(100'000, ']');
  const std::string too_deep = "[tree spec] nested deeper than 1000 levels";
  CHECK(message("[" + brackets + ", {}]") == too_deep);
  CHECK(message(R"([1, {"type": "x", "context": )" + brackets + R"(, "children_spec": []}])") == too_deep);
  // Inside a string it is any text, and names nothing.
  const auto text_context =
      TreeSpec::loads(R"([1, {"type": "x", "context": ")" + brackets +
                      R"(", "children_spec": [{"type": null, "context": null, "children_spec": []}]}])");
  CHECK(text_context.leaf_paths() == std::vector<std::string>{"0"});
}

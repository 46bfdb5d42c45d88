#include <doctest/doctest.h>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/checkpoint/index.h"
#include "transporters/error.h"

namespace tp = transporters;
using tests::TemporaryFolder;

namespace {

tp::TensorData byte(uint8_t value) {
  const auto owner = std::make_shared<uint8_t>(value);
  tp::TensorData data;
  data.dtype = tp::ScalarType::Byte;
  data.sizes = data.strides = {1};
  data.data = owner.get();
  data.owner = owner;
  return data;
}

std::string open_error(const TemporaryFolder& folder) {
  try {
    tp::Checkpoint::open(folder.path());
  } catch (const tp::Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("shards are found through the index") {
  const TemporaryFolder folder;
  tp::write_safetensors(folder / "1.safetensors", {{"a", byte(1)}, {"b", byte(2)}});
  tp::write_safetensors(folder / "2.safetensors", {{"c", byte(3)}});
  folder.write("model.safetensors.index.json",
               R"({"metadata": {}, "weight_map": {"a": "1.safetensors", "b": "1.safetensors", "c": "2.safetensors"}})");
  const auto checkpoint = tp::Checkpoint::open(folder.path());
  CHECK(checkpoint.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(*static_cast<const uint8_t*>(checkpoint.get("c").data) == 3);
  CHECK(checkpoint.get("c").file == folder / "2.safetensors");
  CHECK(checkpoint.files().size() == 2);
}

TEST_CASE("an index that does not fit its shards") {
  const TemporaryFolder folder;
  tp::write_safetensors(folder / "1.safetensors", {{"a", byte(1)}});
  const auto error = [&](const std::string& index) {
    folder.write("model.safetensors.index.json", index);
    return open_error(folder);
  };
  CHECK(contains(error(R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})"),
                 "shard '2.safetensors' is missing (it holds 'b'); download it into the same folder"));
  CHECK(contains(error(R"({"weight_map": {"a": "1.safetensors", "aa": "1.safetensors"}})"),
                 "tensor 'aa' should be in shard '1.safetensors' but is not there; did you mean 'a'?"));
  tp::write_safetensors(folder / "2.safetensors", {{"a", byte(1)}, {"b", byte(1)}});
  CHECK(contains(error(R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})"),
                 "2.safetensors: tensor 'a' is also in '" + folder / "1.safetensors" + "'"));
  CHECK(contains(error(R"({"weight_map": {"a": "../1.safetensors"}})"),
                 "the shard of 'a' must be a file beside the index, got '../1.safetensors'"));
  CHECK(contains(error(R"({"weight_map": {"a": 1}})"), "expected the shard of 'a' to be a file name, got 1"));
  CHECK(contains(error(R"({"weights": {}})"), "expected an object with a weight_map"));
  CHECK(contains(error("{"), "is not valid JSON"));
  CHECK(contains(error(R"({"weight_map": {}})"), "the checkpoint has no tensors"));
}

TEST_CASE("a shard that is cut names itself") {
  const TemporaryFolder folder;
  const std::string shard = folder / "1.safetensors";
  tp::write_safetensors(shard, {{"a", byte(1)}});
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "1.safetensors"}})");
  CHECK(contains(open_error(folder), shard + ": truncated by 1 bytes"));
}

TEST_CASE("folders without weights say what to do") {
  const TemporaryFolder folder;
  CHECK(contains(open_error(folder), "expected model.safetensors or model.safetensors.index.json, found neither"));
  folder.write("adapter.safetensors", "");
  CHECK(contains(open_error(folder), "(but adapter.safetensors; rename it or add an index)"));
  folder.write("pytorch_model.bin", "x");
  CHECK(contains(open_error(folder), "only pickled weights are here; convert them to safetensors"));
  CHECK_THROWS_WITH_AS(tp::Checkpoint::open(folder / "none"), doctest::Contains("no such folder"), tp::Error);
  CHECK_THROWS_WITH_AS(tp::Checkpoint::open(folder / "pytorch_model.bin"),
                       doctest::Contains("expected a checkpoint folder, got a file"), tp::Error);
}

#include "transporters/export/metadata.h"

#include <doctest/doctest.h>

#include "error_text.h"
#include "transporters/export/versions.h"
#include "transporters/version.h"

using namespace transporters;

namespace {

// input_ids, a mask in a dict, a constant and a cache; the result is a tensor and None.
Program sample_program() {
  Program program = parse_program(R"(
program TinyForCausalLM
symbol batch in [1, 64] hint 3
input %weight: bf16[4, 8] = parameter "embed.weight"
input %ids: i64[batch, 5] = user "input_ids"
input %mask: b8[batch, 1] = user "masks.full"
input 0.5 = user "scale"
input %keys: bf16[batch, 2, 7, 8] = user "cache.layers.0.keys"
output %ids = user "logits"
output None = user "hidden"
)");
  const TreeSpec cache{"transformers.cache_utils:DynamicCache", "null", {TreeSpec::leaf()}};
  program.in_spec = TreeSpec::tuple(
      {TreeSpec::tuple({}),
       TreeSpec::dict({"input_ids", "masks", "scale", "cache"},
                      {TreeSpec::leaf(), TreeSpec::dict({"full"}, {TreeSpec::leaf()}), TreeSpec::leaf(), cache})});
  program.out_spec = TreeSpec::tuple({TreeSpec::leaf(), TreeSpec::leaf()});
  program.example_inputs = {{"input_ids", {.dtype = ScalarType::Long, .sizes = {2, 5}, .strides = {5, 1}}}};
  return program;
}

bool refused(const std::string& json, const std::string& why) {
  return error_text([&] { parse_manifest(json); }).find(why) != std::string::npos;
}

}  // namespace

TEST_CASE("metadata describes inputs, constants and structure") {
  const Program program = sample_program();
  const ExportMetadata metadata = build_metadata(program, ExportFormat::Onnx, OnnxConfig().to_json());
  CHECK(metadata.architecture == "TinyForCausalLM");
  CHECK(metadata.export_dtype == "bfloat16");
  // Sizes are the sample's where there is one, else those at the hints.
  CHECK(metadata.kwargs == R"({"input_ids":{"rank":2,"shape":[2,5],"dtype":"int64"},)"
                           R"("masks":{"leaves":{"full":{"rank":2,"shape":[3,1],"dtype":"bool"}}},)"
                           R"("scale":{"container":"float"},"cache":{"container":"DynamicCache"}})");
  CHECK(metadata.in_constants == R"({"scale":0.5})");
  CHECK(metadata.out_constants == "[[1,null]]");
  CHECK(build_metadata(program, ExportFormat::Dynamo, "{}").out_constants == "[]");
  CHECK(metadata.in_spec == program.in_spec.dumps());
  REQUIRE(metadata.packages.size() == 2);
  CHECK(metadata.packages[0].second == TRANSPORTERS_VERSION);
}

TEST_CASE("a manifest reads back") {
  const Program program = sample_program();
  ExportMetadata metadata = build_metadata(program, ExportFormat::Onnx, OnnxConfig().to_json());
  CHECK(manifest_json(ExportFormat::Onnx, {{"model", "model.onnx", metadata}}).find("attention") == std::string::npos);
  metadata.attention = "eager";
  const std::string json =
      manifest_json(ExportFormat::Onnx, {{"model", "model.onnx", metadata}, {"decode", "decode.onnx", metadata}});
  CHECK(json.starts_with("{\n  \"schema_version\": 1,\n  \"export_format\": \"onnx\",\n  \"components\": {\n"));
  CHECK(json.ends_with("}\n"));
  const auto [format, entries] = parse_manifest(json);
  CHECK(format == ExportFormat::Onnx);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].component == "model");
  CHECK(entries[1].component == "decode");
  CHECK(entries[1].file == "decode.onnx");
  CHECK(entries[1].metadata.kwargs == metadata.kwargs);
  CHECK(entries[1].metadata.in_spec == metadata.in_spec);
  CHECK(entries[1].metadata.attention == "eager");
  CHECK(manifest_json(format, entries) == json);
}

TEST_CASE("a manifest of a later version or with missing parts is refused") {
  CHECK(refused("nonsense", "export.json is not JSON"));
  CHECK(refused(R"({"schema_version": 2})", "schema 2 is newer than 1"));
  CHECK(refused(R"({"schema_version": 1})", "'export_format' is missing"));
  CHECK(refused(R"({"export_format": "onnx"})", "'components' is missing"));
  CHECK(refused(R"({"export_format": "onnx", "components": {"model": {}}})", "'file' is missing"));
  CHECK(refused(R"({"export_format": "onnx", "components": {"model": {"file": "../x.onnx"}}})",
                "expected a file of this folder"));
  CHECK(refused(R"({"export_format": "onnx", "components": {"model": {"file": "x", "metadata": {"kwargs": 1}}}})",
                "'kwargs': expected an object, got 1"));
  CHECK(refused(R"({"schema_version": 1e999})", "export.json is not JSON"));
  CHECK(refused(R"({"components": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
                "export.json nests deeper than 1000 levels"));
  // What is left out is empty, and can be written again.
  const auto bare = parse_manifest(R"({"export_format": "onnx", "components": {"model": {"file": "x"}}})");
  CHECK(manifest_json(bare.first, bare.second).find("\"kwargs\": {}") != std::string::npos);
  // Fields that later versions add are skipped.
  CHECK(parse_manifest(R"({"export_format": "onnx", "new": 1, "components": {"model": {"file": "x", "more": 2}}})")
            .second.size() == 1);
}

TEST_CASE("versions are compared without their build") {
  CHECK(version_warning("torch", "2.13.0+cpu", "2.13.0").empty());
  const std::string warning = version_warning("torch", "2.14.1", "2.13.0");
  CHECK(warning.find("torch 2.14.1") != std::string::npos);
  CHECK(warning.find("2.13.0") != std::string::npos);
  CHECK(torch_version() == TRANSPORTERS_TESTED_TORCH_VERSION);
  CHECK(version_warnings().empty());
}

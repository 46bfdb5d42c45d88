#include "transporters/export/configs.h"

#include <doctest/doctest.h>

#include "error_text.h"

using namespace transporters;

namespace {
bool refused(const std::string& json, const std::string& why) {
  return error_text([&] { AutoExportConfig::from_json(json); }).find(why) != std::string::npos;
}
}  // namespace

TEST_CASE("a config's JSON is the one transformers writes") {
  OnnxConfig onnx;
  onnx.dynamic = true;
  CHECK(onnx.to_json() == R"({
  "dynamic": true,
  "dynamic_shapes": null,
  "export_format": "onnx",
  "opset_version": null,
  "optimize": true,
  "ort_fusions": null,
  "prefer_deferred_runtime_asserts_over_guards": false,
  "strict": false
})");
  DynamoConfig dynamo;
  dynamo.dynamic = true;
  CHECK(dynamo.to_json() == R"({
  "dynamic": true,
  "dynamic_shapes": null,
  "export_format": "dynamo",
  "prefer_deferred_runtime_asserts_over_guards": false,
  "strict": false
})");
}

TEST_CASE("the config class follows export_format, and every field survives a round trip") {
  OnnxConfig onnx;
  onnx.dynamic_shapes = {{"input_ids", {{0, Dim("batch", 1, 64)}, {1, Dim::automatic()}}}};
  onnx.strict = true;
  onnx.prefer_deferred_runtime_asserts_over_guards = true;
  onnx.opset_version = 20;
  onnx.optimize = false;
  onnx.external_data_threshold = 1024;
  const ExportConfig read = AutoExportConfig::from_json(onnx.to_json());
  REQUIRE(std::holds_alternative<OnnxConfig>(read));
  const auto& same = std::get<OnnxConfig>(read);
  CHECK(same.to_json() == onnx.to_json());
  CHECK(same.opset_version == 20);
  CHECK(same.external_data_threshold == 1024);
  CHECK(same.dynamic_shapes.named().at("input_ids").at(0) == Dim("batch", 1, 64));

  const ExportConfig dynamo = AutoExportConfig::from_json(R"({"export_format": "dynamo", "dynamic": true})");
  REQUIRE(std::holds_alternative<DynamoConfig>(dynamo));
  CHECK(std::get<DynamoConfig>(dynamo).dynamic);
}

TEST_CASE("wrong configs are refused with what was expected") {
  CHECK(refused("[]", "expected an object, got a list of 0"));
  CHECK(refused("{}", "'export_format' is missing"));
  CHECK(refused(R"({"export_format": "onxn"})", "did you mean 'onnx'?"));
  CHECK(refused(R"({"export_format": "tensorrt"})", "formats are 'dynamo', 'onnx'"));
  // What can't be chosen is not offered.
  CHECK(!refused(R"({"export_format": "tensorrt"})", "openvino"));
  CHECK(refused(R"({"export_format": "openvin"})", "formats are 'dynamo', 'onnx'"));
  CHECK(refused(R"({"export_format": "openvino"})", "not part of this build"));
  CHECK(refused(R"({"export_format": "onnx", "dynamics": true})", "did you mean 'dynamic'"));
  CHECK(refused(R"({"export_format": "onnx", "dynamic": 1})", "'dynamic': expected true or false, got 1"));
  CHECK(refused(R"({"export_format": "onnx", "opset_version": "18"})", "expected an integer, got \"18\""));
  CHECK(refused(R"({"export_format": "onnx", "opset_version": 17})", "expected 18 to 24, got 17"));
  CHECK(refused(R"({"export_format": "onnx", "external_data_threshold": -1})", "0 or more bytes"));
  CHECK(refused(R"({"export_format": "onnx", "ort_fusions": "cpu"})", "only standard ONNX"));
  CHECK(refused(R"({"export_format": "dynamo", "opset_version": 18})", "unknown field 'opset_version'"));
  CHECK(refused(R"({"export_format": "dynamo", "dynamic_shapes": {"x": {"0": {"nam": "n"}}}})", "did you mean 'name'"));
  CHECK(refused(R"({"export_format": "dynamo", "quantizer": {}})", "no quantizers"));
  CHECK(error_text([] { DynamoConfig::from_json(R"({"export_format": "onnx"})"); }).find("not 'dynamo'") !=
        std::string::npos);
}

TEST_CASE("the default config of a format") {
  CHECK(std::holds_alternative<OnnxConfig>(AutoExportConfig::for_format(ExportFormat::Onnx)));
  CHECK(std::holds_alternative<DynamoConfig>(AutoExportConfig::for_format(ExportFormat::Dynamo)));
  CHECK(error_text([] { AutoExportConfig::for_format(ExportFormat::Executorch); }).find("'executorch'") !=
        std::string::npos);
}

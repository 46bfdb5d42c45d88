#include "transporters/export/dim.h"

#include <doctest/doctest.h>

#include "error_text.h"

using namespace transporters;

namespace {
std::string round_trip(const std::string& json) { return DynamicShapes::from_json(json).to_json(); }
std::string refusal(const std::string& json) {
  return error_text([&] { DynamicShapes::from_json(json); });
}
bool refused(const std::string& json, const std::string& why) { return refusal(json).find(why) != std::string::npos; }
}  // namespace

TEST_CASE("axes are read by name, by position and from lists") {
  const auto shapes = DynamicShapes::from_json(
      R"({"input_ids": {"0": "batch", "1": {"name": "sequence", "min": 1, "max": 512}}, "mask": ["batch", "auto"]})");
  REQUIRE(shapes.named().size() == 2);
  CHECK(shapes.named().at("input_ids").at(0) == Dim("batch"));
  CHECK(shapes.named().at("input_ids").at(1) == Dim("sequence", 1, 512));
  CHECK(shapes.named().at("mask").at(0) == Dim("batch"));
  CHECK(shapes.named().at("mask").at(1) == Dim::automatic());

  const auto positional = DynamicShapes::from_json(R"([{"-1": "width"}, null, ["static", null]])");
  REQUIRE(positional.positional().size() == 3);
  CHECK(positional.positional()[0].at(-1) == Dim("width"));
  CHECK(positional.positional()[1].empty());
  CHECK(positional.positional()[2].at(0) == Dim::fixed());
  CHECK(positional.positional()[2].at(1) == Dim::fixed());
  CHECK(DynamicShapes::from_json("null").empty());
}

TEST_CASE("dynamic shapes write what they read") {
  for (const char* json :
       {R"({"input_ids":{"0":"batch","1":{"name":"sequence","min":1,"max":512}}})",
        R"([{"-1":"width"},{},{"0":"static","1":"auto"}])", R"({"x":{"0":{"name":"n","auto":true,"max":9}}})",
        R"({"x":{"0":{"name":"auto"}}})", R"({"x":{"2":{"name":"heads","min":2}}})"}) {
    CHECK(round_trip(json) == json);
  }
}

TEST_CASE("a name alone is the dim that is described elsewhere, before or after") {
  const Dim sequence("sequence", 2, 64);
  for (const char* json : {R"({"ids": {"1": {"name": "sequence", "min": 2, "max": 64}}, "mask": {"1": "sequence"}})",
                           R"({"ids": {"1": "sequence"}, "mask": {"1": {"name": "sequence", "min": 2, "max": 64}}})",
                           R"([{"1": "sequence"}, {"1": {"name": "sequence", "min": 2, "max": 64}}])"}) {
    const auto shapes = DynamicShapes::from_json(json);
    for (const auto& [name, dims] : shapes.named()) CHECK(dims.at(1) == sequence);
    for (const auto& dims : shapes.positional()) CHECK(dims.at(1) == sequence);
  }
  const auto automatic = DynamicShapes::from_json(R"({"x": {"0": {"name": "n", "auto": true}, "1": "n"}})");
  CHECK(automatic.named().at("x").at(1) == Dim::automatic("n"));
}

TEST_CASE("descriptions that make no sense are refused with their place") {
  CHECK(refused("{", "is not JSON"));
  CHECK(refused("\"batch\"", "expected an object by input"));
  CHECK(refused(R"({"x": "batch"})", "'x': expected an object of axes"));
  CHECK(refused(R"({"x": {"first": "batch"}})", "axes are numbers"));
  CHECK(refused(R"({"x": {"0": "batch", "00": "batch"}})", "axis 0 is given twice"));
  CHECK(refused(R"({"x": {"0": 7}})", "axis 0 of 'x': expected a name"));
  CHECK(refused(R"({"x": {"0": "batch size"}})", "letters, digits and underscores"));
  CHECK(refused(R"({"x": {"0": {"name": "n", "min": 4, "max": 3}}})", "max 3 is less than min 4"));
  CHECK(refused(R"({"x": {"0": {"name": "n", "min": -1}}})", "min is -1"));
  CHECK(refused(R"({"x": {"0": {"name": "n", "maximum": 3}}})", "unknown field 'maximum'"));
  CHECK(refused(R"({"x": {"0": {"min": 3}}})", "needs a \"name\""));
  CHECK(refused(R"({"x": {"0": {"name": "n", "min": 1.5}}})", "expected an integer, got 1.5"));
  CHECK(refused(R"({"x": {"0": {"name": "n", "max": 4}}, "y": {"0": {"name": "n", "max": 5}}})",
                "described in another way"));
}

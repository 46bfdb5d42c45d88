#include <doctest/doctest.h>

#include "tests/checkpoint/temporary_folder.h"
#include "transporters/checkpoint/config.h"
#include "transporters/checkpoint/rope_parameters.h"
#include "transporters/error.h"

namespace tp = transporters;

namespace {

tp::Config parse(const std::string& text) { return tp::Config::parse(text, "config.json"); }

template <typename Call>
std::string error(Call call) {
  try {
    call();
  } catch (const tp::Error& e) {
    return e.what();
  }
  return "no error";
}

const std::string kPrefix = "[checkpoint] config.json: ";

}  // namespace

TEST_CASE("values with types and defaults") {
  const auto config = parse(R"({"hidden_size": 32, "eps": 1e-5, "whole": 2.0, "tie": true, "act": "gelu", "none": null,
                                "names": ["a", "b"], "factors": [1, 2.5], "inner": {"x": 3}})");
  CHECK(config.positive("hidden_size") == 32);
  CHECK(config.integer("whole") == 2);
  CHECK(config.integer("absent", 7) == 7);
  CHECK(config.integer("none", 7) == 7);
  CHECK(!config.integer_or_none("none"));
  CHECK(config.is_null("none"));
  CHECK(!config.is_null("absent"));
  CHECK(config.real("eps") == 1e-5);
  CHECK(config.real("hidden_size") == 32.0);
  CHECK(config.boolean("tie", false));
  CHECK(config.string("act", "relu") == "gelu");
  CHECK(config.strings("names") == std::vector<std::string>{"a", "b"});
  CHECK(config.reals("factors") == std::vector<double>{1.0, 2.5});
  CHECK(config.object("inner").integer("x") == 3);
  CHECK(config.object("inner").path() == "inner");
}

TEST_CASE("values that make no sense name the key, what was expected and what came") {
  const auto config = parse(R"({"neg": -4, "text": "12", "half": 2.5, "list": [1], "object": {"n": "x"}, "huge": 1e30,
                                "big": 18446744073709551615, "mixed": ["a", 1]})");
  CHECK(error([&] { config.positive("neg"); }) ==
        kPrefix + "'neg' expected a whole number from 1 to 2147483647, got -4");
  CHECK(error([&] { config.positive("text"); }) == kPrefix + "'text' expected a whole number, got \"12\"");
  CHECK(error([&] { config.integer("half"); }) == kPrefix + "'half' expected a whole number, got 2.5");
  CHECK(error([&] { config.integer("huge"); }) == kPrefix + "'huge' expected a whole number, got 1e+30");
  CHECK(error([&] { config.integer("big"); }) == kPrefix + "'big' expected a whole number, got 18446744073709551615");
  CHECK(error([&] { config.integer("absent"); }) == kPrefix + "'absent' is missing; expected a whole number");
  CHECK(error([&] { config.real("list"); }) == kPrefix + "'list' expected a number, got [1]");
  CHECK(error([&] { config.boolean("text", false); }) == kPrefix + "'text' expected true or false, got \"12\"");
  CHECK(error([&] { config.string("neg"); }) == kPrefix + "'neg' expected a string, got -4");
  CHECK(error([&] { config.strings("mixed"); }) == kPrefix + "'mixed' expected a list of strings, got 1 in it");
  CHECK(error([&] { config.reals("text"); }) == kPrefix + "'text' expected a list of numbers, got \"12\"");
  CHECK(error([&] { config.object("neg"); }) == kPrefix + "'neg' expected an object, got -4");
  CHECK(error([&] { config.string("object"); }) == kPrefix + "'object' expected a string, got an object with 1 keys");
  CHECK(error([&] { config.object("object").integer("n"); }) ==
        kPrefix + "'object.n' expected a whole number, got \"x\"");
  CHECK(error([&] { parse("[]"); }) == kPrefix + "expected a JSON object, got []");
  CHECK(error([&] { parse("{\"a\": }"); }).starts_with(kPrefix + "is not valid JSON"));
}

TEST_CASE("type of the weights, architectures, labels") {
  CHECK((parse(R"({"dtype": "bfloat16"})").dtype() == c10::ScalarType::BFloat16));
  CHECK((parse(R"({"torch_dtype": "torch.float16"})").dtype() == c10::ScalarType::Half));
  CHECK(!parse(R"({"torch_dtype": "auto"})").dtype());
  CHECK(!parse("{}").dtype());
  CHECK(error([] { parse(R"({"dtype": "float17"})").dtype(); }) ==
        kPrefix + "'dtype' expected a type such as float32, float16 or bfloat16, got \"float17\"");
  CHECK(parse(R"({"architectures": ["A", "B"]})").architectures() == std::vector<std::string>{"A", "B"});
  CHECK(parse("{}").num_labels() == 2);
  CHECK(parse(R"({"num_labels": 5})").num_labels() == 5);
  CHECK(parse(R"({"id2label": {"0": "x", "1": "y", "2": "z"}})").num_labels() == 3);
}

TEST_CASE("a folder without config.json") {
  const tests::TemporaryFolder folder;
  CHECK(error([&] { tp::Config::from_folder(folder.path()); }) ==
        "[checkpoint] " + folder.path() +
            ": no config.json here; a checkpoint folder holds config.json and model.safetensors");
  CHECK(error([&] { tp::Config::from_folder(folder / "x"); }).find("no such folder") != std::string::npos);
}

TEST_CASE("generation_config.json is optional") {
  const tests::TemporaryFolder folder;
  CHECK(!tp::Config::generation_from_folder(folder.path()));
  folder.write("generation_config.json", R"({"eos_token_id": [1, 2], "max_length": 7})");
  CHECK(tp::Config::generation_from_folder(folder.path())->integer("max_length") == 7);
}

TEST_CASE("a height and a width") {
  const auto config = parse(R"({"both": 8, "two": [8, 16], "three": [1, 2, 3], "zero": [0, 1]})");
  CHECK(config.positive_pair("both", 1) == std::pair<int64_t, int64_t>{8, 8});
  CHECK(config.positive_pair("two", 1) == std::pair<int64_t, int64_t>{8, 16});
  CHECK(config.positive_pair("absent", 4) == std::pair<int64_t, int64_t>{4, 4});
  CHECK(error([&] { config.positive_pair("three", 1); }) ==
        kPrefix + "'three' expected a positive whole number or a list of two, got [1, 2, 3]");
  CHECK(error([&] { config.positive_pair("zero", 1); }) ==
        kPrefix + "'zero' expected a positive whole number or a list of two, got [0, 1]");
}

TEST_CASE("rotary settings in every spelling") {
  const auto modern =
      tp::rope_parameters(parse(R"({"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 5}})"));
  CHECK(modern.type == "linear");
  CHECK(modern.factor == 2.0);
  CHECK(modern.theta == 5.0);
  const auto old = tp::rope_parameters(parse(R"({"rope_theta": 7, "rope_scaling": {"type": "dynamic", "factor": 3}})"));
  CHECK(old.type == "dynamic");
  CHECK(old.theta == 7.0);
  CHECK(old.factor == 3.0);
  CHECK(tp::rope_parameters(parse("{}"), 123.0).theta == 123.0);
  CHECK(tp::rope_parameters(parse(R"({"rope_theta": 7, "rope_scaling": null})")).type == "default");
  const auto nested = parse(R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6},
                                "sliding_attention": {"rope_theta": 1e4}}})");
  CHECK(tp::rope_parameters(nested, 1.0, "full_attention").theta == 1e6);
  CHECK(tp::rope_parameters(nested, 1.0, "sliding_attention").theta == 1e4);
  // The length training ended at, beside the scaling (Phi-3) or in it; else the whole length.
  const std::string yarn = R"("max_position_embeddings": 64, "rope_scaling": {"rope_type": "yarn", "factor": 4}})";
  CHECK(tp::rope_parameters(parse("{" + yarn)).original_max_position_embeddings == 64);
  CHECK(tp::rope_parameters(parse(R"({"original_max_position_embeddings": 16, )" + yarn))
            .original_max_position_embeddings == 16);
}

TEST_CASE("numbers out of range") {
  const auto config = parse(R"({"negative": -1e-6, "zero": 0, "huge": 1e308})");
  CHECK(config.non_negative_real("zero", 1.0) == 0.0);
  CHECK(config.non_negative_real("absent", 0.5) == 0.5);
  CHECK(config.positive_real("huge", 1.0) == 1e308);
  CHECK(error([&] { config.non_negative_real("negative", 1.0); }) ==
        kPrefix + "'negative' expected a number of 0 or more, got -1e-06");
  CHECK(error([&] { config.positive_real("zero", 1.0); }) == kPrefix + "'zero' expected a number above 0, got 0");
}

TEST_CASE("rotary settings that make no sense") {
  const auto message = [](const std::string& text) { return error([&] { tp::rope_parameters(parse(text)); }); };
  CHECK(message(R"({"rope_parameters": {"rope_type": "yarm"}})") ==
        kPrefix + "'rope_parameters.rope_type' names an unknown kind 'yarm'; did you mean 'yarn'?");
  CHECK(message(R"({"rope_scaling": {"type": "linear"}})") ==
        kPrefix + "'rope_scaling.factor' is missing; expected a number");
  CHECK(message(R"({"rope_scaling": {"type": "linear", "factor": 0}})") ==
        kPrefix + "'rope_scaling.factor' expected a number above 0, got 0");
  CHECK(message(R"({"rope_theta": -1})") == kPrefix + "'rope_theta' expected a number above 0, got -1");
  CHECK(message(R"({"rope_theta": 0})") == kPrefix + "'rope_theta' expected a number above 0, got 0");
  CHECK(message(R"({"rope_scaling": {"type": "yarn", "factor": 2, "attention_factor": -1}})") ==
        kPrefix + "'rope_scaling.attention_factor' expected a number above 0, got -1");
  CHECK(message(R"({"rope_scaling": {"type": "longrope", "short_factor": [1, 0], "long_factor": [1, 1]}})") ==
        kPrefix + "'rope_scaling.short_factor' expected a number above 0, got 0");
  CHECK(message(R"({"rope_scaling": 4})") == kPrefix + "'rope_scaling' expected an object, got 4");
  CHECK(message(R"({"partial_rotary_factor": 2})") ==
        kPrefix + "'partial_rotary_factor' expected a number above 0 and at most 1, got 2");
  CHECK(message(R"({"rope_scaling": {"type": "longrope", "short_factor": [1]}})") ==
        kPrefix + "'rope_scaling.long_factor' is missing; longrope needs it");
  CHECK(message(R"({"rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1}})") ==
        kPrefix + "'rope_scaling.high_freq_factor' expected more than low_freq_factor (4), got 1");
}

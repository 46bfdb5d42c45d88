#include "transporters/checkpoint/rope_parameters.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "transporters/error.h"

namespace transporters {
namespace {

const std::vector<std::string> kKinds{"default", "linear", "dynamic", "yarn", "longrope", "llama3"};

std::string number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

double positive_real(const Config& config, const std::string& key, double value) {
  if (!(value > 0.0) || !std::isfinite(value)) config.fail(key, "expected a number above 0, got " + number(value));
  return value;
}

void read_scaling(const Config& scaling, const Config& config, RopeParameters& rope) {
  const int64_t max_positions = config.positive("max_position_embeddings", 2048);
  rope.original_max_position_embeddings = config.has("original_max_position_embeddings")
                                              ? config.positive("original_max_position_embeddings")
                                              : scaling.positive("original_max_position_embeddings", max_positions);
  // yarn and longrope can leave the factor to the ratio of the two lengths.
  const bool needs_factor = rope.type == "linear" || rope.type == "dynamic" || rope.type == "llama3";
  if (needs_factor || scaling.has("factor")) {
    rope.factor = positive_real(scaling, "factor", scaling.real("factor"));
  } else {
    rope.factor = static_cast<double>(max_positions) / static_cast<double>(rope.original_max_position_embeddings);
  }
  rope.attention_factor = scaling.real_or_none("attention_factor");
  if (rope.attention_factor) positive_real(scaling, "attention_factor", *rope.attention_factor);
  rope.beta_fast = positive_real(scaling, "beta_fast", scaling.real("beta_fast", rope.beta_fast));
  rope.beta_slow = positive_real(scaling, "beta_slow", scaling.real("beta_slow", rope.beta_slow));
  rope.mscale = scaling.real("mscale", rope.mscale);
  rope.mscale_all_dim = scaling.real("mscale_all_dim", rope.mscale_all_dim);
  rope.truncate = scaling.boolean("truncate", rope.truncate);
  if (rope.type == "longrope") {
    rope.short_factor = scaling.reals("short_factor");
    rope.long_factor = scaling.reals("long_factor");
    if (rope.short_factor.empty()) scaling.fail("short_factor", "is missing; longrope needs it");
    if (rope.long_factor.empty()) scaling.fail("long_factor", "is missing; longrope needs it");
    for (const double factor : rope.short_factor) positive_real(scaling, "short_factor", factor);
    for (const double factor : rope.long_factor) positive_real(scaling, "long_factor", factor);
  }
  if (rope.type == "llama3") {
    rope.low_freq_factor = positive_real(scaling, "low_freq_factor", scaling.real("low_freq_factor"));
    rope.high_freq_factor = positive_real(scaling, "high_freq_factor", scaling.real("high_freq_factor"));
    if (rope.high_freq_factor <= rope.low_freq_factor)
      scaling.fail("high_freq_factor", "expected more than low_freq_factor (" + number(rope.low_freq_factor) +
                                           "), got " + number(rope.high_freq_factor));
  }
}

}  // namespace

RopeParameters rope_parameters(const Config& config, double default_theta, const std::string& layer_type) {
  RopeParameters rope;
  const bool modern = config.is_object("rope_parameters");
  std::optional<Config> scaling;
  if (modern) {
    scaling = config.object("rope_parameters");
    if (scaling->is_object(layer_type)) scaling = scaling->object(layer_type);
  } else if (config.has("rope_scaling")) {
    scaling = config.object("rope_scaling");
  }
  const auto read = [&](const std::string& key, double missing) {
    return scaling && scaling->has(key) ? scaling->real(key) : config.real(key, missing);
  };
  rope.theta = positive_real(config, "rope_theta", read("rope_theta", default_theta));
  rope.partial_rotary_factor = read("partial_rotary_factor", 1.0);
  if (!(rope.partial_rotary_factor > 0.0 && rope.partial_rotary_factor <= 1.0))
    config.fail("partial_rotary_factor",
                "expected a number above 0 and at most 1, got " + number(rope.partial_rotary_factor));
  if (!scaling) return rope;
  const std::string key = scaling->has("rope_type") ? "rope_type" : "type";
  rope.type = scaling->string(key, "default");
  rope.mrope_section = scaling->integers("mrope_section");
  if (rope.type == "mrope") rope.type = "default";  // as older configs of such models say
  if (std::find(kKinds.begin(), kKinds.end(), rope.type) == kKinds.end()) {
    const auto near = did_you_mean(rope.type, kKinds);
    scaling->fail(key, "names an unknown kind '" + rope.type + "'" +
                           (near.empty() ? "; known are default, linear, dynamic, yarn, longrope and llama3" : near));
  }
  if (rope.type != "default") read_scaling(*scaling, config, rope);
  return rope;
}

}  // namespace transporters

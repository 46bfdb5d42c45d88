#include "transporters/models/nllb_moe.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "transporters/layers/mlp.h"
#include "transporters/models/seq2seq.h"

namespace transporters {
namespace {

struct RouterSettings {
  explicit RouterSettings(const Config& config)
      : experts(config.positive("num_experts", 128)),
        capacity(config.integer("expert_capacity", 64)),
        capacity_fraction(config.real("moe_eval_capacity_token_fraction", 1.0)),
        token_dropout(config.real("moe_token_dropout", 0.2)),
        bias(config.boolean("router_bias", false)),
        ignores_padding(config.boolean("router_ignore_padding_tokens", false)),
        normalizes_first(config.boolean("normalize_router_prob_before_dropping", false)),
        by_priority(config.boolean("batch_prioritized_routing", false)) {
    const std::string name = config.string("router_dtype", "float32");
    const auto type = dtype_from_name(name);
    if (!type || !c10::isFloatingType(*type))
      config.fail("router_dtype", "expected float32, float16 or bfloat16, got '" + name + "'");
    dtype = *type;
    const std::string policy = config.string("second_expert_policy", "all");
    if (policy != "all")
      config.fail("second_expert_policy",
                  "is '" + policy + "': experts chosen at random can't be exported; expected 'all'");
    if (experts < 2) config.fail("num_experts", "expected 2 at least, got 1");
  }

  int64_t experts, capacity;
  double capacity_fraction;  // of the tokens; not positive: the capacity is a number
  double token_dropout;
  bool bias, ignores_padding, normalizes_first, by_priority;
  at::ScalarType dtype = at::kFloat;
};

// The weights of each token's first and second expert: [tokens, 1], in the type of the states.
struct Routes {
  at::Tensor first, second;
};

class NllbMoeRouter : public Module {
 public:
  NllbMoeRouter(const Weights& weights, int64_t hidden_size, const RouterSettings& r) : Module(weights), r_(r) {
    classifier = member<Linear>(weights, "classifier", hidden_size, r.experts, r.bias);
  }

  // Of states [tokens, hidden]; `is_padding` [tokens] may be undefined.
  Routes forward(const at::Tensor& x, const at::Tensor& is_padding) const {
    const ModuleScope scope(path());
    const auto type = x.scalar_type();
    // transformers casts the classifier itself, once and for all; here its weights are cast where they are used.
    const auto logits = at::linear(
        x.to(r_.dtype), classifier->weight.to(r_.dtype),
        classifier->bias.defined() ? std::optional<at::Tensor>(classifier->bias.to(r_.dtype)) : std::nullopt);
    const auto scores = at::softmax(logits, -1, r_.dtype).to(type);
    const auto experts = at::arange(r_.experts, at::kLong);
    auto is_first = scores.argmax(-1, /*keepdim=*/true).eq(experts);
    const auto others = logits.masked_fill(is_first, -std::numeric_limits<double>::infinity());
    auto is_second = others.argmax(-1, /*keepdim=*/true).eq(experts);
    const auto weight = [&](const at::Tensor& chosen) { return (scores * chosen).sum(-1, /*keepdim=*/true); };
    Routes routes;
    if (r_.normalizes_first) routes = normalized({weight(is_first), weight(is_second)});
    if (is_padding.defined() && !r_.ignores_padding) {
      const auto is_token = is_padding.logical_not().unsqueeze(-1);
      is_first = is_first.logical_and(is_token);
      is_second = is_second.logical_and(is_token);
    }
    // An expert has no more than all tokens.
    if (r_.capacity_fraction < 1.0) drop_late_tokens(scores, is_first, is_second);
    if (!r_.normalizes_first) routes = normalized({weight(is_first), weight(is_second)});
    return {routes.first * is_first.any(-1, /*keepdim=*/true), routes.second * is_second.any(-1, /*keepdim=*/true)};
  }

 private:
  static Routes normalized(const Routes& routes) {
    const auto type = routes.first.scalar_type();
    const double eps = type == at::kHalf       ? 0x1p-10
                       : type == at::kBFloat16 ? 0x1p-7
                       : type == at::kDouble   ? std::numeric_limits<double>::epsilon()
                                               : static_cast<double>(std::numeric_limits<float>::epsilon());
    const auto sum = at::clamp_min(routes.first + routes.second, eps);
    return {routes.first / sum, routes.second / sum};
  }

  // Experts take tokens up to their capacity, first those whose first choice they are.
  void drop_late_tokens(const at::Tensor& scores, at::Tensor& is_first, at::Tensor& is_second) const {
    const auto first = is_first.to(at::kLong), second = is_second.to(at::kLong);
    at::Tensor first_place, second_place;
    if (r_.by_priority) {
      const auto order = at::argsort(-std::get<0>(scores.max(-1)), /*stable=*/true, 0);
      const auto back = at::argsort(order, /*stable=*/true, 0);
      const auto place = [&](const at::Tensor& chosen) {
        const auto sorted = chosen.index_select(0, order);
        return ((at::cumsum(sorted, 0) - 1) * sorted).index_select(0, back);
      };
      first_place = place(first);
      second_place = place(second);
    } else {
      first_place = at::cumsum(first, 0) - 1;
      second_place = at::cumsum(second, 0) - 1;
    }
    second_place = second_place + first.sum(0, /*keepdim=*/true);
    const auto has_room = [&](const at::Tensor& place) {
      if (r_.capacity_fraction <= 0) return place.lt(r_.capacity);
      const auto tokens = at::ones_like(place.select(1, 0)).sum().to(at::kDouble);
      return place.lt(at::ceil(tokens * r_.capacity_fraction));
    };
    is_first = is_first.logical_and(has_room(first_place));
    is_second = is_second.logical_and(has_room(second_place));
  }

  RouterSettings r_;
  std::shared_ptr<Linear> classifier;
};

class NllbMoeExperts : public Module {
 public:
  NllbMoeExperts(const Weights& weights, const Seq2SeqSettings& s, int64_t intermediate_size, int64_t count)
      : Module(weights) {
    for (int64_t i = 0; i < count; ++i)
      experts_.push_back(member<MLP<Linear>>(weights, "expert_" + std::to_string(i), "fc1", "fc2", s.hidden_size,
                                             intermediate_size, s.activation));
  }

  // transformers (5.24) takes the router's mask of zeros and ones for numbers of experts: "expert_1" computes what goes
  // to a token's first expert, whichever that is, and "expert_0" what goes to its second. The others are never used.
  at::Tensor forward(const at::Tensor& x, const Routes& routes, double factor) const {
    const ModuleScope scope(path());
    const auto output = [&](size_t i, const at::Tensor& weight) {
      const auto y = experts_[i]->forward(x) * weight;
      return factor == 1.0 ? y : y * factor;
    };
    return output(0, routes.second) + output(1, routes.first);
  }

 private:
  std::vector<std::shared_ptr<MLP<Linear>>> experts_;
};

class NllbMoeSparse : public Seq2SeqFeedForward {
 public:
  NllbMoeSparse(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s, int64_t size)
      : Seq2SeqFeedForward(weights) {
    const RouterSettings r(context.config);
    factor_ = r.token_dropout > 0 ? 1.0 - r.token_dropout : 1.0;
    router = member<NllbMoeRouter>(weights, "router", s.hidden_size, r);
    experts = member<NllbMoeExperts>(weights, "experts", s, size, r.experts);
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask) const override {
    const ModuleScope scope(path());
    const auto tokens = x.flatten(0, 1);
    const auto y = experts->forward(tokens, router->forward(tokens, padding(x, mask)), factor_);
    return y.view_symint(x.sym_sizes());
  }

 private:
  // [tokens]: what the mask of the last query hides. With tokens in a cache, transformers reads as many values from the
  // end of the batch's rows as there are new tokens.
  static at::Tensor padding(const at::Tensor& x, const at::Tensor& mask) {
    if (!mask.defined()) return {};
    const auto row = mask.select(2, -1).reshape_symint({-1});
    const auto hidden = row.scalar_type() == at::kBool ? row.logical_not() : row.ne(0);
    const auto batch = x.sym_size(0);
    return hidden.slice_symint(0, batch * (mask.sym_size(3) - x.sym_size(1)));
  }

  double factor_;
  std::shared_ptr<NllbMoeRouter> router;
  std::shared_ptr<NllbMoeExperts> experts;
};

class NllbMoeDense : public Seq2SeqFeedForward {
 public:
  NllbMoeDense(const Weights& weights, const Seq2SeqSettings& s, int64_t size)
      : Seq2SeqFeedForward(weights), activation_(s.activation) {
    fc1 = member<Linear>(weights, "fc1", s.hidden_size, size);
    fc2 = member<Linear>(weights, "fc2", size, s.hidden_size);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& /*mask*/) const override {
    const ModuleScope scope(path());
    return fc2->forward(activation_(fc1->forward(x)));
  }

 private:
  std::shared_ptr<Linear> fc1, fc2;
  Activation activation_;
};

std::shared_ptr<Seq2SeqFeedForward> feed_forward(const Weights& weights, const ModelContext& context,
                                                 const Seq2SeqSettings& s, int64_t layer, bool is_decoder) {
  const int64_t step = context.config.integer(is_decoder ? "decoder_sparse_step" : "encoder_sparse_step", 4);
  const int64_t size = (is_decoder ? s.decoder : s.encoder).intermediate_size;
  if (step > 0 && (layer + 1) % step == 0) return std::make_shared<NllbMoeSparse>(weights, context, s, size);
  return std::make_shared<NllbMoeDense>(weights, s, size);
}

Seq2SeqSettings settings(const Config& config) {
  Seq2SeqSettings defaults;
  defaults.class_prefix = "NllbMoe";
  defaults.vocab_size = 128112;
  defaults.positions = Seq2SeqSettings::Positions::Sinusoidal;
  Seq2SeqSettings s = Seq2SeqSettings::from_config(config, defaults);
  s.activation = activation(config, "activation_function", "relu");
  if (config.boolean("scale_embedding", true)) s.embedding_scale = std::sqrt(static_cast<double>(s.hidden_size));
  s.norms_first = true;
  s.encoder_clamp = s.decoder_clamp = Seq2SeqSettings::Clamp::WhenNotFinite;
  // The router takes the end of a mask for padding, and places that are not filled yet are there: with such a cache
  // transformers generates other tokens than without.
  s.has_static_cache = false;
  s.cross_attention = "cross_attention";
  s.feed_forward_norm = "ff_layer_norm";
  s.feed_forward = feed_forward;
  s.encoder_output = "MoEModelOutput";
  s.model_output = "Seq2SeqMoEModelOutput";
  s.lm_output = "Seq2SeqMoEOutput";
  return s;
}

}  // namespace

std::vector<ModelClass> nllb_moe_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "model";
  // Sinusoidal positions used to be saved with the weights.
  naming.obsolete = {"embed_positions.weights"};
  auto classes = seq2seq_classes(settings, "NllbMoe", "lm_head", "shared", Task::Seq2SeqLM, naming);
  for (ModelClass& one : classes) one = tied_words(one);
  return classes;
}

}  // namespace transporters

#include "transporters/models/mamba.h"

#include <ATen/ATen.h>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"
#include "transporters/layers/norm.h"
#include "transporters/layers/recurrence.h"
#include "transporters/layers/state_cache.h"
#include "transporters/models/make_model.h"

namespace transporters {
namespace {

struct MambaSettings {
  explicit MambaSettings(const Config& config)
      : vocab_size(config.positive("vocab_size", 50280)),
        hidden_size(config.positive("hidden_size", 768)),
        state_size(config.positive("state_size", 16)),
        num_layers(config.positive("num_hidden_layers", 32)),
        inner_size(static_cast<int64_t>(config.positive_real("expand", 2.0) * static_cast<double>(hidden_size))),
        kernel(config.positive("conv_kernel", 4)),
        time_step_rank((hidden_size + 15) / 16),
        eps(config.non_negative_real("layer_norm_epsilon", 1e-5)),
        bias(config.boolean("use_bias", false)),
        convolution_bias(config.boolean("use_conv_bias", true)),
        residual_in_float32(config.boolean("residual_in_fp32", true)),
        activation(transporters::activation(config, "hidden_act", "silu")) {
    const bool is_auto = config.is_string("time_step_rank") && config.string("time_step_rank") == "auto";
    if (!is_auto) time_step_rank = config.positive("time_step_rank", time_step_rank);
  }

  int64_t vocab_size, hidden_size, state_size, num_layers, inner_size, kernel, time_step_rank;
  double eps;
  bool bias, convolution_bias, residual_in_float32;
  Activation activation;
};

// A convolution of each channel for itself, whose kernel ends with the current step.
class CausalConvolution : public Module {
 public:
  CausalConvolution(const Weights& weights, const MambaSettings& s) : Module(weights), channels_(s.inner_size) {
    weight = parameter(weights, "weight", {channels_, 1, s.kernel});
    if (s.convolution_bias) bias = parameter(weights, "bias", {channels_});
  }
  // x [batch, channels, kernel - 1 + length] -> [batch, channels, length].
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return at::conv1d(x, weight, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt, /*stride=*/1,
                      at::IntArrayRef{0}, /*dilation=*/1, channels_);
  }
  at::Tensor weight, bias;

 private:
  int64_t channels_;
};

// Hides padding, [batch, tokens].
at::Tensor without_padding(const at::Tensor& x, const at::Tensor& mask) {
  return mask.defined() ? (x * mask.unsqueeze(-1)).to(x.scalar_type()) : x;
}

class MambaMixer : public Module {
 public:
  MambaMixer(const Weights& weights, const MambaSettings& s) : Module(weights), s_(s) {
    A_log = parameter(weights, "A_log", {s.inner_size, s.state_size});
    D = parameter(weights, "D", {s.inner_size});
    conv1d = member<CausalConvolution>(weights, "conv1d", s);
    in_proj = member<Linear>(weights, "in_proj", s.hidden_size, 2 * s.inner_size, s.bias);
    x_proj = member<Linear>(weights, "x_proj", s.inner_size, s.time_step_rank + 2 * s.state_size, /*bias=*/false);
    dt_proj = member<Linear>(weights, "dt_proj", s.time_step_rank, s.inner_size);
    out_proj = member<Linear>(weights, "out_proj", s.inner_size, s.hidden_size, s.bias);
  }

  at::Tensor forward(const at::Tensor& hidden, const at::Tensor& mask, StateLayer* cache) const {
    const ModuleScope scope(path());
    const auto halves = in_proj->forward(without_padding(hidden, mask)).chunk(2, -1);
    const auto inner = halves[0].transpose(1, 2);
    // One of the inputs before is beyond the kernel: transformers keeps as many as the kernel is wide.
    const auto seen = cache == nullptr ? with_zeros_before(inner, s_.kernel) : cache->update_convolution(inner);
    const auto x = without_padding(s_.activation(conv1d->forward(seen.slice(2, 1))).transpose(1, 2), mask);

    const auto parts = x_proj->forward(x).split_with_sizes({s_.time_step_rank, s_.state_size, s_.state_size}, -1);
    const auto step = at::softplus(dt_proj->forward(parts[0])).unsqueeze(-1);  // [batch, length, inner, 1]
    const auto A = -at::exp(A_log.to(at::kFloat));
    const auto additions = step * parts[1].unsqueeze(2).to(at::kFloat) * x.unsqueeze(-1).to(at::kFloat);
    auto [products, states] = linear_recurrence(at::exp(step * A), additions, 1);
    if (cache != nullptr) {
      if (cache->recurrence().defined()) states = states + products * cache->recurrence().unsqueeze(1);
      cache->set_recurrence(states.select(1, -1));
    }
    const auto read = at::matmul(states.to(x.scalar_type()), parts[2].unsqueeze(-1)).squeeze(-1);
    const auto y = (read + x * D.to(at::kFloat)) * at::silu(halves[1]);
    return out_proj->forward(y.to(hidden.scalar_type()));
  }

 private:
  MambaSettings s_;
  at::Tensor A_log, D;
  std::shared_ptr<CausalConvolution> conv1d;
  std::shared_ptr<Linear> in_proj, x_proj, dt_proj, out_proj;
};

class MambaBlock : public Module {
 public:
  MambaBlock(const Weights& weights, const MambaSettings& s)
      : Module(weights), residual_in_float32_(s.residual_in_float32) {
    norm = member<RMSNorm>(weights, "norm", s.hidden_size, s.eps);
    mixer = member<MambaMixer>(weights, "mixer", s);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, StateLayer* cache) const {
    const ModuleScope scope(path());
    const auto mixed = mixer->forward(norm->forward(x.to(norm->weight.scalar_type())), mask, cache);
    return (residual_in_float32_ ? x.to(at::kFloat) : x) + mixed;
  }

 private:
  std::shared_ptr<RMSNorm> norm;
  std::shared_ptr<MambaMixer> mixer;
  bool residual_in_float32_;
};

// What the classes have in common as models.
class MambaPreTrainedModel : public PreTrainedModel {
 public:
  MambaPreTrainedModel(const Weights& weights, const ModelContext& context, const std::string& architecture)
      : PreTrainedModel(weights, context, architecture), s_(context.config) {}

  std::vector<InputInfo> inputs() const override {
    return {{"input_ids", at::kLong, {"batch", "sequence"}},
            {"inputs_embeds", dtype(), {"batch", "sequence", ""}},
            {"attention_mask", at::kLong, {"batch", "total_sequence"}}};
  }
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    const auto ids = example_ids(batch, sequence, s_.vocab_size, config().integer_or_none("pad_token_id"));
    return {{"input_ids", ids}, {"attention_mask", at::ones_like(ids)}};
  }
  std::optional<Cache> empty_cache() const override {
    Cache cache;
    for (int64_t i = 0; i < s_.num_layers; ++i) cache.layers.push_back(std::make_unique<StateLayer>(s_.kernel));
    return cache;
  }
  // The states have seen the padding before them, and a token alone is none.
  at::Tensor generation_mask(const at::Tensor& mask, int64_t count) const override {
    return count == 1 && mask.size(1) > 1 ? at::Tensor() : mask;
  }

 protected:
  const MambaSettings& settings() const { return s_; }

 private:
  MambaSettings s_;
};

class MambaModel : public MambaPreTrainedModel {
 public:
  struct Result {
    at::Tensor last_hidden_state;
    std::optional<Cache> cache;
  };

  MambaModel(const Weights& weights, const ModelContext& context)
      : MambaPreTrainedModel(weights, context, "MambaModel") {
    const MambaSettings& s = settings();
    embeddings = member<Embedding>(weights, "embeddings", s.vocab_size, s.hidden_size);
    layers = members<MambaBlock>(weights, "layers", s.num_layers,
                                 [&](const Weights& w, int64_t) { return std::make_shared<MambaBlock>(w, s); });
    norm_f = member<RMSNorm>(weights, "norm_f", s.hidden_size, s.eps);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const Result result = run(inputs);
    ModelOutput output("transformers.models.mamba.modeling_mamba.MambaOutput");
    output.set("last_hidden_state", result.last_hidden_state);
    if (result.cache) output.set("cache", *result.cache);
    return output;
  }

  Result run(const ModelInputs& inputs) const {
    const ModuleScope scope(path());
    check_ids_or_embeds(inputs);
    Result result{.last_hidden_state = {}, .cache = start_cache(inputs)};
    auto x = inputs.tensor("inputs_embeds");
    if (!x.defined()) x = embed(inputs.tensor("input_ids"));
    const auto mask = mask_of(inputs.tensor("attention_mask"), x.sym_size(1), result.cache);
    for (size_t i = 0; i < layers.size(); ++i) x = layers[i]->forward(x, mask, layer(result.cache, i));
    result.last_hidden_state = norm_f->forward(x);
    return result;
  }

  at::Tensor embed(const at::Tensor& ids) const override { return embeddings->forward(ids); }

 private:
  static StateLayer* layer(std::optional<Cache>& cache, size_t i) {
    if (!cache) return nullptr;
    auto* states = dynamic_cast<StateLayer*>(cache->layers[i].get());
    if (states == nullptr) throw Error("'cache': expected layers of states, layer " + std::to_string(i) + " has keys");
    return states;
  }

  // The new tokens' part of a mask that has those before them too.
  static at::Tensor mask_of(const at::Tensor& mask, const c10::SymInt& length, std::optional<Cache>& cache) {
    if (!mask.defined()) return mask;
    if (mask.dim() != 2)
      throw Error("'attention_mask': expected [batch, tokens], got " + std::to_string(mask.dim()) + " axes");
    const StateLayer* first = layer(cache, 0);
    if (first == nullptr || first->is_empty()) return mask;
    return mask.slice_symint(1, mask.sym_size(1) - length);
  }

  std::shared_ptr<Embedding> embeddings;
  std::vector<std::shared_ptr<MambaBlock>> layers;
  std::shared_ptr<RMSNorm> norm_f;
};

class MambaForCausalLM : public MambaPreTrainedModel {
 public:
  MambaForCausalLM(const Weights& weights, const ModelContext& context)
      : MambaPreTrainedModel(weights, context, "MambaForCausalLM") {
    backbone = member<MambaModel>(weights, "backbone", context);
    lm_head = member<Linear>(weights, "lm_head", settings().hidden_size, settings().vocab_size, /*bias=*/false);
  }

  bool generates() const override { return true; }
  at::Tensor embed(const at::Tensor& ids) const override { return backbone->embed(ids); }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto result = backbone->run(inputs);
    const auto hidden = last_tokens(result.last_hidden_state, inputs.logits_to_keep);
    ModelOutput output("transformers.models.mamba.modeling_mamba.MambaCausalLMOutput");
    output.set("logits", lm_head->forward(hidden.to(lm_head->weight.scalar_type())).to(at::kFloat));
    if (result.cache) output.set("cache", *result.cache);
    return output;
  }

 private:
  std::shared_ptr<MambaModel> backbone;
  std::shared_ptr<Linear> lm_head;
};

}  // namespace

std::vector<ModelClass> mamba_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "backbone";
  naming.renames = {{"embedding.", "embeddings."}};
  WeightStore::Naming base = naming;
  base.is_base = true;
  return {
      {"MambaModel", Task::Base, base, {}, true, make_model<MambaModel>},
      {"MambaForCausalLM",
       Task::CausalLM,
       naming,
       {{"lm_head.weight", "backbone.embeddings.weight"}},
       true,
       make_model<MambaForCausalLM>},
  };
}

}  // namespace transporters

#include "transporters/models/clip.h"

#include <ATen/ATen.h>

#include <cmath>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"
#include "transporters/layers/mlp.h"
#include "transporters/layers/norm.h"
#include "transporters/models/multimodal.h"

namespace transporters {
namespace {

struct ClipVisionSettings {
  explicit ClipVisionSettings(const Config& config)
      : hidden_size(config.positive("hidden_size", 768)),
        intermediate_size(config.positive("intermediate_size", 3072)),
        num_layers(config.positive("num_hidden_layers", 12)),
        num_heads(config.positive("num_attention_heads", 12)),
        channels(config.positive("num_channels", 3)),
        image(config.positive_pair("image_size", 224)),
        patch(config.positive_pair("patch_size", 32)),
        eps(config.non_negative_real("layer_norm_eps", 1e-5)),
        activation(transporters::activation(config, "hidden_act", "quick_gelu")) {
    if (hidden_size % num_heads != 0)
      config.fail("hidden_size", "expected a multiple of num_attention_heads (" + std::to_string(num_heads) +
                                     "), got " + std::to_string(hidden_size));
    if (image.first < patch.first || image.second < patch.second)
      config.fail("patch_size", "expected at most the image's size (" + std::to_string(image.first) + " x " +
                                    std::to_string(image.second) + "), got " + std::to_string(patch.first) + " x " +
                                    std::to_string(patch.second));
  }

  int64_t num_patches() const { return (image.first / patch.first) * (image.second / patch.second); }

  int64_t hidden_size, intermediate_size, num_layers, num_heads, channels;
  std::pair<int64_t, int64_t> image, patch;  // height, width
  double eps;
  Activation activation;
};

class ClipVisionEmbeddings : public Module {
 public:
  // A convolution whose kernel and stride are the patch.
  class PatchEmbedding : public Module {
   public:
    PatchEmbedding(const Weights& weights, const ClipVisionSettings& s) : Module(weights), patch_(s.patch) {
      weight = parameter(weights, "weight", {s.hidden_size, s.channels, s.patch.first, s.patch.second});
    }
    at::Tensor forward(const at::Tensor& pixels) const {
      const ModuleScope scope(path());
      return at::conv2d(pixels, weight, {}, {patch_.first, patch_.second}).flatten(2).transpose(1, 2);
    }
    at::Tensor weight;

   private:
    std::pair<int64_t, int64_t> patch_;
  };

  ClipVisionEmbeddings(const Weights& weights, const ClipVisionSettings& s) : Module(weights), s_(s) {
    class_embedding = parameter(weights, "class_embedding", {s.hidden_size});
    patch_embedding = member<PatchEmbedding>(weights, "patch_embedding", s);
    position_embedding = member<Embedding>(weights, "position_embedding", s.num_patches() + 1, s.hidden_size);
  }

  at::Tensor forward(const at::Tensor& pixels) const {
    const ModuleScope scope(path());
    check_image(pixels, s_.channels, s_.image);
    const auto patches = patch_embedding->forward(pixels.to(class_embedding.scalar_type()));
    const auto first = class_embedding.expand_symint({pixels.sym_size(0), 1, s_.hidden_size});
    return at::cat({first, patches}, 1) + position_embedding->weight;
  }

 private:
  ClipVisionSettings s_;
  at::Tensor class_embedding;
  std::shared_ptr<PatchEmbedding> patch_embedding;
  std::shared_ptr<Embedding> position_embedding;
};

class ClipAttention : public Module {
 public:
  ClipAttention(const Weights& weights, const ModelContext& context, const ClipVisionSettings& s)
      : Module(weights), heads_(s.num_heads), head_dim_(s.hidden_size / s.num_heads) {
    arguments_ = {context.attention, 1.0 / std::sqrt(static_cast<double>(head_dim_))};
    k_proj = member<Linear>(weights, "k_proj", s.hidden_size, s.hidden_size);
    v_proj = member<Linear>(weights, "v_proj", s.hidden_size, s.hidden_size);
    q_proj = member<Linear>(weights, "q_proj", s.hidden_size, s.hidden_size);
    out_proj = member<Linear>(weights, "out_proj", s.hidden_size, s.hidden_size);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    const auto heads = [&](const Linear& projection) {
      return split_heads(projection.forward(x), heads_, head_dim_).transpose(1, 2);
    };
    return out_proj->forward(attention(heads(*q_proj), heads(*k_proj), heads(*v_proj), {}, arguments_));
  }

 private:
  std::shared_ptr<Linear> k_proj, v_proj, q_proj, out_proj;
  int64_t heads_, head_dim_;
  AttentionArguments arguments_;
};

class ClipEncoderLayer : public Module {
 public:
  ClipEncoderLayer(const Weights& weights, const ModelContext& context, const ClipVisionSettings& s) : Module(weights) {
    self_attn = member<ClipAttention>(weights, "self_attn", context, s);
    layer_norm1 = member<LayerNorm>(weights, "layer_norm1", s.hidden_size, s.eps);
    mlp = member<MLP<Linear>>(weights, "mlp", "fc1", "fc2", s.hidden_size, s.intermediate_size, s.activation);
    layer_norm2 = member<LayerNorm>(weights, "layer_norm2", s.hidden_size, s.eps);
  }
  at::Tensor forward(at::Tensor x) const {
    const ModuleScope scope(path());
    x = x + self_attn->forward(layer_norm1->forward(x));
    return x + mlp->forward(layer_norm2->forward(x));
  }

 private:
  std::shared_ptr<ClipAttention> self_attn;
  std::shared_ptr<LayerNorm> layer_norm1, layer_norm2;
  std::shared_ptr<MLP<Linear>> mlp;
};

class ClipEncoder : public Module {
 public:
  ClipEncoder(const Weights& weights, const ModelContext& context, const ClipVisionSettings& s) : Module(weights) {
    layers = members<ClipEncoderLayer>(weights, "layers", s.num_layers, [&](const Weights& w, int64_t) {
      return std::make_shared<ClipEncoderLayer>(w, context, s);
    });
  }
  std::vector<std::shared_ptr<ClipEncoderLayer>> layers;
};

class ClipVisionTower : public ClipVisionModel {
 public:
  ClipVisionTower(const Weights& weights, const ModelContext& context)
      : ClipVisionModel(weights, context, "CLIPVisionModel"), s_(context.config) {
    embeddings = member<ClipVisionEmbeddings>(weights, "embeddings", s_);
    // The name has its error in all checkpoints.
    pre_layrnorm = member<LayerNorm>(weights, "pre_layrnorm", s_.hidden_size, s_.eps);
    encoder_ = member<ClipEncoder>(weights, "encoder", context, s_);
    post_layernorm = member<LayerNorm>(weights, "post_layernorm", s_.hidden_size, s_.eps);
  }

  std::vector<InputInfo> inputs() const override { return {{"pixel_values", dtype(), {"images", "", "", ""}}}; }
  // Images have one size: `sequence` is not used.
  ModelInputs example_inputs(int64_t batch, int64_t /*sequence*/) const override {
    return {{"pixel_values", example_pixels({batch, s_.channels, s_.image.first, s_.image.second}, dtype())}};
  }

  std::vector<at::Tensor> hidden_states(const at::Tensor& pixels) const override {
    const ModuleScope scope(path());
    std::vector<at::Tensor> states{pre_layrnorm->forward(embeddings->forward(pixels))};
    for (const auto& layer : encoder_->layers) states.push_back(layer->forward(states.back()));
    return states;
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const auto pixels = inputs.tensor("pixel_values");
    if (!pixels.defined()) throw Error(architecture() + " needs the input 'pixel_values'");
    const auto states = hidden_states(pixels);
    ModelOutput output("BaseModelOutputWithPooling");
    output.set("last_hidden_state", states.back());
    output.set("pooler_output", post_layernorm->forward(states.back().select(1, 0)));
    if (!returns_hidden_states) return output;
    TensorDict all{{}, kTuple};
    for (size_t i = 0; i < states.size(); ++i) all.entries.emplace_back(std::to_string(i), states[i]);
    output.set("hidden_states", std::move(all));
    return output;
  }

 private:
  ClipVisionSettings s_;
  std::shared_ptr<ClipVisionEmbeddings> embeddings;
  std::shared_ptr<LayerNorm> pre_layrnorm, post_layernorm;
  std::shared_ptr<ClipEncoder> encoder_;
};

}  // namespace

std::vector<ModelClass> clip_vision_classes() {
  WeightStore::Naming naming;
  naming.is_base = true;
  // Where the tower was a member of a member, before transformers 5.
  naming.renames = {{"^vision_model.", ""}};
  return {{"CLIPVisionModel",
           Task::Base,
           naming,
           {},
           false,
           [](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
             return std::make_shared<ClipVisionTower>(weights, context);
           }}};
}

}  // namespace transporters

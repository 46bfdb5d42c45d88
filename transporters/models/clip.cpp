#include "transporters/models/clip.h"

#include <ATen/ATen.h>

#include "transporters/error.h"
#include "transporters/layers/mlp.h"
#include "transporters/layers/norm.h"
#include "transporters/models/image_encoder.h"
#include "transporters/models/make_model.h"
#include "transporters/models/multimodal.h"

namespace transporters {
namespace {

using Settings = ImageEncoderSettings;

Settings settings_of(const Config& config) {
  return {config, /*patch_size=*/32, /*layer_norm_eps=*/1e-5, "quick_gelu"};
}

class ClipVisionEmbeddings : public Module {
 public:
  ClipVisionEmbeddings(const Weights& weights, const Settings& s) : Module(weights), s_(s) {
    class_embedding = parameter(weights, "class_embedding", {s.hidden_size});
    patch_embedding = member<PatchProjection>(weights, "patch_embedding", s, /*with_bias=*/false);
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
  Settings s_;
  at::Tensor class_embedding;
  std::shared_ptr<PatchProjection> patch_embedding;
  std::shared_ptr<Embedding> position_embedding;
};

class ClipAttention : public ImageAttention {
 public:
  ClipAttention(const Weights& weights, const ModelContext& context, const Settings& s)
      : ImageAttention(weights, context, s) {
    key = member<Linear>(weights, "k_proj", s.hidden_size, s.hidden_size);
    value = member<Linear>(weights, "v_proj", s.hidden_size, s.hidden_size);
    query = member<Linear>(weights, "q_proj", s.hidden_size, s.hidden_size);
    output = member<Linear>(weights, "out_proj", s.hidden_size, s.hidden_size);
  }
};

class ClipEncoderLayer : public Module {
 public:
  ClipEncoderLayer(const Weights& weights, const ModelContext& context, const Settings& s) : Module(weights) {
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
  ClipEncoder(const Weights& weights, const ModelContext& context, const Settings& s) : Module(weights) {
    layers = members<ClipEncoderLayer>(weights, "layers", s.num_layers, [&](const Weights& w, int64_t) {
      return std::make_shared<ClipEncoderLayer>(w, context, s);
    });
  }
  std::vector<std::shared_ptr<ClipEncoderLayer>> layers;
};

class ClipVisionTower : public ClipVisionModel {
 public:
  ClipVisionTower(const Weights& weights, const ModelContext& context)
      : ClipVisionModel(weights, context, "CLIPVisionModel"), s_(settings_of(context.config)) {
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
  Settings s_;
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
  return {{"CLIPVisionModel", Task::Base, naming, {}, false, make_model<ClipVisionTower>}};
}

}  // namespace transporters

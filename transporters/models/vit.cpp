#include "transporters/models/vit.h"

#include "transporters/error.h"
#include "transporters/layers/mlp.h"
#include "transporters/layers/norm.h"
#include "transporters/models/image_encoder.h"
#include "transporters/models/make_model.h"
#include "transporters/models/multimodal.h"

namespace transporters {
namespace {

using Settings = ImageEncoderSettings;

Settings settings_of(const Config& config) { return {config, /*patch_size=*/16, /*layer_norm_eps=*/1e-12, "gelu"}; }

class ViTPatchEmbeddings : public Module {
 public:
  ViTPatchEmbeddings(const Weights& weights, const Settings& s) : Module(weights) {
    projection = member<PatchProjection>(weights, "projection", s, /*with_bias=*/true);
  }
  at::Tensor forward(const at::Tensor& pixels) const {
    const ModuleScope scope(path());
    return projection->forward(pixels);
  }

 private:
  std::shared_ptr<PatchProjection> projection;
};

class ViTEmbeddings : public Module {
 public:
  ViTEmbeddings(const Weights& weights, const Settings& s) : Module(weights), settings_(s) {
    cls_token = parameter(weights, "cls_token", {1, 1, s.hidden_size});
    position_embeddings = parameter(weights, "position_embeddings", {1, s.num_patches() + 1, s.hidden_size});
    patch_embeddings = member<ViTPatchEmbeddings>(weights, "patch_embeddings", s);
  }

  at::Tensor forward(const at::Tensor& pixels) const {
    const ModuleScope scope(path());
    check_image(pixels, settings_.channels, settings_.image);
    const auto patches = patch_embeddings->forward(pixels.to(cls_token.scalar_type()));
    const auto cls = cls_token.expand_symint({pixels.sym_size(0), -1, -1});
    return at::cat({cls, patches}, 1) + position_embeddings;
  }

 private:
  Settings settings_;
  at::Tensor cls_token, position_embeddings;
  std::shared_ptr<ViTPatchEmbeddings> patch_embeddings;
};

class ViTAttention : public ImageAttention {
 public:
  ViTAttention(const Weights& weights, const ModelContext& context, const Settings& s)
      : ImageAttention(weights, context, s) {
    const bool has_bias = context.config.boolean("qkv_bias", true);
    query = member<Linear>(weights, "q_proj", s.hidden_size, s.hidden_size, has_bias);
    key = member<Linear>(weights, "k_proj", s.hidden_size, s.hidden_size, has_bias);
    value = member<Linear>(weights, "v_proj", s.hidden_size, s.hidden_size, has_bias);
    output = member<Linear>(weights, "o_proj", s.hidden_size, s.hidden_size);
  }
};

class ViTLayer : public Module {
 public:
  ViTLayer(const Weights& weights, const ModelContext& context, const Settings& s) : Module(weights) {
    attention = member<ViTAttention>(weights, "attention", context, s);
    layernorm_before = member<LayerNorm>(weights, "layernorm_before", s.hidden_size, s.eps);
    layernorm_after = member<LayerNorm>(weights, "layernorm_after", s.hidden_size, s.eps);
    mlp = member<MLP<Linear>>(weights, "mlp", "fc1", "fc2", s.hidden_size, s.intermediate_size, s.activation);
  }
  at::Tensor forward(at::Tensor x) const {
    const ModuleScope scope(path());
    x = attention->forward(layernorm_before->forward(x)) + x;
    return mlp->forward(layernorm_after->forward(x)) + x;
  }

 private:
  std::shared_ptr<ViTAttention> attention;
  std::shared_ptr<LayerNorm> layernorm_before, layernorm_after;
  std::shared_ptr<MLP<Linear>> mlp;
};

class ViTPooler : public Module {
 public:
  ViTPooler(const Weights& weights, const ModelContext& context, const Settings& s) : Module(weights) {
    activation_ = activation(context.config, "pooler_act", "tanh");
    dense =
        member<Linear>(weights, "dense", s.hidden_size, context.config.positive("pooler_output_size", s.hidden_size));
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return activation_(dense->forward(x.select(1, 0)));
  }

 private:
  std::shared_ptr<Linear> dense;
  Activation activation_;
};

// What the classes have in common as models.
class ViTPreTrainedModel : public PreTrainedModel {
 public:
  using PreTrainedModel::PreTrainedModel;
  std::vector<InputInfo> inputs() const override { return {{"pixel_values", dtype(), {"batch", "", "", ""}}}; }
  // Images have one size: `sequence` is not used.
  ModelInputs example_inputs(int64_t batch, int64_t /*sequence*/) const override {
    const Settings s = settings_of(config());
    return {{"pixel_values", example_pixels({batch, s.channels, s.image.first, s.image.second}, dtype())}};
  }

 protected:
  at::Tensor pixels(const ModelInputs& inputs) const {
    check_inputs(inputs);
    auto pixels = inputs.tensor("pixel_values");
    if (!pixels.defined()) throw Error(architecture() + " needs the input 'pixel_values'");
    return pixels;
  }
};

class ViTModel : public ViTPreTrainedModel {
 public:
  ViTModel(const Weights& weights, const ModelContext& context, bool with_pooler = true)
      : ViTPreTrainedModel(weights, context, "ViTModel") {
    const Settings s = settings_of(context.config);
    embeddings = member<ViTEmbeddings>(weights, "embeddings", s);
    layers = members<ViTLayer>(weights, "layers", s.num_layers,
                               [&](const Weights& w, int64_t) { return std::make_shared<ViTLayer>(w, context, s); });
    layernorm = member<LayerNorm>(weights, "layernorm", s.hidden_size, s.eps);
    if (with_pooler) pooler = member<ViTPooler>(weights, "pooler", context, s);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    ModelOutput output("BaseModelOutputWithPooling");
    const auto hidden = run(pixels(inputs));
    output.set("last_hidden_state", hidden);
    if (pooler) output.set("pooler_output", pooler->forward(hidden));
    return output;
  }

  at::Tensor run(const at::Tensor& pixels) const {
    const ModuleScope scope(path());
    auto x = embeddings->forward(pixels);
    for (const auto& layer : layers) x = layer->forward(x);
    return layernorm->forward(x);
  }

 private:
  std::shared_ptr<ViTEmbeddings> embeddings;
  std::vector<std::shared_ptr<ViTLayer>> layers;
  std::shared_ptr<LayerNorm> layernorm;
  std::shared_ptr<ViTPooler> pooler;
};

class ViTForImageClassification : public ViTPreTrainedModel {
 public:
  ViTForImageClassification(const Weights& weights, const ModelContext& context)
      : ViTPreTrainedModel(weights, context, "ViTForImageClassification") {
    vit = member<ViTModel>(weights, "vit", context, /*with_pooler=*/false);
    classifier =
        member<Linear>(weights, "classifier", settings_of(context.config).hidden_size, context.config.num_labels());
  }
  ModelOutput forward(const ModelInputs& inputs) const override {
    ModelOutput output("ImageClassifierOutput");
    output.set("logits", classifier->forward(vit->run(pixels(inputs)).select(1, 0)));
    return output;
  }

 private:
  std::shared_ptr<ViTModel> vit;
  std::shared_ptr<Linear> classifier;
};

}  // namespace

std::vector<ModelClass> vit_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "vit";
  naming.optional = {"pooler", "embeddings.mask_token"};
  // The names before transformers 5.
  naming.renames = {{"encoder.layer.", "layers."},
                    {"attention.attention.query", "attention.q_proj"},
                    {"attention.attention.key", "attention.k_proj"},
                    {"attention.attention.value", "attention.v_proj"},
                    {"attention.output.dense", "attention.o_proj"},
                    {"intermediate.dense", "mlp.fc1"},
                    {"output.dense", "mlp.fc2"}};
  WeightStore::Naming base = naming;
  base.is_base = true;
  return {
      {"ViTModel", Task::Base, base, {}, false, make_model<ViTModel>},
      {"ViTForImageClassification",
       Task::ImageClassification,
       naming,
       {},
       false,
       make_model<ViTForImageClassification>},
  };
}

}  // namespace transporters

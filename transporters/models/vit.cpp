#include "transporters/models/vit.h"

#include <cmath>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"
#include "transporters/layers/mlp.h"
#include "transporters/layers/norm.h"
#include "transporters/models/multimodal.h"

namespace transporters {
namespace {

struct ViTSettings {
  explicit ViTSettings(const Config& config)
      : hidden_size(config.positive("hidden_size", 768)),
        num_layers(config.positive("num_hidden_layers", 12)),
        num_heads(config.positive("num_attention_heads", 12)),
        intermediate_size(config.positive("intermediate_size", 3072)),
        channels(config.positive("num_channels", 3)),
        image(config.positive_pair("image_size", 224)),
        patch(config.positive_pair("patch_size", 16)),
        bias(config.boolean("qkv_bias", true)),
        eps(config.non_negative_real("layer_norm_eps", 1e-12)) {
    if (hidden_size % num_heads != 0)
      config.fail("hidden_size", "expected a multiple of num_attention_heads (" + std::to_string(num_heads) +
                                     "), got " + std::to_string(hidden_size));
    if (image.first < patch.first || image.second < patch.second)
      config.fail("patch_size", "expected at most the image's size (" + std::to_string(image.first) + " x " +
                                    std::to_string(image.second) + "), got " + std::to_string(patch.first) + " x " +
                                    std::to_string(patch.second));
  }

  int64_t num_patches() const { return (image.first / patch.first) * (image.second / patch.second); }

  int64_t hidden_size, num_layers, num_heads, intermediate_size, channels;
  std::pair<int64_t, int64_t> image, patch;  // height, width
  bool bias;
  double eps;
};

// Each patch of the image as one vector: [batch, patches, hidden_size].
class ViTPatchEmbeddings : public Module {
 public:
  // A convolution whose kernel and stride are the patch.
  class Projection : public Module {
   public:
    Projection(const Weights& weights, const ViTSettings& s) : Module(weights), patch_(s.patch) {
      weight = parameter(weights, "weight", {s.hidden_size, s.channels, s.patch.first, s.patch.second});
      bias = parameter(weights, "bias", {s.hidden_size});
    }
    at::Tensor forward(const at::Tensor& pixels) const {
      const ModuleScope scope(path());
      return at::conv2d(pixels, weight, bias, {patch_.first, patch_.second});
    }
    at::Tensor weight, bias;

   private:
    std::pair<int64_t, int64_t> patch_;
  };

  ViTPatchEmbeddings(const Weights& weights, const ViTSettings& s) : Module(weights) {
    projection = member<Projection>(weights, "projection", s);
  }
  at::Tensor forward(const at::Tensor& pixels) const {
    const ModuleScope scope(path());
    return projection->forward(pixels).flatten(2).transpose(1, 2);
  }

 private:
  std::shared_ptr<Projection> projection;
};

class ViTEmbeddings : public Module {
 public:
  ViTEmbeddings(const Weights& weights, const ViTSettings& s) : Module(weights), settings_(s) {
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
  ViTSettings settings_;
  at::Tensor cls_token, position_embeddings;
  std::shared_ptr<ViTPatchEmbeddings> patch_embeddings;
};

class ViTAttention : public Module {
 public:
  ViTAttention(const Weights& weights, const ModelContext& context, const ViTSettings& s)
      : Module(weights), heads_(s.num_heads), head_dim_(s.hidden_size / s.num_heads) {
    arguments_ = {context.attention, 1.0 / std::sqrt(static_cast<double>(head_dim_))};
    q_proj = member<Linear>(weights, "q_proj", s.hidden_size, s.hidden_size, s.bias);
    k_proj = member<Linear>(weights, "k_proj", s.hidden_size, s.hidden_size, s.bias);
    v_proj = member<Linear>(weights, "v_proj", s.hidden_size, s.hidden_size, s.bias);
    o_proj = member<Linear>(weights, "o_proj", s.hidden_size, s.hidden_size);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    const auto heads = [&](const Linear& projection) {
      return split_heads(projection.forward(x), heads_, head_dim_).transpose(1, 2);
    };
    return o_proj->forward(attention(heads(*q_proj), heads(*k_proj), heads(*v_proj), {}, arguments_));
  }

 private:
  std::shared_ptr<Linear> q_proj, k_proj, v_proj, o_proj;
  int64_t heads_, head_dim_;
  AttentionArguments arguments_;
};

class ViTLayer : public Module {
 public:
  ViTLayer(const Weights& weights, const ModelContext& context, const ViTSettings& s) : Module(weights) {
    attention = member<ViTAttention>(weights, "attention", context, s);
    layernorm_before = member<LayerNorm>(weights, "layernorm_before", s.hidden_size, s.eps);
    layernorm_after = member<LayerNorm>(weights, "layernorm_after", s.hidden_size, s.eps);
    mlp = member<MLP<Linear>>(weights, "mlp", "fc1", "fc2", s.hidden_size, s.intermediate_size,
                              activation(context.config, "hidden_act", "gelu"));
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
  ViTPooler(const Weights& weights, const ModelContext& context, const ViTSettings& s) : Module(weights) {
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
    const ViTSettings s(config());
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
    const ViTSettings s(context.config);
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
        member<Linear>(weights, "classifier", ViTSettings(context.config).hidden_size, context.config.num_labels());
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
      {"ViTModel",
       Task::Base,
       base,
       {},
       false,
       [](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
         return std::make_shared<ViTModel>(weights, context);
       }},
      {"ViTForImageClassification",
       Task::ImageClassification,
       naming,
       {},
       false,
       [](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
         return std::make_shared<ViTForImageClassification>(weights, context);
       }},
  };
}

}  // namespace transporters

#include "transporters/models/qwen2_vl.h"

#include <ATen/ATen.h>

#include <cmath>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/layers/mlp.h"
#include "transporters/layers/norm.h"
#include "transporters/layers/rope.h"
#include "transporters/models/decoder.h"
#include "transporters/models/grids.h"
#include "transporters/models/make_model.h"
#include "transporters/models/multimodal.h"

namespace transporters {
namespace {

constexpr double kVisionEps = 1e-6;

DecoderSettings text_settings(const Config& config) {
  DecoderSettings defaults;
  defaults.vocab_size = 152064;
  defaults.hidden_size = 8192;
  defaults.intermediate_size = 29568;
  defaults.num_layers = 80;
  defaults.num_heads = 64;
  defaults.num_key_value_heads = config.is_null("num_key_value_heads") ? 0 : 8;
  defaults.max_position_embeddings = 32768;
  defaults.rms_norm_eps = 1e-5;
  auto s = DecoderSettings::from_config(config, defaults);
  s.query_key_value_bias = true;
  s.rope = rope_parameters(config, 1e6);
  if (s.rope.mrope_section.empty()) s.rope.mrope_section = {16, 24, 24};
  s.has_layer_types = true;
  std::optional<int64_t> window;
  if (config.boolean("use_sliding_window", false)) window = config.positive("sliding_window", 4096);
  const int64_t first = config.integer("max_window_layers", 80);
  s.windows = layer_windows(config, s.num_layers, window, [&](int64_t layer) { return layer >= first; });
  return s;
}

struct VisionSettings {
  explicit VisionSettings(const Config& config)
      : depth(config.positive("depth", 32)),
        embed_dim(config.positive("embed_dim", 1280)),
        hidden_size(config.positive("hidden_size", 3584)),
        num_heads(config.positive("num_heads", 16)),
        intermediate_size(
            static_cast<int64_t>(config.positive_real("mlp_ratio", 4.0) * static_cast<double>(embed_dim))),
        channels(config.positive("in_channels", 3)),
        patch(config.positive_pair("patch_size", 14)),
        frames(config.positive("temporal_patch_size", 2)),
        merge(config.positive("spatial_merge_size", 2)),
        activation(transporters::activation(config, "hidden_act", "quick_gelu")) {
    if (embed_dim % (4 * num_heads) != 0)
      config.fail("embed_dim", "expected a multiple of four times num_heads (" + std::to_string(4 * num_heads) +
                                   "), got " + std::to_string(embed_dim));
    if (config.is_object("rope_parameters"))
      theta = config.object("rope_parameters").positive_real("rope_theta", theta);
  }

  int64_t head_dim() const { return embed_dim / num_heads; }
  int64_t patch_elements() const { return channels * frames * patch.first * patch.second; }

  int64_t depth, embed_dim, hidden_size, num_heads, intermediate_size, channels;
  std::pair<int64_t, int64_t> patch;  // height, width
  int64_t frames, merge;
  Activation activation;
  double theta = 10000.0;
};

// Each patch of two frames as one vector.
class PatchEmbed : public Module {
 public:
  // A convolution whose kernel and stride are the patch: over separate patches, a product.
  class Projection : public Module {
   public:
    Projection(const Weights& weights, const VisionSettings& s) : Module(weights) {
      weight = parameter(weights, "weight", {s.embed_dim, s.channels, s.frames, s.patch.first, s.patch.second});
    }
    at::Tensor forward(const at::Tensor& patches) const {
      const ModuleScope scope(path());
      return at::linear(patches.to(weight.scalar_type()), weight.flatten(1));
    }
    at::Tensor weight;
  };

  PatchEmbed(const Weights& weights, const VisionSettings& s) : Module(weights) {
    proj = member<Projection>(weights, "proj", s);
  }
  at::Tensor forward(const at::Tensor& patches) const {
    const ModuleScope scope(path());
    return proj->forward(patches);
  }

 private:
  std::shared_ptr<Projection> proj;
};

struct VisionContext {
  at::Tensor cos, sin;  // [1, patches, head_dim]
  at::Tensor mask;      // keeps frames apart
};

class VisionAttention : public Module {
 public:
  VisionAttention(const Weights& weights, const ModelContext& context, const VisionSettings& s)
      : Module(weights), heads_(s.num_heads), head_dim_(s.head_dim()) {
    arguments_ = {context.attention, 1.0 / std::sqrt(static_cast<double>(head_dim_))};
    qkv = member<Linear>(weights, "qkv", s.embed_dim, 3 * s.embed_dim);
    proj = member<Linear>(weights, "proj", s.embed_dim, s.embed_dim);
  }
  at::Tensor forward(const at::Tensor& x, const VisionContext& context) const {
    const ModuleScope scope(path());
    // [3, 1, heads, patches, head_dim]
    const auto all =
        qkv->forward(x).view_symint({x.sym_size(0), 3, heads_, head_dim_}).permute({1, 2, 0, 3}).unsqueeze(1);
    const auto rotated = [&](int64_t i) {
      return apply_rotary(all.select(0, i).to(at::kFloat), context.cos, context.sin).to(x.scalar_type());
    };
    return proj->forward(attention(rotated(0), rotated(1), all.select(0, 2), context.mask, arguments_).squeeze(0));
  }

 private:
  std::shared_ptr<Linear> qkv, proj;
  int64_t heads_, head_dim_;
  AttentionArguments arguments_;
};

class VisionBlock : public Module {
 public:
  VisionBlock(const Weights& weights, const ModelContext& context, const VisionSettings& s) : Module(weights) {
    norm1 = member<LayerNorm>(weights, "norm1", s.embed_dim, kVisionEps);
    norm2 = member<LayerNorm>(weights, "norm2", s.embed_dim, kVisionEps);
    attn = member<VisionAttention>(weights, "attn", context, s);
    mlp = member<MLP<Linear>>(weights, "mlp", "fc1", "fc2", s.embed_dim, s.intermediate_size, s.activation);
  }
  at::Tensor forward(at::Tensor x, const VisionContext& context) const {
    const ModuleScope scope(path());
    x = x + attn->forward(norm1->forward(x), context);
    return x + mlp->forward(norm2->forward(x));
  }

 private:
  std::shared_ptr<LayerNorm> norm1, norm2;
  std::shared_ptr<VisionAttention> attn;
  std::shared_ptr<MLP<Linear>> mlp;
};

// A square of patches as one token.
class PatchMerger : public Module {
 public:
  class Projection : public Module {
   public:
    Projection(const Weights& weights, int64_t in_features, int64_t out_features) : Module(weights) {
      first_ = member<Linear>(weights, "0", in_features, in_features);
      second_ = member<Linear>(weights, "2", in_features, out_features);
    }
    at::Tensor forward(const at::Tensor& x) const {
      const ModuleScope scope(path());
      return second_->forward(at::gelu(first_->forward(x)));
    }

   private:
    std::shared_ptr<Linear> first_, second_;
  };

  PatchMerger(const Weights& weights, const VisionSettings& s)
      : Module(weights), features_(s.embed_dim * s.merge * s.merge) {
    ln_q = member<LayerNorm>(weights, "ln_q", s.embed_dim, kVisionEps);
    mlp = member<Projection>(weights, "mlp", features_, s.hidden_size);
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return mlp->forward(ln_q->forward(x).view({-1, features_}));
  }

 private:
  int64_t features_;
  std::shared_ptr<LayerNorm> ln_q;
  std::shared_ptr<Projection> mlp;
};

class VisionTransformer : public PreTrainedModel {
 public:
  VisionTransformer(const Weights& weights, const ModelContext& context)
      : PreTrainedModel(weights, context, "Qwen2VisionTransformerPretrainedModel"), s_(context.config) {
    patch_embed = member<PatchEmbed>(weights, "patch_embed", s_);
    blocks = members<VisionBlock>(weights, "blocks", s_.depth, [&](const Weights& w, int64_t) {
      return std::make_shared<VisionBlock>(w, context, s_);
    });
    merger = member<PatchMerger>(weights, "merger", s_);
    const int64_t half = s_.head_dim() / 2;
    inv_freq_ = 1.0 / at::pow(s_.theta, at::arange(0, half, 2, at::kFloat) / static_cast<double>(half));
    register_buffer("inv_freq", inv_freq_);
  }

  // Of patches, [patches, elements], of images or videos with these grids: the last hidden states, and features
  // [tokens, hidden_size].
  std::pair<at::Tensor, at::Tensor> run(const at::Tensor& patches, const at::Tensor& grids) const {
    const ModuleScope scope(path());
    if (patches.dim() != 2)
      throw Error("patches of images: expected 2 axes (patches, elements), got " + std::to_string(patches.dim()));
    if (!grids.defined()) throw Error("patches of images need their grids: give 'image_grid_thw' or 'video_grid_thw'");
    auto x = patch_embed->forward(patches);
    const VisionContext shared = shared_context(patch_places(grids, x.sym_size(0), s_.merge), x.scalar_type());
    for (const auto& block : blocks) x = block->forward(x, shared);
    return {x, merger->forward(x)};
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    if (!inputs.tensor("hidden_states").defined()) throw Error(architecture() + " needs the input 'hidden_states'");
    const auto [states, features] = run(inputs.tensor("hidden_states"), inputs.tensor("grid_thw"));
    ModelOutput output("BaseModelOutputWithPooling");
    output.set("last_hidden_state", states);
    output.set("pooler_output", features);
    return output;
  }

  std::vector<InputInfo> inputs() const override {
    return {{"hidden_states", dtype(), {"patches", "="}}, {"grid_thw", at::kLong, {"images", "="}}};
  }
  // Images of two by two tokens: `sequence` is not used.
  ModelInputs example_inputs(int64_t batch, int64_t /*sequence*/) const override {
    const int64_t side = 2 * s_.merge;
    return {{"hidden_states", example_pixels({batch * side * side, s_.patch_elements()}, dtype())},
            {"grid_thw", at::tensor({int64_t{1}, side, side}, at::kLong).unsqueeze(0).repeat({batch, 1})}};
  }

 private:
  VisionContext shared_context(const PatchPlaces& places, at::ScalarType dtype) const {
    const auto turned = [&](const at::Tensor& place) { return place.unsqueeze(-1).to(at::kFloat) * inv_freq_; };
    const auto angles = at::cat({turned(places.row), turned(places.column)}, -1);
    const auto both = at::cat({angles, angles}, -1).unsqueeze(0);
    const auto same = places.frame.unsqueeze(1).eq(places.frame.unsqueeze(0)).unsqueeze(0).unsqueeze(0);
    return {both.cos(), both.sin(), readable_mask(same, context().attention, dtype)};
  }

  VisionSettings s_;
  std::shared_ptr<PatchEmbed> patch_embed;
  std::vector<std::shared_ptr<VisionBlock>> blocks;
  std::shared_ptr<PatchMerger> merger;
  at::Tensor inv_freq_;
};

struct Qwen2VLSettings {
  explicit Qwen2VLSettings(const Config& config)
      // The first checkpoints have the text's fields beside the others.
      : text(config.is_object("text_config") ? config.object("text_config") : config),
        vision(config.object("vision_config")),
        tokens(config),
        hidden_size(text.positive("hidden_size", 8192)),
        vocab_size(text.positive("vocab_size", 152064)) {}

  Config text, vision;
  GridTokens tokens;
  int64_t hidden_size, vocab_size;
};

class Qwen2VLModel : public Module {
 public:
  Qwen2VLModel(const Weights& weights, const ModelContext& context, const Qwen2VLSettings& s) : Module(weights), s_(s) {
    const auto of = [&](const Config& part) { return ModelContext{part, context.attention, context.dtype}; };
    visual = member<VisionTransformer>(weights, "visual", of(s.vision));
    language_model =
        register_module("language_model", make_part(weights.at("language_model"), context, s.text, "qwen2_vl_text"));
  }

  // What the language model is called with.
  ModelInputs language_inputs(const ModelInputs& inputs) const {
    const ModuleScope scope(path());
    check_ids_or_embeds(inputs);
    s_.tokens.check(inputs);
    const auto ids = inputs.tensor("input_ids");
    auto embeds = inputs.tensor("inputs_embeds");
    if (!embeds.defined()) embeds = language_model->embed(ids);
    const auto merged = [&](const char* pixels, const char* grids, int64_t token) {
      const auto patches = inputs.tensor(pixels);
      if (!patches.defined()) return;
      if (!ids.defined())
        throw Error("'" + std::string(pixels) + "' go with 'input_ids', whose tokens " + std::to_string(token) +
                    " say where they are");
      embeds = merge_features(embeds, ids, token, visual->run(patches, inputs.tensor(grids)).second);
    };
    merged("pixel_values", "image_grid_thw", s_.tokens.image);
    merged("pixel_values_videos", "video_grid_thw", s_.tokens.video);
    auto text = text_inputs(inputs, embeds);
    if (inputs.tensor("position_ids").defined()) return text;
    const auto places = s_.tokens.positions(inputs, inputs.tensor("attention_mask"));
    if (!places) return text;
    if (const Cache* cache = inputs.cache(); cache != nullptr && !cache->tensors().empty())
      throw Error("grids of images after a cache with tokens: give 'position_ids', which go on from those before");
    text.set("position_ids", places->positions);
    return text;
  }

  std::shared_ptr<VisionTransformer> visual;
  std::shared_ptr<PreTrainedModel> language_model;

 private:
  Qwen2VLSettings s_;
};

class Qwen2VLForConditionalGeneration : public ImageTextModel {
 public:
  Qwen2VLForConditionalGeneration(const Weights& weights, const ModelContext& context)
      : ImageTextModel(weights, context, "Qwen2VLForConditionalGeneration"), s_(context.config) {
    model = member<Qwen2VLModel>(weights, "model", context, s_);
    lm_head = member<LinearModel>(weights, "lm_head", context, s_.hidden_size, s_.vocab_size);
  }

  // Without transformers' "image_outputs" and "video_outputs", which are what the part "image_encoder" gives.
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    return run_language_model(model->language_inputs(inputs), *lm_head, inputs.logits_to_keep,
                              "MultimodalCausalLMOutputWithPast");
  }

  std::vector<InputInfo> inputs() const override {
    const std::vector<std::string> tokens{"batch", "sequence"};
    return {{"input_ids", at::kLong, tokens},
            {"attention_mask", at::kLong, {"batch", "total_sequence"}},
            {"position_ids", at::kLong, kGridPositionAxes},
            {"inputs_embeds", dtype(), {"batch", "sequence", ""}},
            {"pixel_values", dtype(), {"patches", "="}},
            {"pixel_values_videos", dtype(), {"video_patches", "="}},
            {"image_grid_thw", at::kLong, {"images", "="}},
            {"video_grid_thw", at::kLong, {"videos", "="}},
            {"mm_token_type_ids", at::kLong, tokens}};
  }

  // An image in each row, and `sequence` tokens of text.
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    const auto images = model->visual->example_inputs(batch, sequence);
    const auto ids = example_ids_with_images(batch, sequence, s_.vocab_size, s_.text.integer_or_none("pad_token_id"),
                                             s_.tokens.image, 4);
    return {{"input_ids", ids},
            {"attention_mask", at::ones_like(ids)},
            {"pixel_values", images.tensor("hidden_states")},
            {"image_grid_thw", images.tensor("grid_thw")},
            {"mm_token_type_ids", s_.tokens.types(ids)}};
  }

  // Those of text, then those in time, height and width: [4, rows, count].
  at::Tensor generation_positions(const at::Tensor& mask, int64_t count, const ModelInputs& first) const override {
    return s_.tokens.positions_of_call(mask, count, first);
  }

  std::vector<ModelPart> parts(const ModelInputs& inputs) const override {
    const auto pixels = inputs.tensor("pixel_values");
    if (!pixels.defined()) return {};
    const auto text = model->language_inputs(inputs);
    const auto hidden = model->language_model->forward(text.copied()).tensor("last_hidden_state");
    return {
        {"image_encoder", model->visual, {{"hidden_states", pixels}, {"grid_thw", inputs.tensor("image_grid_thw")}}},
        {"language_model", model->language_model, text},
        {"lm_head", lm_head, {{"input", hidden}}}};
  }

 protected:
  const PreTrainedModel& language_model() const override { return *model->language_model; }

 private:
  Qwen2VLSettings s_;
  std::shared_ptr<Qwen2VLModel> model;
  std::shared_ptr<LinearModel> lm_head;
};

}  // namespace

std::vector<ModelClass> qwen2_vl_text_classes() {
  return decoder_classes("Qwen2VLText", text_settings, /*ties_by_default=*/false, /*causal_lm_prefix=*/"",
                         {Task::Base});
}

std::vector<ModelClass> qwen2_vl_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "model";
  naming.obsolete = {"rotary_emb.inv_freq"};
  // The names in checkpoints of before transformers 5, which it still writes.
  naming.renames = {{"^visual.", "model.visual."},
                    {"^model.embed_tokens.", "model.language_model.embed_tokens."},
                    {"^model.layers.", "model.language_model.layers."},
                    {"^model.norm.", "model.language_model.norm."}};
  return {{"Qwen2VLForConditionalGeneration",
           Task::ImageTextToText,
           naming,
           {{"lm_head.weight", "model.language_model.embed_tokens.weight"}},
           false,
           make_model<Qwen2VLForConditionalGeneration>}};
}

}  // namespace transporters

#include "transporters/models/llava.h"

#include <ATen/ATen.h>

#include "transporters/error.h"
#include "transporters/layers/activations.h"
#include "transporters/models/clip.h"
#include "transporters/models/make_model.h"
#include "transporters/models/multimodal.h"

namespace transporters {
namespace {

struct LlavaSettings {
  explicit LlavaSettings(const Config& config)
      : text(config.object("text_config")),
        vision(config.object("vision_config")),
        image_token(config.integer(config.has("image_token_id") ? "image_token_id" : "image_token_index", 32000)),
        feature_layers(config.integers("vision_feature_layer")),
        bias(config.boolean("multimodal_projector_bias", true)),
        activation(transporters::activation(config, "projector_hidden_act", "gelu")) {
    if (feature_layers.empty()) feature_layers = {-2};
    const int64_t states = vision.positive("num_hidden_layers", 12) + 1;
    for (int64_t& layer : feature_layers) {
      if (layer < -states || layer >= states)
        config.fail("vision_feature_layer", "expected numbers from " + std::to_string(-states) + " to " +
                                                std::to_string(states - 1) + ", got " + std::to_string(layer));
      if (layer < 0) layer += states;
    }
    const std::string strategy = config.string("vision_feature_select_strategy", "default");
    if (strategy != "default" && strategy != "full")
      config.fail("vision_feature_select_strategy", "expected default or full, got \"" + strategy + "\"");
    with_class = strategy == "full";
  }

  Config text, vision;
  int64_t image_token;
  std::vector<int64_t> feature_layers;  // of the tower's hidden states, from 0
  bool with_class = false;              // whether features include that of the whole image
  bool bias;
  Activation activation;
};

class LlavaMultiModalProjector : public PreTrainedModel {
 public:
  LlavaMultiModalProjector(const Weights& weights, const ModelContext& context, const LlavaSettings& s)
      : PreTrainedModel(weights, context, "LlavaMultiModalProjector"), activation_(s.activation) {
    in_features_ = s.vision.positive("hidden_size", 768) * static_cast<int64_t>(s.feature_layers.size());
    const int64_t hidden_size = s.text.positive("hidden_size", 4096);
    linear_1 = member<Linear>(weights, "linear_1", in_features_, hidden_size, s.bias);
    linear_2 = member<Linear>(weights, "linear_2", hidden_size, hidden_size, s.bias);
  }

  at::Tensor forward(const at::Tensor& features) const {
    const ModuleScope scope(path());
    return linear_2->forward(activation_(linear_1->forward(features)));
  }
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    return ModelOutput::of_tensor(forward(inputs.tensor("image_features")));
  }
  std::vector<InputInfo> inputs() const override { return {{"image_features", dtype(), {"images", "patches", "="}}}; }
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    return {{"image_features", example_pixels({batch, sequence, in_features_}, dtype())}};
  }

 private:
  int64_t in_features_;
  std::shared_ptr<Linear> linear_1, linear_2;
  Activation activation_;
};

class LlavaModel : public Module {
 public:
  LlavaModel(const Weights& weights, const ModelContext& context, const LlavaSettings& s) : Module(weights), s_(s) {
    const auto part = [&](const char* name, const Config& config, const std::string& type) {
      return register_module(name, make_part(weights.at(name), context, config, type));
    };
    vision_tower = std::dynamic_pointer_cast<ClipVisionModel>(
        part("vision_tower", s.vision, s.vision.string("model_type", "clip_vision_model")));
    if (!vision_tower)
      s.vision.fail("model_type", "is '" + s.vision.string("model_type") + "', expected clip_vision_model");
    vision_tower->returns_hidden_states = true;
    multi_modal_projector = member<LlavaMultiModalProjector>(weights, "multi_modal_projector", context, s);
    language_model = part("language_model", s.text, s.text.string("model_type", "llama"));
  }

  // [images, patches, ...] of the tower, as the projector takes them.
  at::Tensor select(const std::vector<at::Tensor>& states) const {
    std::vector<at::Tensor> selected;
    for (const int64_t layer : s_.feature_layers) {
      const auto& state = states[static_cast<size_t>(layer)];
      selected.push_back(s_.with_class ? state : state.slice(1, 1));
    }
    return selected.size() == 1 ? selected[0] : at::cat(selected, -1);
  }

  // What the language model is called with.
  ModelInputs language_inputs(const ModelInputs& inputs) const {
    const ModuleScope scope(path());
    check_ids_or_embeds(inputs);
    auto embeds = inputs.tensor("inputs_embeds");
    const auto ids = inputs.tensor("input_ids"), pixels = inputs.tensor("pixel_values");
    if (pixels.defined() && !ids.defined())
      throw Error("'pixel_values' go with 'input_ids', whose image tokens say where the images are");
    if (!embeds.defined()) embeds = language_model->embed(ids);
    if (pixels.defined()) {
      const auto features = multi_modal_projector->forward(select(vision_tower->hidden_states(pixels)));
      embeds = merge_features(embeds, ids, s_.image_token, features.flatten(0, 1));
    }
    return text_inputs(inputs, embeds);
  }

  std::shared_ptr<ClipVisionModel> vision_tower;
  std::shared_ptr<LlavaMultiModalProjector> multi_modal_projector;
  std::shared_ptr<PreTrainedModel> language_model;

 private:
  LlavaSettings s_;
};

class LlavaForConditionalGeneration : public ImageTextModel {
 public:
  LlavaForConditionalGeneration(const Weights& weights, const ModelContext& context)
      : ImageTextModel(weights, context, "LlavaForConditionalGeneration"), s_(context.config) {
    model = member<LlavaModel>(weights, "model", context, s_);
    lm_head = member<LinearModel>(weights, "lm_head", context, s_.text.positive("hidden_size", 4096),
                                  s_.text.positive("vocab_size", 32000));
  }

  // Without transformers' "image_outputs", which are what the part "image_encoder" gives.
  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    return run_language_model(model->language_inputs(inputs), *lm_head, inputs.logits_to_keep,
                              "transformers.models.llava.modeling_llava.LlavaCausalLMOutputWithPast");
  }

  std::vector<InputInfo> inputs() const override {
    const std::vector<std::string> tokens{"batch", "sequence"};
    return {{"input_ids", at::kLong, tokens},
            {"pixel_values", dtype(), {"images", "", "", ""}},
            {"attention_mask", at::kLong, {"batch", "total_sequence"}},
            {"position_ids", at::kLong, tokens},
            {"inputs_embeds", dtype(), {"batch", "sequence", ""}}};
  }

  // An image in each row, and `sequence` tokens of text.
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override {
    const auto pixels = model->vision_tower->example_inputs(batch, sequence).tensor("pixel_values");
    const int64_t count = llava_image_tokens(config());
    const auto ids = example_ids_with_images(batch, sequence, s_.text.positive("vocab_size", 32000),
                                             s_.text.integer_or_none("pad_token_id"), s_.image_token, count);
    return {{"input_ids", ids}, {"pixel_values", pixels}, {"attention_mask", at::ones_like(ids)}};
  }

  std::vector<ModelPart> parts(const ModelInputs& inputs) const override {
    const auto pixels = inputs.tensor("pixel_values");
    if (!pixels.defined()) return {};
    const auto text = model->language_inputs(inputs);
    const auto hidden = model->language_model->forward(text.copied()).tensor("last_hidden_state");
    return {{"image_encoder", model->vision_tower, {{"pixel_values", pixels}}},
            {"multi_modal_projector",
             model->multi_modal_projector,
             {{"image_features", model->select(model->vision_tower->hidden_states(pixels)).contiguous()}}},
            {"language_model", model->language_model, text},
            {"lm_head", lm_head, {{"input", hidden}}}};
  }

 protected:
  const PreTrainedModel& language_model() const override { return *model->language_model; }

 private:
  LlavaSettings s_;
  std::shared_ptr<LlavaModel> model;
  std::shared_ptr<LinearModel> lm_head;
};

}  // namespace

int64_t llava_image_tokens(const Config& config) {
  const Config vision = config.object("vision_config");
  const auto image = vision.positive_pair("image_size", 224), patch = vision.positive_pair("patch_size", 32);
  const bool is_full = config.string("vision_feature_select_strategy", "default") == "full";
  return (image.first / patch.first) * (image.second / patch.second) + (is_full ? 1 : 0);
}

std::vector<ModelClass> llava_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "model";
  naming.obsolete = {"rotary_emb.inv_freq", "embeddings.position_ids"};
  // The names in checkpoints of before transformers 5, which it still writes.
  naming.renames = {{"^language_model.model.", "model.language_model."},
                    {"^language_model.lm_head.", "lm_head."},
                    {"^vision_tower.", "model.vision_tower."},
                    {"^multi_modal_projector.", "model.multi_modal_projector."},
                    {"vision_tower.vision_model.", "vision_tower."}};
  return {{"LlavaForConditionalGeneration",
           Task::ImageTextToText,
           naming,
           {{"lm_head.weight", "model.language_model.embed_tokens.weight"}},
           false,
           make_model<LlavaForConditionalGeneration>}};
}

}  // namespace transporters

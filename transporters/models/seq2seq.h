// Encoder-decoders with absolute positions: what BART and its relatives have in common.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"
#include "transporters/layers/norm.h"
#include "transporters/models/auto.h"

namespace transporters {

// A block in place of a layer's two projections.
class Seq2SeqFeedForward : public Module {
 public:
  using Module::Module;
  // [batch, sequence, hidden]; `mask` is what the layer's self attention reads.
  virtual at::Tensor forward(const at::Tensor& x, const at::Tensor& mask) const = 0;
};

struct Seq2SeqSettings {
  struct Stack {
    int64_t layers = 12;
    int64_t heads = 16;
    int64_t intermediate_size = 4096;
    int64_t max_positions = 1024;
  };
  // How float16 is kept from overflowing, a little below its largest number.
  enum class Clamp { Never, WhenNotFinite, Always };
  enum class Positions { Learned, Sinusoidal };

  // Reads what all these models' configs have; throws Error for settings that are not supported.
  static Seq2SeqSettings from_config(const Config& config, const Seq2SeqSettings& defaults);

  std::string class_prefix = "Bart";
  int64_t vocab_size = 50265;
  int64_t hidden_size = 1024;
  Stack encoder, decoder;
  double embedding_scale = 1.0;
  Activation activation = nullptr;
  Positions positions = Positions::Learned;
  int64_t position_offset = 0;                           // of learned positions
  std::string position_key = "max_position_embeddings";  // of config.json, about the decoder
  int64_t pad_token_id = 1;                              // sinusoidal positions count the other tokens
  // Norms come before what they are for, and one more after the last layer; otherwise after it, and one more before the
  // first layer.
  bool norms_first = false;
  bool key_bias = true;
  // The query is scaled before the product with the keys, not the product.
  bool scales_query = false;
  Clamp encoder_clamp = Clamp::Never, decoder_clamp = Clamp::Never;
  // Encoder and decoder read their words from a table of this model.
  bool shares_embedding = true;
  // Tokens of the decoder are, when none are given, the encoder's after a start token.
  bool decodes_prompt = false;
  bool has_static_cache = true;
  bool takes_positions = false;  // of the decoder's tokens, as "decoder_position_ids"
  // Names in checkpoints.
  std::string cross_attention = "encoder_attn";
  std::string feed_forward_norm = "final_layer_norm";
  // Of the layer's "ffn", in models that have no projections in the layer itself.
  std::function<std::shared_ptr<Seq2SeqFeedForward>(const Weights&, const ModelContext&, const Seq2SeqSettings&,
                                                    int64_t layer, bool is_decoder)>
      feed_forward;
  // Without it, an encoder of text.
  std::function<std::shared_ptr<PreTrainedModel>(const Weights&, const ModelContext&, const Seq2SeqSettings&)>
      make_encoder;
  std::string encoder_output = "BaseModelOutput";
  std::string model_output = "Seq2SeqModelOutput";
  std::string lm_output = "Seq2SeqLMOutput";
};

// Scaled dot-product attention over the same states, or over those of an encoder.
class Seq2SeqAttention : public Module {
 public:
  Seq2SeqAttention(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& settings, int64_t heads);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mask, CacheLayer* cache) const;
  // Over the encoder's states, whose keys and values the cache has after the first call.
  at::Tensor cross(const at::Tensor& x, const at::Tensor& states, const at::Tensor& mask, CacheLayer* cache) const;

 private:
  at::Tensor split(const at::Tensor& x) const;
  at::Tensor attend(const at::Tensor& x, const at::Tensor& keys, const at::Tensor& values,
                    const at::Tensor& mask) const;

  int64_t heads_, head_dim_;
  double query_scale_ = 1.0;
  std::shared_ptr<Linear> k_proj, v_proj, q_proj, out_proj;
  AttentionArguments arguments_;
};

class Seq2SeqLayer : public Module {
 public:
  Seq2SeqLayer(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& settings, int64_t layer,
               bool is_decoder);
  at::Tensor encode(at::Tensor x, const at::Tensor& mask) const;
  // The caches may be null.
  at::Tensor decode(at::Tensor x, const at::Tensor& mask, const at::Tensor& states, const at::Tensor& states_mask,
                    CacheLayer* cache, CacheLayer* cross_cache) const;

 private:
  at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& mask) const;
  // x and what `part` makes of it, with the norm before or after.
  template <typename Part>
  at::Tensor residual(const at::Tensor& x, const LayerNorm& norm, Part part) const;
  at::Tensor clamped(const at::Tensor& x) const;

  bool norms_first_;
  Seq2SeqSettings::Clamp clamp_;
  Activation activation_;
  std::shared_ptr<Seq2SeqAttention> self_attn, cross_attn;
  std::shared_ptr<LayerNorm> self_attn_layer_norm, cross_attn_layer_norm, feed_forward_layer_norm;
  std::shared_ptr<Linear> fc1, fc2;
  std::shared_ptr<Seq2SeqFeedForward> ffn;
};

// Words and positions, the sum of which the first layer reads.
class Seq2SeqEmbeddings {
 public:
  Seq2SeqEmbeddings() = default;
  Seq2SeqEmbeddings(const Seq2SeqSettings& settings, std::shared_ptr<Embedding> words,
                    std::shared_ptr<Embedding> learned_positions);
  // Of `ids` [batch, tokens], or of their `embeds` when those are given. `positions` may be undefined; `past` may be
  // null.
  at::Tensor forward(const at::Tensor& ids, at::Tensor embeds, const at::Tensor& positions,
                     const CacheLayer* past) const;

 private:
  at::Tensor sinusoidal(const at::Tensor& ids, const at::Tensor& embeds, const CacheLayer* past) const;

  std::shared_ptr<Embedding> words_, learned_;
  double scale_ = 1.0;
  int64_t offset_ = 0, pad_ = 0;
  at::Tensor frequencies_;  // [hidden / 2]
};

class Seq2SeqTextEncoder : public PreTrainedModel {
 public:
  Seq2SeqTextEncoder(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& settings);
  ModelOutput forward(const ModelInputs& inputs) const override;
  std::vector<InputInfo> inputs() const override;
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override;
  std::optional<PositionTable> position_table() const override;

 private:
  Seq2SeqSettings settings_;
  Seq2SeqEmbeddings embeddings_;
  std::shared_ptr<Embedding> embed_tokens, embed_positions;
  std::vector<std::shared_ptr<Seq2SeqLayer>> layers;
  std::shared_ptr<LayerNorm> layernorm_embedding, layer_norm;
};

class Seq2SeqDecoder : public Module {
 public:
  Seq2SeqDecoder(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& settings);
  // "decoder_..." of `inputs`, over the encoder's `states`; the cache may be null.
  at::Tensor forward(const at::Tensor& ids, const ModelInputs& inputs, const at::Tensor& states, Cache* cache) const;

 private:
  AttentionImplementation attention_;
  Seq2SeqEmbeddings embeddings_;
  std::shared_ptr<Embedding> embed_tokens, embed_positions;
  std::vector<std::shared_ptr<Seq2SeqLayer>> layers;
  std::shared_ptr<LayerNorm> layernorm_embedding, layer_norm;
};

// What all classes have in common as models.
class Seq2SeqPreTrainedModel : public PreTrainedModel {
 public:
  Seq2SeqPreTrainedModel(const Weights& weights, const ModelContext& context, const std::string& architecture,
                         const Seq2SeqSettings& settings)
      : PreTrainedModel(weights, context, architecture), settings_(settings) {}

  std::vector<InputInfo> inputs() const override;
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override;
  std::optional<Cache> empty_cache() const override;
  std::optional<Cache> static_cache(int64_t batch, int64_t length) const override;
  std::optional<PositionTable> position_table() const override;

 protected:
  const Seq2SeqSettings& settings() const { return settings_; }

 private:
  Seq2SeqSettings settings_;
};

class Seq2SeqModel : public Seq2SeqPreTrainedModel {
 public:
  struct Result {
    at::Tensor last_hidden_state;
    std::optional<Cache> cache;
    at::Tensor encoder_last_hidden_state;
  };

  Seq2SeqModel(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& settings);
  ModelOutput forward(const ModelInputs& inputs) const override;
  std::shared_ptr<PreTrainedModel> encoder() const override { return encoder_; }
  Result run(const ModelInputs& inputs) const;

 private:
  at::Tensor decoder_ids(const ModelInputs& inputs) const;

  std::shared_ptr<Embedding> shared;
  std::shared_ptr<PreTrainedModel> encoder_;
  std::shared_ptr<Seq2SeqDecoder> decoder_;
};

// A class with a head over Seq2SeqModel, which is its member "model".
class Seq2SeqWithHead : public Seq2SeqPreTrainedModel {
 public:
  Seq2SeqWithHead(const Weights& weights, const ModelContext& context, const std::string& suffix,
                  const Seq2SeqSettings& settings);
  std::shared_ptr<PreTrainedModel> encoder() const override { return model_->encoder(); }

 protected:
  // The output's last fields.
  static void finish(ModelOutput& output, const Seq2SeqModel::Result& result);

  std::shared_ptr<Seq2SeqModel> model_;
};

// Predicts tokens.
class Seq2SeqForConditionalGeneration : public Seq2SeqWithHead {
 public:
  // `head` is the projection's name in checkpoints.
  Seq2SeqForConditionalGeneration(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& settings,
                                  const std::string& head);
  ModelOutput forward(const ModelInputs& inputs) const override;
  bool generates() const override { return true; }

 private:
  std::shared_ptr<Linear> head_;
  at::Tensor final_logits_bias_;  // [1, vocabulary]; undefined in models without one
};

// PREFIXModel and PREFIXForConditionalGeneration. The projection to tokens has the name `head`, and is tied to the
// table `words` of the base model.
std::vector<ModelClass> seq2seq_classes(Seq2SeqSettings (*settings)(const Config&), const std::string& class_prefix,
                                        const std::string& head, const std::string& words, Task task,
                                        const WeightStore::Naming& naming);
// The same class, with the tables of encoder and decoder tied to "shared".
ModelClass tied_words(ModelClass model_class);

// A class made with the settings that `settings` reads from the config.
template <typename M, typename... Arguments>
std::function<std::shared_ptr<PreTrainedModel>(const Weights&, const ModelContext&)> make_seq2seq(
    Seq2SeqSettings (*settings)(const Config&), Arguments... arguments) {
  return [=](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
    return std::make_shared<M>(weights, context, settings(context.config), arguments...);
  };
}

}  // namespace transporters

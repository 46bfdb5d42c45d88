// The post-normalised encoder that BERT and its descendants share, and the heads they have in common. It runs as a
// decoder too when the config says so.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transporters/layers/linear.h"
#include "transporters/layers/norm.h"
#include "transporters/models/auto.h"

namespace transporters {

struct EncoderSettings {
  // Reads what all these models' configs have; throws Error for settings that are not supported.
  static EncoderSettings from_config(const Config& config);

  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_layers = 12;
  int64_t num_heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  double layer_norm_eps = 1e-12;
  bool is_decoder = false;
  int64_t pad_token_id = 0;
  // Positions count the tokens that are not padding, from pad_token_id + 1 on: RoBERTa.
  bool positions_from_padding = false;
  // Member name of the base model in models with heads, and the classes' prefix.
  std::string base_prefix = "bert";
  std::string class_prefix = "Bert";
};

// What all these classes have in common as models.
class EncoderPreTrainedModel : public PreTrainedModel {
 public:
  EncoderPreTrainedModel(const Weights& weights, const ModelContext& context, const std::string& architecture,
                         EncoderSettings settings)
      : PreTrainedModel(weights, context, architecture), settings_(std::move(settings)) {}

  std::vector<InputInfo> inputs() const override;
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override;
  std::optional<Cache> empty_cache() const override;
  std::optional<PositionTable> position_table() const override;

 protected:
  const EncoderSettings& settings() const { return settings_; }
  virtual std::vector<std::string> token_axes() const { return {"batch", "sequence"}; }

 private:
  EncoderSettings settings_;
};

class EncoderEmbeddings;
class EncoderStack;
class EncoderPooler;

// The base model.
class EncoderModel : public EncoderPreTrainedModel {
 public:
  struct Result {
    at::Tensor last_hidden_state;
    at::Tensor pooler_output;  // undefined without a pooler
    std::optional<Cache> cache;
  };

  EncoderModel(const Weights& weights, const ModelContext& context, const EncoderSettings& settings,
               bool with_pooler = true);
  ModelOutput forward(const ModelInputs& inputs) const override;
  Result run(const ModelInputs& inputs) const;

 private:
  std::shared_ptr<EncoderEmbeddings> embeddings;
  std::shared_ptr<EncoderStack> encoder;
  std::shared_ptr<EncoderPooler> pooler;
};

// A projection, an activation and a LayerNorm before token predictions.
class PredictionTransform : public Module {
 public:
  PredictionTransform(const Weights& weights, const ModelContext& context, const EncoderSettings& settings);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  std::shared_ptr<Linear> dense;
  std::shared_ptr<LayerNorm> layer_norm;
  at::Tensor (*activation_)(const at::Tensor&);
};

// Names of an encoder's parameters in checkpoints.
WeightStore::Naming encoder_naming(const std::string& base_prefix, bool is_base);

// A class made with the settings that `settings` reads from the config.
template <typename M, typename Settings, typename... Arguments>
std::function<std::shared_ptr<PreTrainedModel>(const Weights&, const ModelContext&)> make_encoder(
    Settings settings, Arguments... arguments) {
  return [=](const Weights& weights, const ModelContext& context) -> std::shared_ptr<PreTrainedModel> {
    return std::make_shared<M>(weights, context, settings(context.config), arguments...);
  };
}

// PREFIXModel, PREFIXForTokenClassification, ...ForQuestionAnswering and ...ForMultipleChoice.
std::vector<ModelClass> encoder_classes(EncoderSettings (*settings)(const Config&), const std::string& class_prefix,
                                        const std::string& base_prefix);

}  // namespace transporters

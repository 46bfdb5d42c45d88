#include "transporters/models/whisper.h"

#include <ATen/ATen.h>

#include "transporters/error.h"
#include "transporters/models/multimodal.h"
#include "transporters/models/seq2seq.h"

namespace transporters {
namespace {

// A convolution over time with a kernel of three.
class WhisperConvolution : public Module {
 public:
  WhisperConvolution(const Weights& weights, int64_t in_channels, int64_t out_channels, int64_t stride)
      : Module(weights), stride_(stride) {
    weight = parameter(weights, "weight", {out_channels, in_channels, 3});
    bias = parameter(weights, "bias", {out_channels});
  }
  at::Tensor forward(const at::Tensor& x) const {
    const ModuleScope scope(path());
    return at::gelu(at::conv1d(x, weight, bias, /*stride=*/stride_, /*padding=*/1));
  }

 private:
  int64_t stride_;
  at::Tensor weight, bias;
};

class WhisperEncoder : public PreTrainedModel {
 public:
  WhisperEncoder(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s)
      : PreTrainedModel(weights, context, "WhisperEncoder"),
        mel_bins_(context.config.positive("num_mel_bins", 80)),
        frames_(2 * s.encoder.max_positions) {
    conv1 = member<WhisperConvolution>(weights, "conv1", mel_bins_, s.hidden_size, 1);
    conv2 = member<WhisperConvolution>(weights, "conv2", s.hidden_size, s.hidden_size, 2);
    embed_positions = member<Embedding>(weights, "embed_positions", s.encoder.max_positions, s.hidden_size);
    layers = members<Seq2SeqLayer>(weights, "layers", s.encoder.layers, [&](const Weights& w, int64_t i) {
      return std::make_shared<Seq2SeqLayer>(w, context, s, i, /*is_decoder=*/false);
    });
    layer_norm = member<LayerNorm>(weights, "layer_norm", s.hidden_size, 1e-5);
  }

  ModelOutput forward(const ModelInputs& inputs) const override {
    check_inputs(inputs);
    const ModuleScope scope(path());
    const at::Tensor features = inputs.tensor("input_features");
    check(features);
    // Features are float32, whatever the model's type.
    auto x = conv2->forward(conv1->forward(features.to(embed_positions->weight.scalar_type()))).transpose(1, 2);
    x = x + embed_positions->weight;
    for (const auto& layer : layers) x = layer->encode(x, {});
    ModelOutput output("BaseModelOutput");
    output.set("last_hidden_state", layer_norm->forward(x));
    return output;
  }

  std::vector<InputInfo> inputs() const override { return {{"input_features", dtype(), {"batch", "", ""}}}; }
  // Speech has one length: `sequence` is not used.
  ModelInputs example_inputs(int64_t batch, int64_t /*sequence*/) const override {
    const auto values = at::remainder(at::arange(batch * mel_bins_ * frames_, at::kFloat) * 7, 255) / 127.5 - 1.0;
    return {{"input_features", values.view({batch, mel_bins_, frames_}).to(dtype())}};
  }

 private:
  void check(const at::Tensor& features) const {
    if (!features.defined()) throw Error("'input_features' is missing: expected the spectrogram of speech");
    if (features.dim() != 3)
      throw Error("'input_features': expected 3 axes (batch, mel bins, frames), got " + std::to_string(features.dim()));
    expect_size(features, "input_features", 1, mel_bins_, "mel bins", "take the feature extractor of this checkpoint");
    expect_size(features, "input_features", 2, frames_, "frames", "pad or cut the speech");
  }

  int64_t mel_bins_, frames_;
  std::shared_ptr<WhisperConvolution> conv1, conv2;
  std::shared_ptr<Embedding> embed_positions;
  std::vector<std::shared_ptr<Seq2SeqLayer>> layers;
  std::shared_ptr<LayerNorm> layer_norm;
};

Seq2SeqSettings settings(const Config& config) {
  Seq2SeqSettings defaults;
  defaults.class_prefix = "Whisper";
  defaults.vocab_size = 51865;
  defaults.hidden_size = 384;
  defaults.pad_token_id = 50256;
  defaults.encoder = defaults.decoder = {.layers = 4, .heads = 6, .intermediate_size = 1536};
  Seq2SeqSettings s = Seq2SeqSettings::from_config(config, defaults);
  s.encoder.max_positions = config.positive("max_source_positions", 1500);
  s.decoder.max_positions = config.positive("max_target_positions", 448);
  s.position_key = "max_target_positions";
  s.activation = activation(config, "activation_function", "gelu");
  s.norms_first = true;
  s.key_bias = false;
  s.scales_query = true;
  s.encoder_clamp = Seq2SeqSettings::Clamp::Always;
  s.shares_embedding = false;
  s.takes_positions = true;
  s.make_encoder = [](const Weights& weights, const ModelContext& context,
                      const Seq2SeqSettings& all) -> std::shared_ptr<PreTrainedModel> {
    return std::make_shared<WhisperEncoder>(weights, context, all);
  };
  return s;
}

}  // namespace

std::vector<ModelClass> whisper_classes() {
  WeightStore::Naming naming;
  naming.base_prefix = "model";
  return seq2seq_classes(settings, "Whisper", "proj_out", "decoder.embed_tokens", Task::SpeechSeq2Seq, naming);
}

}  // namespace transporters

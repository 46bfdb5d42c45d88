#include "transporters/models/image_encoder.h"

#include <ATen/ATen.h>

#include <cmath>

namespace transporters {

ImageEncoderSettings::ImageEncoderSettings(const Config& config, int64_t patch_size, double layer_norm_eps,
                                           const char* hidden_act)
    : hidden_size(config.positive("hidden_size", 768)),
      intermediate_size(config.positive("intermediate_size", 3072)),
      num_layers(config.positive("num_hidden_layers", 12)),
      num_heads(config.positive("num_attention_heads", 12)),
      channels(config.positive("num_channels", 3)),
      image(config.positive_pair("image_size", 224)),
      patch(config.positive_pair("patch_size", patch_size)),
      eps(config.non_negative_real("layer_norm_eps", layer_norm_eps)),
      activation(transporters::activation(config, "hidden_act", hidden_act)) {
  if (hidden_size % num_heads != 0)
    config.fail("hidden_size", "expected a multiple of num_attention_heads (" + std::to_string(num_heads) + "), got " +
                                   std::to_string(hidden_size));
  if (image.first < patch.first || image.second < patch.second)
    config.fail("patch_size", "expected at most the image's size (" + std::to_string(image.first) + " x " +
                                  std::to_string(image.second) + "), got " + std::to_string(patch.first) + " x " +
                                  std::to_string(patch.second));
}

PatchProjection::PatchProjection(const Weights& weights, const ImageEncoderSettings& s, bool with_bias)
    : Module(weights), patch_(s.patch) {
  weight = parameter(weights, "weight", {s.hidden_size, s.channels, s.patch.first, s.patch.second});
  if (with_bias) bias = parameter(weights, "bias", {s.hidden_size});
}

at::Tensor PatchProjection::forward(const at::Tensor& pixels) const {
  const ModuleScope scope(path());
  return at::conv2d(pixels, weight, bias, {patch_.first, patch_.second}).flatten(2).transpose(1, 2);
}

ImageAttention::ImageAttention(const Weights& weights, const ModelContext& context, const ImageEncoderSettings& s)
    : Module(weights), heads_(s.num_heads), head_dim_(s.hidden_size / s.num_heads) {
  arguments_ = {context.attention, 1.0 / std::sqrt(static_cast<double>(head_dim_))};
}

at::Tensor ImageAttention::forward(const at::Tensor& x) const {
  const ModuleScope scope(path());
  const auto heads = [&](const Linear& projection) {
    return split_heads(projection.forward(x), heads_, head_dim_).transpose(1, 2);
  };
  return output->forward(attention(heads(*query), heads(*key), heads(*value), {}, arguments_));
}

}  // namespace transporters

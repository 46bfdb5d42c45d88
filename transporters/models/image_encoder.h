// What encoders of images over patches share.
#pragma once

#include <utility>

#include "transporters/layers/activations.h"
#include "transporters/layers/linear.h"
#include "transporters/models/pretrained_model.h"

namespace transporters {

struct ImageEncoderSettings {
  // Of a class whose patches, eps and activation are these where the config does not say.
  ImageEncoderSettings(const Config& config, int64_t patch_size, double layer_norm_eps, const char* hidden_act);

  int64_t num_patches() const { return (image.first / patch.first) * (image.second / patch.second); }

  int64_t hidden_size, intermediate_size, num_layers, num_heads, channels;
  std::pair<int64_t, int64_t> image, patch;  // height, width
  double eps;
  Activation activation;
};

// Each patch of the images as one vector, [images, patches, hidden_size]: a convolution whose kernel and stride are the
// patch.
class PatchProjection : public Module {
 public:
  PatchProjection(const Weights& weights, const ImageEncoderSettings& s, bool with_bias);
  at::Tensor forward(const at::Tensor& pixels) const;

 private:
  at::Tensor weight, bias;
  std::pair<int64_t, int64_t> patch_;
};

// Attention of all patches to all. Classes name its parts.
class ImageAttention : public Module {
 public:
  ImageAttention(const Weights& weights, const ModelContext& context, const ImageEncoderSettings& s);
  at::Tensor forward(const at::Tensor& x) const;

 protected:
  std::shared_ptr<Linear> query, key, value, output;

 private:
  int64_t heads_, head_dim_;
  AttentionArguments arguments_;
};

}  // namespace transporters

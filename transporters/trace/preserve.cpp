#include "transporters/trace/preserve.h"

namespace transporters {

const std::set<std::string, std::less<>>& preserved_ops() {
  static const std::set<std::string, std::less<>> ops = {
      // Matrix products: the composites fold batch dimensions by views that targets have to undo.
      "aten::linear",
      "aten::matmul",
      // Attention: the composite picks a CPU flash kernel that no target has.
      "aten::scaled_dot_product_attention",
      // Normalisation. batch_norm only outside training, see Recorder::preserve_applies.
      "aten::layer_norm",
      "aten::rms_norm",
      "aten::group_norm",
      "aten::instance_norm",
      "aten::batch_norm",
      "aten::softmax.int",
      "aten::log_softmax.int",
      // Convolution and pooling: the composites go through one op with many flags.
      "aten::conv1d",
      "aten::conv2d",
      "aten::conv3d",
      "aten::conv1d.padding",
      "aten::conv2d.padding",
      "aten::conv3d.padding",
      "aten::conv_transpose1d",
      "aten::conv_transpose2d.input",
      "aten::conv_transpose3d.input",
      "aten::max_pool1d",
      "aten::max_pool2d",
      "aten::max_pool3d",
      "aten::avg_pool1d",
      "aten::adaptive_avg_pool1d",
      "aten::adaptive_avg_pool2d",
      "aten::adaptive_avg_pool3d",
      // Recurrent layers: the composites unroll over time.
      "aten::lstm.input",
      "aten::gru.input",
      "aten::rnn_tanh.input",
      "aten::rnn_relu.input",
      // Resampling: the composites compute sizes through floating point.
      "aten::upsample_nearest1d.vec",
      "aten::upsample_nearest2d.vec",
      "aten::upsample_nearest3d.vec",
      "aten::_upsample_nearest_exact1d.vec",
      "aten::_upsample_nearest_exact2d.vec",
      "aten::upsample_linear1d.vec",
      "aten::upsample_bilinear2d.vec",
      "aten::upsample_trilinear3d.vec",
      "aten::upsample_bicubic2d.vec",
      "aten::_upsample_bilinear2d_aa.vec",
      "aten::_upsample_bicubic2d_aa.vec",
      "aten::grid_sampler",
      // Activations and small things with a one-to-one counterpart.
      "aten::prelu",
      "aten::log_sigmoid",
      "aten::relu6",
      "aten::selu",
      "aten::one_hot",
      "aten::embedding_bag",
      "aten::pixel_shuffle",
      "aten::pixel_unshuffle",
      "aten::repeat_interleave.self_int",
      "aten::take_along_dim",
  };
  return ops;
}

}  // namespace transporters

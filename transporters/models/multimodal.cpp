#include "transporters/models/multimodal.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>

#include "transporters/error.h"
#include "transporters/models/auto.h"
#include "transporters/models/grids.h"
#include "transporters/models/llava.h"
#include "transporters/trace/fake_tensor.h"

namespace transporters {
namespace {

int64_t image_token(const Config& config) {
  return config.integer(config.has("image_token_id") ? "image_token_id" : "image_token_index");
}

}  // namespace

bool is_traced(const at::Tensor& tensor) {
  return at::functionalization::impl::isFunctionalTensor(tensor) || as_fake(tensor) != nullptr;
}

void check_images(const Config& config, const NamedValues& inputs) {
  const std::string type = config.string("model_type", "");
  if (type == "qwen2_vl") return GridTokens(config).check(inputs);
  const at::Tensor pixels = inputs.tensor("pixel_values"), ids = inputs.tensor("input_ids");
  const bool has_token = config.has("image_token_id") || config.has("image_token_index");
  if (!pixels.defined() || !ids.defined() || !has_token) return;
  const int64_t token = image_token(config), got = ids.eq(token).sum().item<int64_t>();
  const bool is_counted =
      type == "llava" && config.object("vision_config").string("model_type", "") == "clip_vision_model";
  const int64_t expected = is_counted ? llava_image_tokens(config) * pixels.size(0) : 1;
  if (is_counted ? got != expected : got == 0)
    throw Error({.stage = "inputs"}, "'input_ids': expected " + std::to_string(expected) + " of the token " +
                                         std::to_string(token) + " for the images, got " + std::to_string(got));
}

void expect_size(const at::Tensor& input, const std::string& name, int64_t axis, int64_t expected,
                 const std::string& what, const std::string& advice) {
  const c10::SymInt got = input.sym_size(axis);
  if (!got.sym_eq(expected).expect_true(__FILE__, __LINE__))
    throw Error("'" + name + "': expected " + what + " " + std::to_string(expected) + ", got " +
                std::to_string(got.guard_int(__FILE__, __LINE__)) + "; " + advice);
}

void check_image(const at::Tensor& pixels, int64_t channels, std::pair<int64_t, int64_t> size) {
  if (pixels.dim() != 4)
    throw Error("'pixel_values': expected 4 axes (batch, channels, height, width), got " +
                std::to_string(pixels.dim()));
  expect_size(pixels, "pixel_values", 1, channels, "channels", "take the image processor of this checkpoint");
  const std::string resize = "resize the image, positions are not interpolated";
  expect_size(pixels, "pixel_values", 2, size.first, "height", resize);
  expect_size(pixels, "pixel_values", 3, size.second, "width", resize);
}

at::Tensor example_pixels(at::IntArrayRef sizes, at::ScalarType dtype) {
  const int64_t count = c10::multiply_integers(sizes);
  return (at::remainder(at::arange(count, at::kFloat) * 7, 255) / 127.5 - 1.0).view(sizes).to(dtype);
}

at::Tensor example_ids_with_images(int64_t batch, int64_t sequence, int64_t vocab_size, std::optional<int64_t> pad,
                                   int64_t special, int64_t count) {
  const auto text = example_ids(batch, sequence, vocab_size, pad);
  int64_t other = (special + 1) % vocab_size;
  if (pad && other == *pad) other = (other + 1) % vocab_size;
  const auto without = at::where(text.eq(special), at::scalar_tensor(other, at::kLong), text);
  return at::cat({without.narrow(1, 0, 1), at::full({batch, count}, special, at::kLong), without.slice(1, 1)}, 1);
}

void expect_count(const at::Tensor& count, const c10::SymInt& expected, const std::string& message) {
  if (is_traced(count)) {
    at::_assert_async(count.eq(expected), message);
  } else if (const auto got = count.item<int64_t>(); got != expected.expect_int()) {
    throw Error(message + ", of which there are " + std::to_string(expected.expect_int()) + ", got " +
                std::to_string(got));
  }
}

at::Tensor merge_features(const at::Tensor& embeds, const at::Tensor& ids, int64_t special,
                          const at::Tensor& features) {
  const auto here = ids.eq(special);
  expect_count(here.sum(), features.sym_size(0),
               "'input_ids': expected a token " + std::to_string(special) + " for each feature of the images");
  const auto place = at::clamp_min(here.flatten().cumsum(0) - 1, 0);
  const auto spread = at::embedding(features.to(embeds.scalar_type()), place.view_symint(ids.sym_sizes()));
  return at::where(here.unsqueeze(-1), spread, embeds);
}

ModelInputs text_inputs(const ModelInputs& inputs, const at::Tensor& embeds) {
  ModelInputs text;
  text.use_cache = inputs.use_cache;
  if (const TensorDict* masks = inputs.dict("attention_mask"))
    text.set("attention_mask", *masks);
  else
    text.set("attention_mask", inputs.tensor("attention_mask"));
  text.set("position_ids", inputs.tensor("position_ids"));
  if (const Cache* cache = inputs.cache()) text.set("cache", *cache);
  text.set("inputs_embeds", embeds);
  return text;
}

LinearModel::LinearModel(const Weights& weights, const ModelContext& context, int64_t in_features, int64_t out_features)
    : PreTrainedModel(weights, context, "Linear") {
  weight = parameter(weights, "weight", {out_features, in_features});
}

at::Tensor LinearModel::forward(const at::Tensor& x) const {
  const ModuleScope scope(path());
  return at::linear(x, weight);
}

ModelOutput LinearModel::forward(const ModelInputs& inputs) const {
  check_inputs(inputs);
  return ModelOutput::of_tensor(forward(inputs.tensor("input")));
}

std::vector<InputInfo> LinearModel::inputs() const { return {{"input", dtype(), {"batch", "sequence", "="}}}; }

ModelInputs LinearModel::example_inputs(int64_t batch, int64_t sequence) const {
  return {{"input", example_pixels({batch, sequence, weight.size(1)}, dtype())}};
}

ModelOutput ImageTextModel::run_language_model(const ModelInputs& text, const LinearModel& head, int64_t logits_to_keep,
                                               const std::string& output_class) const {
  const auto result = language_model().forward(text);
  ModelOutput output(output_class);
  output.set("logits", head.forward(last_tokens(result.tensor("last_hidden_state"), logits_to_keep)));
  if (const Cache* cache = result.cache()) output.set("cache", *cache);
  return output;
}

std::shared_ptr<PreTrainedModel> make_part(const Weights& weights, const ModelContext& context, const Config& part,
                                           const std::string& model_type) {
  for (const ModelType& type : model_types())
    if (type.name == model_type)
      for (const ModelClass& model_class : type.classes)
        if (model_class.task == Task::Base) return model_class.make(weights, {part, context.attention, context.dtype});
  part.fail("model_type", "is '" + model_type + "', which has no native base model for this part");
}

}  // namespace transporters

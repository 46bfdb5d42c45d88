// What models of images and text share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "transporters/layers/linear.h"
#include "transporters/models/pretrained_model.h"

namespace transporters {

// Throws Error unless the axis of the input has that size; a dynamic one is thereby known to have it. `what` names the
// axis
// ("height"), `advice` is what to try.
void expect_size(const at::Tensor& input, const std::string& name, int64_t axis, int64_t expected,
                 const std::string& what, const std::string& advice);

// Throws Error unless `pixels` is [images, channels, height, width] of these sizes; dynamic ones are thereby known to
// be them.
void check_image(const at::Tensor& pixels, int64_t channels, std::pair<int64_t, int64_t> size);

// Numbers in -1 to 1, the same for the same sizes.
at::Tensor example_pixels(at::IntArrayRef sizes, at::ScalarType dtype);

// Rows of `sequence` text tokens, with `count` tokens `special` behind the first.
at::Tensor example_ids_with_images(int64_t batch, int64_t sequence, int64_t vocab_size, std::optional<int64_t> pad,
                                   int64_t special, int64_t count);

// Whether the tensor's values are not known, because a tracer runs.
bool is_traced(const at::Tensor& tensor);

// Throws Error where "input_ids" has not the tokens of its images that this config says, for model types that say it.
void check_images(const Config& config, const NamedValues& inputs);

// Throws Error with the message unless the tensor's number is `expected`; a program asserts it.
void expect_count(const at::Tensor& count, const c10::SymInt& expected, const std::string& message);

// `embeds` [batch, sequence, hidden] with the features [count, hidden] one after the other where `ids` has `special`.
// Throws Error unless there are as many of one as of the other, and a program asserts it.
at::Tensor merge_features(const at::Tensor& embeds, const at::Tensor& ids, int64_t special, const at::Tensor& features);

// What a model of text takes of the inputs of a model of images and text: mask, positions, cache, and these embeddings.
ModelInputs text_inputs(const ModelInputs& inputs, const at::Tensor& embeds);

// A linear layer that is a component of its own.
class LinearModel : public PreTrainedModel {
 public:
  LinearModel(const Weights& weights, const ModelContext& context, int64_t in_features, int64_t out_features);
  at::Tensor forward(const at::Tensor& x) const;
  ModelOutput forward(const ModelInputs& inputs) const override;
  std::vector<InputInfo> inputs() const override;
  ModelInputs example_inputs(int64_t batch, int64_t sequence) const override;

 private:
  at::Tensor weight;
};

// A model of images and text that generates with its language model.
class ImageTextModel : public PreTrainedModel {
 public:
  using PreTrainedModel::PreTrainedModel;
  bool generates() const override { return true; }
  at::Tensor embed(const at::Tensor& ids) const override { return language_model().embed(ids); }
  std::optional<Cache> empty_cache() const override { return language_model().empty_cache(); }
  std::optional<Cache> static_cache(int64_t batch, int64_t length) const override {
    return language_model().static_cache(batch, length);
  }
  std::vector<std::string> mask_kinds() const override { return language_model().mask_kinds(); }
  std::optional<PositionTable> position_table() const override { return language_model().position_table(); }

 protected:
  virtual const PreTrainedModel& language_model() const = 0;
  // The logits and cache of a call, as transformers' class `output` has them.
  ModelOutput run_language_model(const ModelInputs& text, const LinearModel& head, int64_t logits_to_keep,
                                 const std::string& output) const;
};

// The base model of that type for a part of the config ("text_config"). Throws Error for a type without one.
std::shared_ptr<PreTrainedModel> make_part(const Weights& weights, const ModelContext& context, const Config& part,
                                           const std::string& model_type);

}  // namespace transporters

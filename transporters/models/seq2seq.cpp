#include "transporters/models/seq2seq.h"

#include <ATen/ATen.h>

#include <cmath>

#include "transporters/error.h"

namespace transporters {
namespace {

MaskArguments mask_arguments(AttentionImplementation attention, const at::Tensor& x, const at::Tensor& given) {
  MaskArguments arguments;
  arguments.implementation = attention;
  arguments.dtype = x.scalar_type();
  arguments.batch = x.sym_size(0);
  arguments.query_length = x.sym_size(1);
  arguments.attention_mask = given;
  return arguments;
}

int64_t table_size(const Seq2SeqSettings::Stack& stack, const Seq2SeqSettings& s) {
  return stack.max_positions + s.position_offset;
}

Seq2SeqSettings::Stack stack_from_config(const Config& config, const std::string& name, int64_t hidden_size,
                                         Seq2SeqSettings::Stack stack) {
  stack.layers = config.positive(name + "_layers", stack.layers);
  stack.heads = config.positive(name + "_attention_heads", stack.heads);
  stack.intermediate_size = config.positive(name + "_ffn_dim", stack.intermediate_size);
  stack.max_positions = config.positive("max_position_embeddings", stack.max_positions);
  if (hidden_size % stack.heads != 0)
    config.fail("d_model", "expected a multiple of " + name + "_attention_heads (" + std::to_string(stack.heads) +
                               "), got " + std::to_string(hidden_size));
  return stack;
}

}  // namespace

Seq2SeqSettings Seq2SeqSettings::from_config(const Config& config, const Seq2SeqSettings& defaults) {
  Seq2SeqSettings s = defaults;
  s.vocab_size = config.positive("vocab_size", s.vocab_size);
  s.hidden_size = config.positive("d_model", s.hidden_size);
  s.encoder = stack_from_config(config, "encoder", s.hidden_size, s.encoder);
  s.decoder = stack_from_config(config, "decoder", s.hidden_size, s.decoder);
  s.pad_token_id = config.integer("pad_token_id", s.pad_token_id);
  if (s.positions == Positions::Sinusoidal && (s.hidden_size % 2 != 0 || s.hidden_size < 4))
    config.fail("d_model",
                "expected an even number from 4 on, half sines and half cosines; got " + std::to_string(s.hidden_size));
  return s;
}

Seq2SeqTextEncoder::Seq2SeqTextEncoder(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s)
    : PreTrainedModel(weights, context, s.class_prefix + "Encoder"), settings_(s) {
  embed_tokens = member<Embedding>(weights, "embed_tokens", s.vocab_size, s.hidden_size);
  if (s.positions == Seq2SeqSettings::Positions::Learned)
    embed_positions = member<Embedding>(weights, "embed_positions", table_size(s.encoder, s), s.hidden_size);
  layers = members<Seq2SeqLayer>(weights, "layers", s.encoder.layers, [&](const Weights& w, int64_t i) {
    return std::make_shared<Seq2SeqLayer>(w, context, s, i, /*is_decoder=*/false);
  });
  auto& norm = s.norms_first ? layer_norm : layernorm_embedding;
  norm = member<LayerNorm>(weights, s.norms_first ? "layer_norm" : "layernorm_embedding", s.hidden_size, 1e-5);
  embeddings_ = Seq2SeqEmbeddings(s, embed_tokens, embed_positions);
}

ModelOutput Seq2SeqTextEncoder::forward(const ModelInputs& inputs) const {
  check_inputs(inputs);
  check_ids_or_embeds(inputs);
  const ModuleScope scope(path());
  auto x = embeddings_.forward(inputs.tensor("input_ids"), inputs.tensor("inputs_embeds"), {}, nullptr);
  if (layernorm_embedding) x = layernorm_embedding->forward(x);
  const auto mask = bidirectional_mask(mask_arguments(attention(), x, inputs.tensor("attention_mask")));
  for (const auto& layer : layers) x = layer->encode(x, mask);
  if (layer_norm) x = layer_norm->forward(x);
  ModelOutput output(settings_.encoder_output);
  output.set("last_hidden_state", x);
  return output;
}

std::vector<InputInfo> Seq2SeqTextEncoder::inputs() const {
  return {{"input_ids", at::kLong, {"batch", "sequence"}},
          {"attention_mask", at::kLong, {"batch", "sequence"}},
          {"inputs_embeds", dtype(), {"batch", "sequence", ""}}};
}

ModelInputs Seq2SeqTextEncoder::example_inputs(int64_t batch, int64_t sequence) const {
  const auto ids = example_ids(batch, sequence, settings_.vocab_size, config().integer_or_none("pad_token_id"));
  return {{"input_ids", ids}, {"attention_mask", at::ones_like(ids)}};
}

std::optional<PositionTable> Seq2SeqTextEncoder::position_table() const {
  if (!embed_positions) return std::nullopt;
  return PositionTable{"max_position_embeddings", settings_.encoder.max_positions, settings_.encoder.max_positions};
}

Seq2SeqDecoder::Seq2SeqDecoder(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s)
    : Module(weights), attention_(context.attention) {
  embed_tokens = member<Embedding>(weights, "embed_tokens", s.vocab_size, s.hidden_size);
  if (s.positions == Seq2SeqSettings::Positions::Learned)
    embed_positions = member<Embedding>(weights, "embed_positions", table_size(s.decoder, s), s.hidden_size);
  layers = members<Seq2SeqLayer>(weights, "layers", s.decoder.layers, [&](const Weights& w, int64_t i) {
    return std::make_shared<Seq2SeqLayer>(w, context, s, i, /*is_decoder=*/true);
  });
  auto& norm = s.norms_first ? layer_norm : layernorm_embedding;
  norm = member<LayerNorm>(weights, s.norms_first ? "layer_norm" : "layernorm_embedding", s.hidden_size, 1e-5);
  embeddings_ = Seq2SeqEmbeddings(s, embed_tokens, embed_positions);
}

at::Tensor Seq2SeqDecoder::forward(const at::Tensor& ids, const ModelInputs& inputs, const at::Tensor& states,
                                   Cache* cache) const {
  const ModuleScope scope(path());
  const CacheLayer* past = cache == nullptr ? nullptr : cache->layers.front().get();
  const auto positions = inputs.tensor("decoder_position_ids");
  auto x = embeddings_.forward(ids, inputs.tensor("decoder_inputs_embeds"), positions, past);
  if (layernorm_embedding) x = layernorm_embedding->forward(x);
  MaskArguments arguments = mask_arguments(attention_, x, inputs.tensor("decoder_attention_mask"));
  arguments.cache = past;
  arguments.position_ids = positions;
  const auto mask = causal_mask(arguments);
  const auto states_mask = bidirectional_mask(mask_arguments(attention_, x, inputs.tensor("attention_mask")));
  const auto layer = [&](size_t i) { return cache == nullptr ? nullptr : cache->layers[i].get(); };
  for (size_t i = 0; i < layers.size(); ++i)
    x = layers[i]->decode(x, mask, states, states_mask, layer(i), layer(layers.size() + i));
  return layer_norm ? layer_norm->forward(x) : x;
}

std::vector<InputInfo> Seq2SeqPreTrainedModel::inputs() const {
  std::vector<InputInfo> inputs;
  std::optional<InputInfo> embeds;
  for (InputInfo input : encoder()->inputs()) {
    for (std::string& axis : input.axes)
      if (axis == "sequence") axis = "encoder_sequence";
    if (input.name == "inputs_embeds")
      embeds = input;
    else
      inputs.push_back(input);
  }
  inputs.push_back({"decoder_input_ids", at::kLong, {"batch", "sequence"}});
  inputs.push_back({"decoder_attention_mask", at::kLong, {"batch", "total_sequence"}});
  if (embeds) inputs.push_back(*embeds);
  inputs.push_back({"decoder_inputs_embeds", dtype(), {"batch", "sequence", ""}});
  if (settings_.takes_positions) inputs.push_back({"decoder_position_ids", at::kLong, {"batch", "sequence"}});
  return inputs;
}

ModelInputs Seq2SeqPreTrainedModel::example_inputs(int64_t batch, int64_t sequence) const {
  ModelInputs inputs = encoder()->example_inputs(batch, sequence);
  inputs.set("decoder_input_ids",
             example_ids(batch, sequence + 2, settings_.vocab_size, config().integer_or_none("pad_token_id")));
  return inputs;
}

std::optional<Cache> Seq2SeqPreTrainedModel::empty_cache() const {
  const auto layers = static_cast<size_t>(settings_.decoder.layers);
  Cache cache = Cache::dynamic(std::vector<std::optional<int64_t>>(layers));
  cache.add_cross_layers(layers, 0, 0, 0, 0);
  return cache;
}

std::optional<Cache> Seq2SeqPreTrainedModel::static_cache(int64_t batch, int64_t length) const {
  if (!settings_.has_static_cache) return std::nullopt;
  const auto& decoder = settings_.decoder;
  const int64_t head_dim = settings_.hidden_size / decoder.heads;
  const auto layers = static_cast<size_t>(decoder.layers);
  Cache cache =
      Cache::fixed(std::vector<std::optional<int64_t>>(layers), batch, decoder.heads, length, head_dim, dtype());
  cache.add_cross_layers(layers, batch, decoder.heads, 0, head_dim);
  return cache;
}

std::optional<PositionTable> Seq2SeqPreTrainedModel::position_table() const {
  if (settings_.positions != Seq2SeqSettings::Positions::Learned) return std::nullopt;
  const int64_t size = settings_.decoder.max_positions;
  return PositionTable{settings_.position_key, size, size};
}

Seq2SeqModel::Seq2SeqModel(const Weights& weights, const ModelContext& context, const Seq2SeqSettings& s)
    : Seq2SeqPreTrainedModel(weights, context, s.class_prefix + "Model", s) {
  if (s.shares_embedding) shared = member<Embedding>(weights, "shared", s.vocab_size, s.hidden_size);
  const auto at = weights.at("encoder");
  encoder_ = register_module("encoder", s.make_encoder ? s.make_encoder(at, context, s)
                                                       : std::make_shared<Seq2SeqTextEncoder>(at, context, s));
  decoder_ = member<Seq2SeqDecoder>(weights, "decoder", context, s);
}

ModelOutput Seq2SeqModel::forward(const ModelInputs& inputs) const {
  check_inputs(inputs);
  const Result result = run(inputs);
  ModelOutput output(settings().model_output);
  output.set("last_hidden_state", result.last_hidden_state);
  if (result.cache) output.set("cache", *result.cache);
  output.set("encoder_last_hidden_state", result.encoder_last_hidden_state);
  return output;
}

Seq2SeqModel::Result Seq2SeqModel::run(const ModelInputs& inputs) const {
  const ModuleScope scope(path());
  Result result;
  result.cache = start_cache(inputs);
  const TensorDict* given = inputs.dict("encoder_outputs");
  result.encoder_last_hidden_state = given == nullptr ? at::Tensor() : given->find("last_hidden_state");
  if (!result.encoder_last_hidden_state.defined()) {
    ModelInputs prompt;
    for (const auto& input : encoder_->inputs()) prompt.set(input.name, inputs.tensor(input.name));
    result.encoder_last_hidden_state = encoder_->forward(prompt).tensor("last_hidden_state");
  }
  result.last_hidden_state = decoder_->forward(decoder_ids(inputs), inputs, result.encoder_last_hidden_state,
                                               result.cache ? &*result.cache : nullptr);
  return result;
}

at::Tensor Seq2SeqModel::decoder_ids(const ModelInputs& inputs) const {
  const at::Tensor ids = inputs.tensor("decoder_input_ids");
  const bool has_embeds = inputs.tensor("decoder_inputs_embeds").defined();
  if (ids.defined() && has_embeds) throw Error("expected one of decoder_input_ids and decoder_inputs_embeds, got both");
  if (ids.defined() || has_embeds) return ids;
  const at::Tensor prompt = inputs.tensor("input_ids");
  if (!settings().decodes_prompt || !prompt.defined())
    throw Error("'decoder_input_ids' is missing: expected the decoder's tokens");
  const auto start = at::full_symint({prompt.sym_size(0), 1}, config().integer("decoder_start_token_id", 2), at::kLong);
  return at::cat({start, prompt.slice(1, 0, -1)}, 1);
}

Seq2SeqWithHead::Seq2SeqWithHead(const Weights& weights, const ModelContext& context, const std::string& suffix,
                                 const Seq2SeqSettings& s)
    : Seq2SeqPreTrainedModel(weights, context, s.class_prefix + suffix, s) {
  model_ = member<Seq2SeqModel>(weights, "model", context, s);
}

void Seq2SeqWithHead::finish(ModelOutput& output, const Seq2SeqModel::Result& result) {
  if (result.cache) output.set("cache", *result.cache);
  output.set("encoder_last_hidden_state", result.encoder_last_hidden_state);
}

Seq2SeqForConditionalGeneration::Seq2SeqForConditionalGeneration(const Weights& weights, const ModelContext& context,
                                                                 const Seq2SeqSettings& s, const std::string& head)
    : Seq2SeqWithHead(weights, context, "ForConditionalGeneration", s) {
  head_ = member<Linear>(weights, head, s.hidden_size, s.vocab_size, /*bias=*/false);
  // Zeros where a checkpoint has none.
  if (weights.contains("final_logits_bias"))
    final_logits_bias_ = register_buffer("final_logits_bias", weights.take("final_logits_bias", {1, s.vocab_size}));
}

ModelOutput Seq2SeqForConditionalGeneration::forward(const ModelInputs& inputs) const {
  check_inputs(inputs);
  const auto result = model_->run(inputs);
  auto logits = head_->forward(last_tokens(result.last_hidden_state, inputs.logits_to_keep));
  if (final_logits_bias_.defined()) logits = logits + final_logits_bias_;
  ModelOutput output(settings().lm_output);
  output.set("logits", logits);
  finish(output, result);
  return output;
}

ModelClass tied_words(ModelClass one) {
  const std::string model = one.naming.is_base ? "" : one.naming.base_prefix + ".";
  for (const char* part : {"encoder", "decoder"})
    one.always_tied.emplace_back(model + part + ".embed_tokens.weight", model + "shared.weight");
  return one;
}

std::vector<ModelClass> seq2seq_classes(Seq2SeqSettings (*settings)(const Config&), const std::string& class_prefix,
                                        const std::string& head, const std::string& words, Task task,
                                        const WeightStore::Naming& naming) {
  WeightStore::Naming base = naming;
  base.is_base = true;
  return {
      {class_prefix + "Model", Task::Base, base, {}, /*ties_by_default=*/true, make_seq2seq<Seq2SeqModel>(settings)},
      {class_prefix + "ForConditionalGeneration",
       task,
       naming,
       {{head + ".weight", naming.base_prefix + "." + words + ".weight"}},
       /*ties_by_default=*/true,
       make_seq2seq<Seq2SeqForConditionalGeneration>(settings, head)},
  };
}

}  // namespace transporters

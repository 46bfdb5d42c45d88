#include "transporters/layers/attention.h"

#include <ATen/ATen.h>

#include <limits>
#include <tuple>

#include "transporters/error.h"
#include "transporters/registry/method.h"

namespace transporters {
namespace {

// The size of an axis that never changes. Tensors with any symbolic size don't answer size().
int64_t fixed_size(const at::Tensor& x, int64_t axis) { return x.sym_size(axis).expect_int(); }

// Each key/value head repeated for the query heads that share it.
at::Tensor repeat_heads(const at::Tensor& x, int64_t repeats) {
  if (repeats == 1) return x;
  const int64_t heads = fixed_size(x, 1);
  const int64_t head_dim = fixed_size(x, 3);
  const auto batch = x.sym_size(0);
  const auto length = x.sym_size(2);
  return x.unsqueeze(2)
      .expand_symint({batch, heads, repeats, length, head_dim})
      .reshape_symint({batch, heads * repeats, length, head_dim});
}

at::Tensor positions(const c10::SymInt& length, const c10::SymInt& offset) {
  const auto range = at::arange(length, at::kLong);
  const auto known = offset.maybe_as_int();
  return known && *known == 0 ? range : range + offset;
}

// Where consecutive positions do not count up by one, another sequence begins: its number for each token.
at::Tensor sequence_numbers(const at::Tensor& position_ids) {
  const auto before = position_ids.narrow(1, 0, 1) - 1;
  return at::diff(position_ids, 1, -1, before).ne(1).cumsum(-1);
}

double lowest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return std::numeric_limits<c10::Half>::lowest();
    case at::kBFloat16:
      return std::numeric_limits<c10::BFloat16>::lowest();
    case at::kDouble:
      return std::numeric_limits<double>::lowest();
    default:
      return std::numeric_limits<float>::lowest();
  }
}

at::Tensor finish_mask(at::Tensor mask, const MaskArguments& arguments, const c10::SymInt& key_length) {
  mask = mask.expand_symint({arguments.batch, 1, arguments.query_length, key_length});
  return readable_mask(mask, arguments.implementation, arguments.dtype);
}

// The caller's padding for `key_length` keys from `key_offset` on: [batch, 1, 1, keys]. Layers of fixed size have room
// for more keys than there are tokens: those are hidden.
at::Tensor padding_mask(const at::Tensor& attention_mask, const c10::SymInt& key_length, const c10::SymInt& key_offset,
                        bool is_static = false) {
  if (attention_mask.dim() != 2)
    throw Error("attention_mask: expected [batch, keys] or [batch, 1, query, keys], got " +
                std::to_string(attention_mask.dim()) + " axes");
  auto mask = attention_mask.to(at::kBool);
  if (is_static)
    if (const c10::SymInt missing = key_offset + key_length - mask.sym_size(1); missing > 0)
      mask = at::constant_pad_nd_symint(mask, {0, missing}, 0);
  const auto offset = key_offset.maybe_as_int();
  if (!offset || *offset != 0) mask = mask.slice_symint(1, key_offset, key_offset + key_length);
  const auto got = mask.sym_size(1).maybe_as_int();
  const auto expected = key_length.maybe_as_int();
  if (got && expected && *got != *expected)
    throw Error("attention_mask: expected " + std::to_string(*expected) + " keys (past and new tokens), got " +
                std::to_string(*got));
  return mask.unsqueeze(1).unsqueeze(2);
}

}  // namespace

AttentionImplementation attention_implementation(const std::string& name) {
  if (name == "sdpa") return AttentionImplementation::Sdpa;
  if (name == "eager") return AttentionImplementation::Eager;
  if (name.find("flash") != std::string::npos || name.find("flex") != std::string::npos ||
      name.find("paged") != std::string::npos)
    throw Error("attention implementation '" + name +
                "' needs kernels that no export target has; use 'sdpa' or 'eager'");
  throw Error("unknown attention implementation '" + name + "'" + did_you_mean(name, {"sdpa", "eager"}) +
              "; known are 'sdpa' and 'eager'");
}

std::string attention_name(AttentionImplementation implementation) {
  return implementation == AttentionImplementation::Sdpa ? "sdpa" : "eager";
}

namespace {

at::Tensor make_causal_mask(const MaskArguments& arguments) {
  if (arguments.attention_mask.defined() && arguments.attention_mask.dim() == 4) return arguments.attention_mask;
  c10::SymInt key_length = arguments.query_length;
  c10::SymInt key_offset = 0;
  c10::SymInt query_offset = 0;
  if (arguments.cache != nullptr) {
    std::tie(key_length, key_offset) = arguments.cache->mask_sizes(arguments.query_length);
    query_offset = arguments.cache->length();
  }
  at::Tensor query = positions(arguments.query_length, query_offset).unsqueeze(1);  // [query, 1]
  at::Tensor key = positions(key_length, key_offset).unsqueeze(0);                  // [1, keys]
  at::Tensor sequence;
  if (arguments.position_ids.defined() && !arguments.attention_mask.defined() && arguments.cache == nullptr) {
    sequence = sequence_numbers(arguments.position_ids);
    query = arguments.position_ids.unsqueeze(2);  // [batch, query, 1]
    key = arguments.position_ids.unsqueeze(1);    // [batch, 1, keys]
  }
  auto mask = key.le(query);
  if (arguments.sliding_window) mask = key.gt(query - *arguments.sliding_window).logical_and(mask);
  if (sequence.defined()) {
    mask = mask.logical_and(sequence.unsqueeze(2).eq(sequence.unsqueeze(1))).unsqueeze(1);
  } else {
    mask = mask.unsqueeze(0).unsqueeze(0);
  }
  if (arguments.attention_mask.defined())
    mask = mask.logical_and(padding_mask(arguments.attention_mask, key_length, key_offset,
                                         arguments.cache != nullptr && arguments.cache->is_static()));
  return finish_mask(mask, arguments, key_length);
}

at::Tensor make_bidirectional_mask(const MaskArguments& arguments) {
  const auto& given = arguments.attention_mask;
  if (!given.defined() || given.dim() == 4) return given;
  const auto key_length = given.sym_size(1);
  return finish_mask(padding_mask(given, key_length, 0), arguments, key_length);
}

at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
                  const AttentionArguments& arguments) {
  const int64_t heads = fixed_size(query, 1);
  const int64_t repeats = heads / fixed_size(key, 1);
  const auto keys = repeat_heads(key, repeats);
  const auto values = repeat_heads(value, repeats);
  at::Tensor output;
  if (arguments.implementation == AttentionImplementation::Sdpa) {
    output = at::scaled_dot_product_attention(query, keys, values,
                                              mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt,
                                              /*dropout_p=*/0.0, /*is_causal=*/false, arguments.scale);
  } else {
    const auto type = arguments.scores_in_float32 ? at::kFloat : query.scalar_type();
    auto weights = at::matmul(query.to(type), keys.transpose(2, 3).to(type)) * arguments.scale;
    if (mask.defined()) weights = weights + mask;
    weights = arguments.softmax_in_float32 ? at::softmax(weights, -1, at::kFloat) : at::softmax(weights, -1);
    weights = weights.to(value.scalar_type());
    output = at::matmul(weights, values);
  }
  return output.transpose(1, 2).reshape_symint({query.sym_size(0), query.sym_size(2), heads * fixed_size(value, 3)});
}

const Method<at::Tensor(const MaskArguments&)> causal("layers.attention.causal_mask", make_causal_mask);
const Method<at::Tensor(const MaskArguments&)> bidirectional("layers.attention.bidirectional_mask",
                                                             make_bidirectional_mask);
const Method<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                        const AttentionArguments&)>
    attention_method("layers.attention.attention", attend);

}  // namespace

at::Tensor readable_mask(const at::Tensor& allowed, AttentionImplementation implementation, at::ScalarType dtype) {
  if (implementation == AttentionImplementation::Sdpa) return allowed;
  const auto options = at::TensorOptions().dtype(dtype);
  return at::where(allowed, at::scalar_tensor(0.0, options), at::scalar_tensor(lowest(dtype), options));
}

at::Tensor causal_mask(const MaskArguments& arguments) { return causal(arguments); }

at::Tensor bidirectional_mask(const MaskArguments& arguments) { return bidirectional(arguments); }

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
                     const AttentionArguments& arguments) {
  return attention_method(query, key, value, mask, arguments);
}

std::optional<c10::SymInt> visible_keys(const at::Tensor& mask) {
  if (!mask.defined()) return std::nullopt;
  return mask.sym_size(3);
}

at::Tensor split_heads(const at::Tensor& x, int64_t heads, int64_t head_dim) {
  return x.view_symint({x.sym_size(0), x.sym_size(1), heads, head_dim});
}

}  // namespace transporters

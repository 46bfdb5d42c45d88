// Where patches and tokens of images and videos are, when each has a grid (time, height, width) of its own size.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>
#include <vector>

#include "transporters/checkpoint/config.h"
#include "transporters/models/model_io.h"

namespace transporters {

// Of each of the patches of all grids [grids, 3], which are in the order of blocks of merge x merge patches; [patches].
struct PatchPlaces {
  at::Tensor frame;  // its number among all frames of all grids
  at::Tensor row;
  at::Tensor column;
};
// Throws Error unless the grids have that many patches; a program asserts it.
PatchPlaces patch_places(const at::Tensor& grids, const c10::SymInt& patches, int64_t merge);

// Positions of tokens in time, height and width: [3, batch, sequence]; and the largest of a row + 1 - its number of
// tokens, [batch, 1], which is what later positions of text are moved by.
struct GridPositions {
  at::Tensor positions;
  at::Tensor offsets;
};
// Every run of one of `kinds` in `types`, [batch, sequence], takes the next of that kind's grids, [grids, 3], in
// tokens. All others are text, which counts on by one a token, where a grid counts by the larger of its height and
// width. `mask` is 0 for tokens that don't count, and may be undefined.
GridPositions grid_positions(const at::Tensor& types, const std::vector<std::pair<int64_t, at::Tensor>>& kinds,
                             const at::Tensor& mask);

// What a config says of tokens that stand for parts of images and videos.
struct GridTokens {
  // Defaults are those of Qwen2-VL.
  explicit GridTokens(const Config& config);

  // Throws Error for grids that are none, that do not have the patches of the pixels that are there, or the tokens of
  // "input_ids" and "mm_token_type_ids". Values are not looked at while a tracer runs.
  void check(const NamedValues& inputs) const;
  // By token id, as "mm_token_type_ids" has it: 1 for images, 2 for videos, else 0.
  at::Tensor types(const at::Tensor& ids) const;
  // Positions of the tokens of a call with "image_grid_thw" or "video_grid_thw", and "mm_token_type_ids" or
  // "input_ids"; nullopt without grids.
  std::optional<GridPositions> positions(const NamedValues& inputs, const at::Tensor& mask) const;
  // "position_ids" of a call with the last `count` of the tokens that `mask` tells the padding of, in a generation
  // whose first call had these inputs: those of text, then those in time, height and width, [4, rows, count]. `mask`
  // may have each row of `first` several times, one after the other.
  at::Tensor positions_of_call(const at::Tensor& mask, int64_t count, const NamedValues& first) const;

  int64_t image, video;
  int64_t merge;  // a token is merge x merge patches
};

}  // namespace transporters

#include "transporters/models/grids.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "transporters/error.h"
#include "transporters/models/multimodal.h"

namespace transporters {
namespace {

at::Tensor at_places(const at::Tensor& values, const at::Tensor& places) { return at::index(values, {places}); }

at::Tensor divided(const at::Tensor& a, const at::Tensor& b) { return at::floor_divide(a, b); }

constexpr int64_t kImage = 1, kVideo = 2;  // in mm_token_type_ids
constexpr int64_t kLargestGrid = 1 << 20;  // products of three can be counted

// The sum of all before each.
at::Tensor starts(const at::Tensor& sizes) { return sizes.cumsum(0) - sizes; }

// Each row's valid values first; what is behind them is 0.
at::Tensor compressed(const at::Tensor& values, const at::Tensor& rank, const at::Tensor& valid) {
  const c10::SymInt length = values.sym_size(1);
  // A column behind the last takes what is left out.
  const auto target = at::where(valid, rank, at::zeros_like(rank) + length);
  const auto room = at::zeros_symint({values.sym_size(0), length + 1}, values.options());
  return room.scatter(1, target, at::where(valid, values, at::zeros_like(values))).slice_symint(1, 0, length);
}

}  // namespace

PatchPlaces patch_places(const at::Tensor& grids, const c10::SymInt& patches, int64_t merge) {
  const auto times = grids.select(1, 0), heights = grids.select(1, 1), widths = grids.select(1, 2);
  const auto areas = heights * widths, sizes = times * areas;
  expect_count(sizes.sum(), patches, "the grids of images: expected the product of each for each row of its pixels");
  const auto place = at::arange(patches, at::kLong);
  const auto image = place.unsqueeze(1).ge(sizes.cumsum(0).unsqueeze(0)).sum(1);
  const auto local = place - at_places(starts(sizes), image);
  const auto area = at_places(areas, image), in_frame = at::remainder(local, area);
  const auto block = at::floor_divide(in_frame, merge * merge), inner = at::remainder(in_frame, merge * merge);
  const auto blocks_wide = at::floor_divide(at_places(widths, image), merge);
  PatchPlaces places;
  places.frame = at_places(starts(times), image) + divided(local, area);
  places.row = divided(block, blocks_wide) * merge + at::floor_divide(inner, merge);
  places.column = at::remainder(block, blocks_wide) * merge + at::remainder(inner, merge);
  return places;
}

GridPositions grid_positions(const at::Tensor& given_types, const std::vector<std::pair<int64_t, at::Tensor>>& kinds,
                             const at::Tensor& mask) {
  const auto valid = mask.defined() ? mask.to(at::kBool) : at::ones_like(given_types, at::kBool);
  const auto rank = valid.to(at::kLong).cumsum(1) - 1;
  const auto types = compressed(given_types.to(at::kLong), rank, valid);
  const auto counts = valid.sum(1, /*keepdim=*/true);
  const auto present = at::arange(types.sym_size(1), at::kLong).lt(counts);
  const auto changes = types.slice(1, 1).ne(types.slice_symint(1, 0, types.sym_size(1) - 1));
  const auto first = at::cat({at::ones_like(present.slice(1, 0, 1)), changes}, 1).logical_and(present);
  const auto running = [&](const at::Tensor& flags) {
    return flags.to(at::kLong).flatten().cumsum(0).view_symint(types.sym_sizes()) - 1;
  };

  struct Kind {
    at::Tensor here, rows, columns, extents, local;
  };
  std::vector<Kind> found;
  auto is_text = present;
  for (const auto& [kind, grids] : kinds) is_text = is_text.logical_and(types.ne(kind));
  auto advance = is_text.to(at::kLong);
  for (const auto& [kind, grids] : kinds) {
    Kind k;
    k.here = types.eq(kind).logical_and(present);
    const auto begins = first.logical_and(k.here);
    const auto grid_of = at::clamp_min(running(begins), 0);
    k.local = running(k.here) - at_places(starts(grids.prod(1)), grid_of);
    k.rows = at_places(grids.select(1, 1), grid_of);
    k.columns = at_places(grids.select(1, 2), grid_of);
    k.extents = at::maximum(k.rows, k.columns);
    advance = at::where(begins, k.extents, advance);
    found.push_back(k);
  }

  const auto reached = advance.cumsum(1);
  auto time = reached - 1, height = time, width = time;
  for (const Kind& k : found) {
    const auto start = reached - k.extents;
    time = at::where(k.here, start + divided(k.local, k.rows * k.columns), time);
    height = at::where(k.here, start + at::remainder(divided(k.local, k.columns), k.rows), height);
    width = at::where(k.here, start + at::remainder(k.local, k.columns), width);
  }
  const auto all = at::stack({time, height, width});
  const auto positions = at::where(present, all, at::zeros_like(all));
  const auto places = at::clamp_min(rank, 0).unsqueeze(0).expand_symint({3, types.sym_size(0), types.sym_size(1)});
  const auto spread = positions.gather(2, places);
  return {at::where(valid, spread, at::zeros_like(spread)), positions.amax({0, 2}).unsqueeze(1) + 1 - counts};
}

GridTokens::GridTokens(const Config& config)
    : image(config.integer("image_token_id", 151655)),
      video(config.integer("video_token_id", 151656)),
      merge(config.object("vision_config").positive("spatial_merge_size", 2)) {}

void GridTokens::check(const NamedValues& inputs) const {
  struct Names {
    const char* grids;
    const char* pixels;
    int64_t kind, token;
  };
  for (const Names& names : {Names{"image_grid_thw", "pixel_values", kImage, image},
                             Names{"video_grid_thw", "pixel_values_videos", kVideo, video}}) {
    const auto fail = [&](const std::string& message) {
      throw Error({.stage = "inputs"}, "'" + std::string(names.grids) + "': " + message);
    };
    const at::Tensor grids = inputs.tensor(names.grids), pixels = inputs.tensor(names.pixels);
    if (!grids.defined()) {
      if (pixels.defined()) fail("is missing: '" + std::string(names.pixels) + "' need the grid of each image");
      continue;
    }
    if (grids.dim() != 2 || grids.sym_size(1).maybe_as_int() != 3 || !at::isIntegralType(grids.scalar_type(), false))
      fail("expected integers [images, 3], got " + std::to_string(grids.dim()) + " axes of " +
           c10::toString(grids.scalar_type()));
    if (is_traced(grids)) continue;
    const at::Tensor whole = grids.to(at::kLong).contiguous();
    int64_t patches = 0;
    for (int64_t i = 0; i < whole.size(0); ++i) {
      const int64_t* grid = whole.data_ptr<int64_t>() + 3 * i;
      const bool fits = std::all_of(grid, grid + 3, [](int64_t size) { return size > 0 && size < kLargestGrid; }) &&
                        grid[1] % merge == 0 && grid[2] % merge == 0;
      if (!fits)
        fail("expected a time above 0, and a height and width that " + std::to_string(merge) + " divides, got " +
             std::to_string(grid[0]) + ", " + std::to_string(grid[1]) + ", " + std::to_string(grid[2]));
      patches += grid[0] * grid[1] * grid[2];
    }
    if (pixels.defined() && pixels.dim() > 0 && pixels.size(0) != patches)
      fail("expected grids of " + std::to_string(pixels.size(0)) + " patches, as '" + names.pixels + "' has, got " +
           std::to_string(patches));
    const int64_t tokens = patches / (merge * merge);
    const auto expect_tokens = [&](const at::Tensor& here, const std::string& what) {
      if (const int64_t got = here.sum().item<int64_t>(); got != tokens)
        fail("expected " + std::to_string(tokens) + " tokens " + what + " in the prompt, got " + std::to_string(got));
    };
    const at::Tensor ids = inputs.tensor("input_ids"), types = inputs.tensor("mm_token_type_ids");
    if (types.defined() && ids.defined() && types.sizes() != ids.sizes())
      throw Error({.stage = "inputs"}, "'mm_token_type_ids': expected the sizes of 'input_ids'");
    if (ids.defined() && pixels.defined()) expect_tokens(ids.eq(names.token), std::to_string(names.token));
    if (types.defined()) expect_tokens(types.eq(names.kind), "of mm_token_type_ids " + std::to_string(names.kind));
  }
}

at::Tensor GridTokens::types(const at::Tensor& ids) const {
  return ids.eq(image).to(at::kLong) * kImage + ids.eq(video).to(at::kLong) * kVideo;
}

std::optional<GridPositions> GridTokens::positions(const NamedValues& inputs, const at::Tensor& mask) const {
  std::vector<std::pair<int64_t, at::Tensor>> kinds;
  for (const auto& [kind, name] : {std::pair{kImage, "image_grid_thw"}, std::pair{kVideo, "video_grid_thw"}}) {
    const auto grids = inputs.tensor(name);
    if (!grids.defined()) continue;
    const auto in_tokens = [&](int64_t axis) { return at::floor_divide(grids.select(1, axis), merge); };
    kinds.emplace_back(kind, at::stack({grids.select(1, 0), in_tokens(1), in_tokens(2)}, 1));
  }
  if (kinds.empty()) return std::nullopt;
  auto given = inputs.tensor("mm_token_type_ids");
  if (!given.defined()) {
    const auto ids = inputs.tensor("input_ids");
    if (!ids.defined()) throw Error("grids of images go with 'input_ids', 'mm_token_type_ids' or 'position_ids'");
    given = types(ids);
  }
  return grid_positions(given, kinds, mask);
}

at::Tensor GridTokens::positions_of_call(const at::Tensor& mask, int64_t count, const NamedValues& first) const {
  const auto text = at::clamp_min(mask.cumsum(-1) - 1, 0).slice(1, mask.size(1) - count).unsqueeze(0);
  const auto ids = first.tensor("input_ids");
  if (mask.size(1) == count) check(first);
  const int64_t prompt = ids.size(1), repeats = mask.size(0) / ids.size(0);
  const auto known = positions(first, mask.slice(0, 0, std::nullopt, repeats).slice(1, 0, prompt));
  if (!known) return text.expand({4, -1, -1}).contiguous();
  if (mask.size(1) == count && count == prompt) return at::cat({text, known->positions}, 0);
  const auto offsets = known->offsets.repeat_interleave(repeats, 0);
  return at::cat({text, (text + offsets).expand({3, -1, -1})}, 0);
}

}  // namespace transporters

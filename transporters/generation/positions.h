// Which models have a last position.
#pragma once

#include <optional>

#include "transporters/checkpoint/config.h"
#include "transporters/generation/search.h"
#include "transporters/models/pretrained_model.h"

namespace transporters {

// The table of learned positions that a decoder of this config has, by model type, or that of the part of the config
// that decodes; nullopt where positions have no end, or the type is not known.
std::optional<PositionTable> decoder_positions(const Config& config);

// The search ends ("positions_full") with the table. Throws Error for a prompt that is longer.
void limit_to_positions(SearchStart& start, const PositionTable& table);

}  // namespace transporters

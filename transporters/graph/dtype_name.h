// torch's names of scalar types, without "torch.": "float32", "int64", "bool".
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transporters {

// "float32" for Float, ... Throws Error for types that an exported program can't hold.
std::string_view torch_dtype_name(c10::ScalarType dtype);
// The type of that name, with or without "torch."; nullopt for other text.
std::optional<c10::ScalarType> parse_torch_dtype(std::string_view name);
// All names, for messages.
std::vector<std::string> torch_dtype_names();

}  // namespace transporters

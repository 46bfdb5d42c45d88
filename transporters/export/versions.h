// Versions of this library and of the libtorch that runs, against those that tests ran with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace transporters {

// The version of the libtorch that this process loaded: "2.13.0".
std::string torch_version();

// One sentence for each package whose running version is not the tested one; empty when all are.
std::vector<std::string> version_warnings();
// The sentence for one package, or "" when `running` and `tested` are the same release ("2.13.0+cpu" is "2.13.0").
std::string version_warning(std::string_view package, std::string_view running, std::string_view tested);

}  // namespace transporters

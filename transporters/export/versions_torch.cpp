#include <ATen/Version.h>

#include "transporters/export/versions.h"
#include "transporters/version.h"

namespace transporters {

std::string torch_version() {
  // The header's TORCH_VERSION is the build's; the library that runs tells its own in its build settings.
  const std::string settings = at::show_config();
  constexpr std::string_view kKey = "TORCH_VERSION=";
  const size_t start = settings.find(kKey);
  if (start == std::string::npos) return "unknown";
  const size_t from = start + kKey.size();
  return settings.substr(from, settings.find_first_of(", \n", from) - from);
}

std::string version_warning(std::string_view package, std::string_view running, std::string_view tested) {
  if (running.substr(0, running.find('+')) == tested.substr(0, tested.find('+'))) return "";
  return std::string(package) + " " + std::string(running) +
         " runs, but transporters " TRANSPORTERS_VERSION " was tested with " + std::string(tested) +
         "; if something fails, try that version";
}

std::vector<std::string> version_warnings() {
  std::vector<std::string> warnings;
  if (auto warning = version_warning("torch", torch_version(), TRANSPORTERS_TESTED_TORCH_VERSION); !warning.empty())
    warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace transporters

#include "transporters/error.h"

#include <algorithm>
#include <numeric>

namespace transporters {
namespace {

std::string format(const ErrorContext& context, const std::string& message) {
  std::string text;
  if (!context.stage.empty()) text += "[" + context.stage + "] ";
  std::string place;
  if (!context.op.empty()) place += "op '" + context.op + "'";
  if (!context.module.empty()) place += (place.empty() ? "at " : " at ") + context.module;
  if (!context.file.empty()) place += (place.empty() ? "" : " in ") + context.file;
  if (!place.empty()) text += place + ": ";
  return text + message;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

Error::Error(ErrorContext context, const std::string& message)
    : std::runtime_error(format(context, message)), context_(std::move(context)), message_(message) {}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  std::vector<std::pair<size_t, std::string>> near;
  const size_t limit = std::max<size_t>(2, name.size() / 3);
  for (const auto& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  if (near.empty()) return "";
  std::sort(near.begin(), near.end());
  std::string text = "; did you mean ";
  for (size_t i = 0; i < std::min<size_t>(3, near.size()); ++i) text += (i ? ", '" : "'") + near[i].second + "'";
  return text + "?";
}

}  // namespace transporters

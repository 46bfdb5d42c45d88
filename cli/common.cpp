#include "cli/common.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace transporters::cli {

Progress::Progress() : enabled_(isatty(STDERR_FILENO) != 0) {}

void Progress::step(const std::string& what) {
  if (enabled_) std::fprintf(stderr, "\r\033[K%s ...", what.c_str());
}

void Progress::clear() {
  if (enabled_) std::fprintf(stderr, "\r\033[K");
}

double Stopwatch::lap() {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - start_).count();
  start_ = now;
  return seconds;
}

void print_note(const std::string& text) { std::cerr << "note: " << one_line(text) << "\n"; }

void print_warning(const std::string& text) { std::cerr << "warning: " << one_line(text) << "\n"; }

void print_json(const Json& json) { std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n"; }

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string count_text(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f s", seconds);
  return text;
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      line += "  " + rows[r][i];
      if (i + 1 < rows[r].size()) line.append(widths[i] - rows[r][i].size(), ' ');
    }
    text += line + "\n";
    if (r == 0) {
      std::string rule;
      for (const size_t width : widths) rule += "  " + std::string(width, '-');
      text += rule + "\n";
    }
  }
  return text;
}

const CLI::Validator kNotEmpty(
    [](const std::string& text) { return text.empty() ? std::string("expected a text, got an empty one") : ""; }, "",
    "not empty");

void check_folder_of(const std::string& option, const std::string& file) {
  const auto folder = std::filesystem::path(file).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw UsageError(option + ": there is no folder '" + folder.string() + "' to write '" + file + "' to");
}

std::string json_argument(const std::string& option, const std::string& text_or_file) {
  const size_t start = text_or_file.find_first_not_of(" \t\n");
  if (start != std::string::npos && (text_or_file[start] == '{' || text_or_file[start] == '[')) return text_or_file;
  std::ifstream file(text_or_file, std::ios::binary);
  if (!file)
    throw UsageError(option + ": expected JSON or a file that holds it, and '" + text_or_file + "' is neither");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string one_line(const std::string& message) {
  // libtorch appends "Exception raised from ..." and a stack.
  std::string text = message.substr(0, message.find("\nException raised from"));
  // What a file holds may be no UTF-8.
  text = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
  std::string line;
  for (const char c : text) {
    const bool space = c == '\n' || c == '\r' || c == '\t';
    if (space && (line.empty() || line.back() == ' ')) continue;
    line += space ? ' ' : c;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace transporters::cli

// What the commands share: exit codes, errors of usage, progress, text and JSON output.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "transporters/error.h"

namespace transporters::cli {

using Json = nlohmann::ordered_json;

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kVerificationFailed = 3 };

// The command line asks for something that can't be asked for.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The chosen command; returns the exit code.
using Command = std::function<int()>;

// Each adds one command to the program; parsing its name sets `chosen`.
void add_export(CLI::App& app, Command& chosen);
void add_verify(CLI::App& app, Command& chosen);
void add_generate(CLI::App& app, Command& chosen);
void add_run(CLI::App& app, Command& chosen);
void add_inspect(CLI::App& app, Command& chosen);
void add_list(CLI::App& app, Command& chosen);

// A step that takes a while: one line on stderr, replaced by the next one, where stderr is a terminal.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  void step(const std::string& what);
  void clear();

 private:
  bool enabled_;
};

class Stopwatch {
 public:
  // Seconds since construction or the last lap.
  double lap();

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "note: ..." and "warning: ..." on stderr.
void print_note(const std::string& text);
void print_warning(const std::string& text);
// One line of JSON on stdout.
void print_json(const Json& json);

// "90.9 MB", "512 bytes".
std::string bytes_text(uint64_t bytes);
// "1,234,567".
std::string count_text(uint64_t count);
// "0.73 s".
std::string seconds_text(double seconds);

// Rows of equal length as aligned columns; the first row is the head, underlined.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

// An option's text that may not be empty: an empty name would silently do what leaving the option out does.
extern const CLI::Validator kNotEmpty;

// Calls `read`; its Error becomes a UsageError that names the option.
template <typename F>
auto read_option(const std::string& option, F read) {
  try {
    return read();
  } catch (const Error& error) {
    throw UsageError(option + ": " + error.message());
  }
}

// Throws UsageError unless the folder that the file is to be written to is there.
void check_folder_of(const std::string& option, const std::string& file);

// JSON given on the command line: the text itself when it starts with '{' or '[', else the file of that name.
std::string json_argument(const std::string& option, const std::string& text_or_file);

// A message as one line: line breaks become spaces, and backtraces of libtorch go.
std::string one_line(const std::string& message);

}  // namespace transporters::cli

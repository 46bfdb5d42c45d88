// A checkpoint's config.json, read with types, ranges and defaults.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace transporters {

// A JSON object of a configuration. Getters with a default return it when the key is absent or null; those without
// throw. A value of another type or out of range is an Error that names the file, the key, what was expected and what
// is there. Keys nobody asks for are ignored.
class Config {
 public:
  // `folder`/config.json; throws Error when it is missing or no JSON object.
  static Config from_folder(const std::string& folder);
  static Config from_file(const std::string& path);
  // `folder`/generation_config.json; nullopt when there is none.
  static std::optional<Config> generation_from_folder(const std::string& folder);
  // `file` is only named in messages.
  static Config parse(const std::string& text, const std::string& file);

  const std::string& file() const { return file_; }
  // "" for the whole file, "rope_parameters" for that object.
  const std::string& path() const { return path_; }
  // Present and not null.
  bool has(const std::string& key) const;
  bool is_null(const std::string& key) const;  // present and null
  bool is_object(const std::string& key) const;
  bool is_string(const std::string& key) const;
  std::vector<std::string> keys() const;

  int64_t integer(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t missing) const;
  // At least 1 and below 2^31.
  int64_t positive(const std::string& key) const;
  int64_t positive(const std::string& key, int64_t missing) const;
  std::optional<int64_t> integer_or_none(const std::string& key) const;
  // Height and width: one positive number for both, or a list of two.
  std::pair<int64_t, int64_t> positive_pair(const std::string& key, int64_t missing) const;
  // A whole number is taken as a real one.
  double real(const std::string& key) const;
  double real(const std::string& key, double missing) const;
  std::optional<double> real_or_none(const std::string& key) const;
  // Finite, and above 0 or at least 0.
  double positive_real(const std::string& key, double missing) const;
  double non_negative_real(const std::string& key, double missing) const;
  bool boolean(const std::string& key, bool missing) const;
  std::string string(const std::string& key) const;
  std::string string(const std::string& key, const std::string& missing) const;
  std::vector<std::string> strings(const std::string& key) const;  // empty when absent
  std::vector<double> reals(const std::string& key) const;         // empty when absent
  // A whole number or a list of them; empty when absent.
  std::vector<int64_t> integers(const std::string& key) const;
  // The nested object; throws when it is absent.
  Config object(const std::string& key) const;

  // Shared by all configurations: "model_type", "architectures", and the weights' type under "dtype" or "torch_dtype"
  // (nullopt when absent or "auto").
  std::string model_type() const;
  std::vector<std::string> architectures() const { return strings("architectures"); }
  std::optional<c10::ScalarType> dtype() const;
  // Number of classes of a head: "num_labels", or the size of "id2label", or 2.
  int64_t num_labels() const;

  // Throws Error about `key` of this file: "'key' " + message.
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;

 private:
  struct Json;
  std::shared_ptr<const Json> json_;  // keeps the whole document alive
  std::string file_;
  std::string path_;
};

// Type by its Python name without "torch." ("float16"); nullopt for an unknown name.
std::optional<c10::ScalarType> dtype_from_name(const std::string& name);
// "float16" for Half.
std::string dtype_name(c10::ScalarType dtype);

}  // namespace transporters

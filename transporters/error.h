// Errors: Error is the user's (bad input, an op a target lacks), InternalError is ours (a broken invariant).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace transporters {

// What an error knows of its place; empty fields are left out of the message.
struct ErrorContext {
  std::string stage;   // "trace", "onnx", "checkpoint", ...
  std::string op;      // "aten::view"
  std::string module;  // "model.layers.0.self_attn"
  std::string file;    // path as the user gave it
};

// what() reads "[stage] op 'name' at module: message".
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message), message_(message) {}
  Error(ErrorContext context, const std::string& message);

  const ErrorContext& context() const { return context_; }
  // The message without its context.
  const std::string& message() const { return message_; }

 private:
  ErrorContext context_;
  std::string message_;
};

// A question about symbolic sizes that can't be answered for every size.
class GuardError : public Error {
 public:
  using Error::Error;
};

// A broken invariant of this library: report it.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// "; did you mean 'a', 'b'?" for names close to `name` (edit distance), or "" when none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace transporters

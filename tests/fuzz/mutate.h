// Small damages to good inputs: of bytes, of JSON text, of protobuf messages, of the words of an expression.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/random.h"

namespace transporters::fuzz {

// Flipped bits, numbers at their limits, cut, repeated and moved pieces, and pieces of `other`.
std::string mutate_bytes(std::string bytes, std::string_view other, Random& random);

// A value replaced by one of another type or at a limit, members removed, renamed, repeated or moved; sometimes the
// text itself is damaged. Text that is no JSON is damaged as bytes.
std::string mutate_json(const std::string& text, Random& random);

// Fields of the message or of the messages inside it removed, repeated, moved, or with another content; lengths stay in
// step. Sometimes the bytes themselves are damaged.
std::string mutate_protobuf(const std::string& message, Random& random);

// Words removed, repeated, exchanged, nested, or replaced by one of `words`.
std::string mutate_words(const std::string& text, const std::vector<std::string>& words, Random& random);

}  // namespace transporters::fuzz

#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

namespace transporters::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxSize = 1 << 20;
constexpr size_t kDeep = 30'000;  // enough to exhaust the stack of a reader that recurses

constexpr std::array<int64_t, 24> kNumbers{0,         1,         -1,        2,         7,         8,
                                           127,       255,       256,       4095,      65'535,    65'536,
                                           INT32_MAX, INT32_MIN, 1LL << 31, 1LL << 32, 1LL << 33, 1LL << 40,
                                           1LL << 56, 1LL << 61, 1LL << 62, INT64_MAX, INT64_MIN, INT64_MAX - 1};

std::string repeated(std::string_view piece, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += piece;
  return text;
}

void damage_once(std::string& bytes, std::string_view other, Random& random) {
  const size_t at = random.below(bytes.size());
  const size_t length = std::min(bytes.size() - std::min(at, bytes.size()), size_t{1} << random.below(12));
  switch (random.below(10)) {
    case 0:
      bytes.resize(at);
      return;
    case 1:
      bytes.erase(at, length);
      return;
    case 2:
      bytes.insert(at, bytes.substr(at, length));
      return;
    case 3:
      bytes.insert(random.below(bytes.size()), bytes.substr(at, length));
      return;
    case 4: {
      const size_t from = random.below(other.size());
      bytes.replace(at, length, other.substr(std::min(from, other.size()), length));
      return;
    }
    case 5: {
      const int64_t number = random.pick(kNumbers);
      const size_t size = size_t{1} << random.below(4);
      if (at + size <= bytes.size()) std::memcpy(bytes.data() + at, &number, size);
      return;
    }
    case 6:
      bytes.append(repeated(std::string(1, static_cast<char>(random.next())), length));
      return;
    case 7:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] + (random.one_in(2) ? 1 : -1));
      return;
    case 8:
      if (!bytes.empty()) bytes[at] = static_cast<char>(random.next());
      return;
    default:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
  }
}

std::string string_value(const std::string& old, Random& random) {
  static const std::vector<std::string> kStrings{"",
                                                 " ",
                                                 "/",
                                                 "..",
                                                 "../../etc/passwd",
                                                 "/etc/passwd",
                                                 "a/b",
                                                 "模型 ü",
                                                 "\xf0\x9f\x98\x80",
                                                 "'\"#.",
                                                 "null",
                                                 "NaN",
                                                 "Infinity",
                                                 "-1",
                                                 "1e999",
                                                 "0x10",
                                                 "%s%n",
                                                 "float32",
                                                 "I64",
                                                 "BOOL",
                                                 "as_int",
                                                 "weight_0",
                                                 "x",
                                                 "s0",
                                                 "torch.ops.aten.add.Tensor",
                                                 "[]",
                                                 "{}",
                                                 "\n",
                                                 std::string("a\0b", 3)};
  if (random.one_in(300)) return repeated("[", kDeep) + repeated("]", random.one_in(2) ? kDeep : 0);
  switch (random.below(4)) {
    case 0:
      return old + old;
    case 1:
      return repeated(old.empty() ? "x" : old, random.below(300));
    case 2: {
      std::string text = old;
      if (!text.empty()) text[random.below(text.size())] = static_cast<char>(32 + random.below(95));
      return text;
    }
    default:
      return random.pick(kStrings);
  }
}

Json any_value(const Json& old, Random& random) {
  switch (random.below(12)) {
    case 0:
      return Json();
    case 1:
      return random.one_in(2);
    case 2:
      return UINT64_MAX;
    case 3:
      return random.pick(std::array<double, 8>{0.5, -0.0, 1e308, -1e308, 1e-320, 2.0, 9.3e18, 1e19});
    case 4:
      return Json::array();
    case 5:
      return Json::object();
    case 6:
      return Json::array({old});
    case 7:
      return string_value(old.is_string() ? old.get<std::string>() : "", random);
    default:
      if (old.is_number_integer() && random.one_in(2))
        return static_cast<int64_t>(old.get<uint64_t>() + 1 - random.below(3));
      if (old.is_string()) return string_value(old.get<std::string>(), random);
      return random.pick(kNumbers);
  }
}

void collect(Json& json, std::vector<Json*>& all) {
  all.push_back(&json);
  if (json.is_structured())
    for (Json& value : json) collect(value, all);
}

void change_json(Json& root, Random& random) {
  std::vector<Json*> all;
  collect(root, all);
  Json& chosen = *random.pick(all);
  const Json other = *random.pick(all);
  switch (random.below(8)) {
    case 0:  // one less
      if (chosen.is_array() && !chosen.empty()) chosen.erase(random.below(chosen.size()));
      if (chosen.is_object() && !chosen.empty())
        chosen.erase(std::next(chosen.begin(), static_cast<std::ptrdiff_t>(random.below(chosen.size()))));
      return;
    case 1:  // one more
      if (chosen.is_array()) chosen.insert(chosen.begin(), other);
      if (chosen.is_object()) chosen[string_value("", random)] = other;
      return;
    case 2:  // the same name for another member
      if (chosen.is_object() && !chosen.empty()) {
        const auto member = std::next(chosen.begin(), static_cast<std::ptrdiff_t>(random.below(chosen.size())));
        const Json value = *member;
        chosen[string_value(member.key(), random)] = value;
      }
      return;
    case 3:
      chosen = other;
      return;
    case 4:
      if (chosen.is_array() && chosen.size() > 1) std::swap(chosen[random.below(chosen.size())], chosen[0]);
      return;
    default:
      chosen = any_value(chosen, random);
  }
}

// ── protobuf ──

struct Field {
  uint64_t tag = 0;   // number << 3 | wire type
  std::string value;  // a fixed number's or a string's bytes
  uint64_t varint = 0;
  bool is_message = false;
  std::vector<Field> fields;
};

void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// The fields when the bytes are a message; strings that could be one are taken for one.
std::optional<std::vector<Field>> parse_message(std::string_view bytes, int depth) {
  std::vector<Field> fields;
  while (!bytes.empty()) {
    Field field;
    const auto tag = take_varint(bytes);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 100'000) return std::nullopt;
    field.tag = *tag;
    size_t size = 0;
    switch (*tag & 7) {
      case 0: {
        const auto value = take_varint(bytes);
        if (!value) return std::nullopt;
        field.varint = *value;
        break;
      }
      case 1:
        size = 8;
        break;
      case 2: {
        const auto length = take_varint(bytes);
        if (!length || *length > bytes.size()) return std::nullopt;
        size = *length;
        break;
      }
      case 5:
        size = 4;
        break;
      default:
        return std::nullopt;
    }
    if (size > bytes.size()) return std::nullopt;
    field.value = bytes.substr(0, size);
    bytes.remove_prefix(size);
    if ((*tag & 7) == 2 && depth < 12 && !field.value.empty()) {
      if (auto inner = parse_message(field.value, depth + 1)) {
        field.is_message = true;
        field.fields = std::move(*inner);
      }
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string encode(const std::vector<Field>& fields) {
  std::string bytes;
  for (const Field& field : fields) {
    append_varint(bytes, field.tag);
    if ((field.tag & 7) == 0) append_varint(bytes, field.varint);
    const std::string value = field.is_message ? encode(field.fields) : field.value;
    if ((field.tag & 7) == 2) append_varint(bytes, value.size());
    bytes += value;
  }
  return bytes;
}

void collect(std::vector<Field>& fields, std::vector<std::vector<Field>*>& all) {
  all.push_back(&fields);
  for (Field& field : fields)
    if (field.is_message) collect(field.fields, all);
}

void change_field(Field& field, const Field& other, Random& random) {
  switch (random.below(4)) {
    case 0:
      field.tag = (1 + random.below(24)) << 3 | (field.tag & 7);
      return;
    case 1: {
      const uint64_t tag = field.tag;
      field = other;
      field.tag = (tag & ~uint64_t{7}) | (other.tag & 7);
      return;
    }
    default:
      field.varint = random.one_in(2) ? static_cast<uint64_t>(random.pick(kNumbers)) : random.below(32);
      if (!field.is_message && (field.tag & 7) == 2) {
        field.value =
            random.one_in(2) ? string_value(field.value, random) : mutate_bytes(field.value, other.value, random);
      }
  }
}

void change_message(std::vector<Field>& root, Random& random) {
  std::vector<std::vector<Field>*> all;
  collect(root, all);
  std::vector<Field>& fields = *random.pick(all);
  const std::vector<Field>& donor = *random.pick(all);
  if (fields.empty() || donor.empty()) return;
  const size_t at = random.below(fields.size());
  const auto place = fields.begin() + static_cast<std::ptrdiff_t>(at);
  const Field other = random.pick(donor);
  switch (random.below(8)) {
    case 0:
      fields.erase(place);
      return;
    case 1:
      fields.insert(place, other);
      return;
    case 2:
      std::swap(fields[at], fields[random.below(fields.size())]);
      return;
    case 3:  // the message inside itself
      if (fields[at].is_message && random.one_in(4)) {
        for (size_t depth = random.below(60); depth-- > 0;) {
          Field inner = fields[at];
          if (encode(inner.fields).size() > 2000) return;
          fields[at].fields.push_back(std::move(inner));
        }
      }
      return;
    default:
      change_field(fields[at], other, random);
  }
}

}  // namespace

std::string mutate_bytes(std::string bytes, std::string_view other, Random& random) {
  for (size_t count = 1 + random.below(4); count-- > 0;) damage_once(bytes, other, random);
  if (bytes.size() > kMaxSize) bytes.resize(kMaxSize);
  return bytes;
}

std::string mutate_json(const std::string& text, Random& random) {
  if (random.one_in(6))
    return mutate_words(text, {"{", "}", "[", "]", ",", ":", "\"", "null", "1e400", "-", "\\u0000"}, random);
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return mutate_bytes(text, text, random);
  for (size_t count = 1 + random.below(3); count-- > 0;) change_json(json, random);
  std::string changed = json.dump(-1, ' ', random.one_in(4), Json::error_handler_t::replace);
  if (random.one_in(1000)) changed = repeated("[", kDeep) + changed + repeated("]", kDeep);
  return changed;
}

std::string mutate_protobuf(const std::string& message, Random& random) {
  if (random.one_in(6)) return mutate_bytes(message, message, random);
  auto fields = parse_message(message, 0);
  if (!fields) return mutate_bytes(message, message, random);
  for (size_t count = 1 + random.below(4); count-- > 0;) change_message(*fields, random);
  return encode(*fields);
}

std::string mutate_words(const std::string& text, const std::vector<std::string>& words, Random& random) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (is_word(text[at]) && end < text.size() && is_word(text[end])) ++end;
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  for (size_t count = 1 + random.below(3); count-- > 0 && !parts.empty();) {
    const size_t at = random.below(parts.size());
    const auto place = parts.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random.below(7)) {
      case 0:
        parts.erase(place);
        break;
      case 1:
        parts.insert(place, random.pick(words));
        break;
      case 2:
        std::swap(parts[at], parts[random.below(parts.size())]);
        break;
      case 3:
        parts.insert(place, repeated(random.pick(words), random.one_in(300) ? kDeep : random.below(40)));
        break;
      case 4: {
        const std::vector<std::string> piece(place,
                                             place + static_cast<std::ptrdiff_t>(random.below(parts.size() - at)));
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(random.below(parts.size())), piece.begin(),
                     piece.end());
        break;
      }
      case 5:
        parts[at] = std::to_string(random.pick(kNumbers));
        break;
      default:
        parts[at] = random.pick(words);
    }
  }
  std::string changed;
  for (const std::string& part : parts) changed += part;
  return changed;
}

}  // namespace transporters::fuzz

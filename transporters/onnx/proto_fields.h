// Fields of protobuf messages of a file that nobody trusts: the wire type of each is checked before it is read.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <protozero/pbf_message.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "transporters/error.h"
#include "transporters/onnx/schema.h"

namespace transporters::onnx {

using protozero::pbf_message;
using protozero::pbf_wire_type;

// What readers of messages derive from. Members throw Error naming the file, and protozero::exception for a message
// that is cut short.
class ProtoFields {
 public:
  explicit ProtoFields(std::string file) : file_(std::move(file)) {}

  Error fail(const std::string& message) const { return Error({.stage = "onnx", .file = file_}, message); }

  template <typename F>
  void expect(const pbf_message<F>& message, pbf_wire_type type) const {
    if (message.has_wire_type(type)) return;
    throw fail("field " + std::to_string(static_cast<uint32_t>(message.tag())) + " has wire type " +
               std::to_string(static_cast<uint32_t>(message.wire_type())) + ", expected " +
               std::to_string(static_cast<uint32_t>(type)));
  }
  template <typename F>
  int64_t integer(pbf_message<F>& message) const {
    expect(message, pbf_wire_type::varint);
    return message.get_int64();
  }
  template <typename F>
  std::string_view bytes(pbf_message<F>& message) const {
    expect(message, pbf_wire_type::length_delimited);
    const auto view = message.get_view();
    return {view.data(), view.size()};
  }
  template <typename F>
  std::string text(pbf_message<F>& message) const {
    return std::string(bytes(message));
  }
  template <typename Inner, typename F>
  pbf_message<Inner> inner(pbf_message<F>& message) const {
    const auto view = bytes(message);
    return pbf_message<Inner>(view.data(), view.size());
  }
  // Repeated numbers may be packed or not, whatever the schema says.
  template <typename F>
  void integers(pbf_message<F>& message, std::vector<int64_t>& to) const {
    if (message.has_wire_type(pbf_wire_type::varint)) {
      to.push_back(message.get_int64());
      return;
    }
    const auto view = bytes(message);
    const char* position = view.data();
    const char* end = position + view.size();
    while (position != end) to.push_back(static_cast<int64_t>(protozero::decode_varint(&position, end)));
  }
  template <typename T, typename F>
  void fixed(pbf_message<F>& message, std::vector<T>& to) const {
    constexpr auto kWire = sizeof(T) == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64;
    if (message.has_wire_type(kWire)) {
      if constexpr (sizeof(T) == 4) {
        to.push_back(message.get_float());
      } else {
        to.push_back(message.get_double());
      }
      return;
    }
    const auto view = bytes(message);
    if (view.size() % sizeof(T) != 0) throw fail("packed numbers end in the middle of one");
    const size_t count = to.size();
    to.resize(count + view.size() / sizeof(T));
    if (view.size() > 0) std::memcpy(to.data() + count, view.data(), view.size());
  }
  template <typename F>
  void entry(pbf_message<F>& message, std::map<std::string, std::string>& to) const {
    auto pair = inner<proto::StringStringEntryProto>(message);
    std::string key, value;
    while (pair.next()) {
      switch (pair.tag()) {
        case proto::StringStringEntryProto::key:
          key = text(pair);
          break;
        case proto::StringStringEntryProto::value:
          value = text(pair);
          break;
        default:
          pair.skip();
      }
    }
    to[key] = value;
  }

 private:
  std::string file_;
};

}  // namespace transporters::onnx

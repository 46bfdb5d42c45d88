// Dynamic axes as a caller writes them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transporters/symbolic/shape_env.h"

namespace transporters {

// A named dynamic axis with the sizes it may take: Dim("batch", 1, 64). Axes with equal names have equal sizes.
struct Dim {
  enum class Kind : uint8_t {
    Named,   // dynamic over the whole range, or the export fails and says why
    Auto,    // dynamic where the model allows; a note says where it does not
    Static,  // as in the sample
  };
  std::string name;
  int64_t min = 0;
  int64_t max = symbolic::Range::kInfinity;
  Kind kind = Kind::Named;

  Dim() : kind(Kind::Static) {}
  explicit Dim(std::string name, int64_t min = 0, int64_t max = symbolic::Range::kInfinity)
      : name(std::move(name)), min(min), max(max) {}

  static Dim automatic(std::string name = "") {
    Dim dim(std::move(name));
    dim.kind = Kind::Auto;
    return dim;
  }
  static Dim fixed() { return Dim(); }
  bool operator==(const Dim&) const = default;
};

// Dims by axis of one input: {{0, batch}, {1, sequence}}. Negative axes count from the end.
using AxisDims = std::map<int64_t, Dim>;

// Axes by input, by leaf path or by position:
//     DynamicShapes{{"input_ids", {{0, batch}}}}        DynamicShapes{{{0, batch}}, {{0, batch}}}
class DynamicShapes {
 public:
  DynamicShapes() = default;
  DynamicShapes(std::initializer_list<std::pair<const std::string, AxisDims>> named) : named_(named) {}
  DynamicShapes(std::initializer_list<AxisDims> positional) : positional_(positional) {}

  bool empty() const { return named_.empty() && positional_.empty(); }
  void set(std::string input, AxisDims dims) { named_[std::move(input)] = std::move(dims); }
  const std::map<std::string, AxisDims>& named() const { return named_; }
  const std::vector<AxisDims>& positional() const { return positional_; }

  // {"input_ids": {"0": "batch", "1": {"name": "sequence", "min": 1, "max": 512}}}; "auto" and "static" are Dim::Auto
  // and Dim::Static; a list in place of an object of axes counts axes from 0. A name alone means the Dim that another
  // axis describes under it. Throws Error.
  static DynamicShapes from_json(std::string_view json);
  std::string to_json() const;

 private:
  std::map<std::string, AxisDims> named_;
  std::vector<AxisDims> positional_;
};

}  // namespace transporters

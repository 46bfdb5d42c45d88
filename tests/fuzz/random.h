// Random numbers that are the same on every machine and with every standard library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace transporters::fuzz {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  // Each (seed, stream) pair gives numbers of its own.
  Random(uint64_t seed, uint64_t stream) : state_(seed * 0x9E3779B97F4A7C15 ^ stream * 0xD1B54A32D192ED03) { next(); }

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  // From 0 to `count` - 1; 0 when `count` is 0.
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(next() % count); }
  bool one_in(size_t count) { return below(count) == 0; }
  template <typename List>
  const auto& pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace transporters::fuzz

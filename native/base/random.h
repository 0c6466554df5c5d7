// Small, fast, reproducible random numbers (splitmix64), seeded by what is being done, never by which thread does it.
#pragma once

#include <cstdint>
#include <utility>

namespace longleaf {

class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : state_(mix(seed) ^ mix(stream * 0x9e3779b97f4a7c15ull + 1)) {}

  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ull); }
  // uniform in [0, bound), by multiply-shift; the bias is below 2^-32
  uint32_t below(uint32_t bound) { return uint32_t(((next() >> 32) * bound) >> 32); }

  template <class T>
  void shuffle(T* values, int64_t size) {
    for (int64_t i = size - 1; i > 0; --i) std::swap(values[i], values[below(uint32_t(i + 1))]);
  }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace longleaf

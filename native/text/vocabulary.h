// Terms and their numbers. Knows bytes, not Python.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/parallel.h"

namespace longleaf {

// MurmurHash3 (x86, 32 bits, seed 0; Austin Appleby, public domain): scikit-learn's choice for feature hashing.
std::uint32_t murmur3(std::string_view bytes);

// Terms numbered in the order of their arrival; open addressing with linear probing.
class Vocabulary {
 public:
  static constexpr std::uint32_t absent = UINT32_MAX;

  Vocabulary();
  // Term i is bytes[offsets[i] .. offsets[i + 1]); the offsets start at 0 and never fall.
  Vocabulary(std::span<const char> bytes, std::span<const std::int64_t> offsets, const Work& work);
  std::uint32_t find(std::string_view term) const;  // absent if it is not there
  std::uint32_t find_or_add(std::string_view term) { return find_or_add(term, murmur3(term)); }
  std::uint32_t find_or_add(std::string_view term, std::uint32_t hash);
  std::size_t size() const { return terms_.size(); }
  std::uint32_t hash(std::uint32_t id) const { return terms_[id].hash; }
  std::string_view operator[](std::uint32_t id) const { return {bytes_.data() + terms_[id].offset, terms_[id].length}; }

 private:
  struct Term {
    std::uint64_t offset;
    std::uint32_t length, hash;
  };
  struct Slot {
    std::uint32_t hash, id;
  };
  std::size_t probe(std::string_view term, std::uint32_t hash) const;
  void resize(std::size_t n_slots);

  std::vector<char> bytes_;
  std::vector<Term> terms_;
  std::vector<Slot> slots_;  // a power of two of them, at most half full
};

}  // namespace longleaf

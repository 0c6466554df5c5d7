// Which features some rows have: small enough to stay in the cache, and walked in order without sorting.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace longleaf {

class FeatureSet {
 public:
  explicit FeatureSet(int64_t features) : words_(size_t(features + 63) / 64), used_(words_.size() / 64 + 1) {}

  // By what it holds, not by how many features there could be.
  void clear() {
    each_word([&](size_t w) { words_[w] = {}; });
    used_.assign(used_.size(), 0);
  }
  void add(int32_t feature) {
    const size_t w = size_t(feature) / 64;
    const uint64_t bit = uint64_t(1) << (feature % 64);
    words_[w].again |= words_[w].once & bit;
    words_[w].once |= bit;
    used_[w / 64] |= uint64_t(1) << (w % 64);
  }
  // Whether it was added more than once.
  bool is_shared(int32_t feature) const { return words_[size_t(feature) / 64].again >> (feature % 64) & 1; }

  // Calls visit(feature) for all that were added, in ascending order.
  template <class Visit>
  void each(Visit visit) const {
    each_word([&](size_t w) { each_bit(words_[w].once, [&](int bit) { visit(int32_t(w * 64) + bit); }); });
  }

 private:
  template <class Visit>
  static void each_bit(uint64_t bits, Visit visit) {
    for (; bits != 0; bits &= bits - 1) visit(std::countr_zero(bits));
  }
  template <class Visit>
  void each_word(Visit visit) const {
    for (size_t u = 0; u < used_.size(); ++u) each_bit(used_[u], [&](int bit) { visit(u * 64 + size_t(bit)); });
  }

  struct Word {
    uint64_t once = 0, again = 0;
  };
  std::vector<Word> words_;
  std::vector<uint64_t> used_;  // a bit for each word that is not empty
};

}  // namespace longleaf

// What is read from model files and must be sound before it is used: see ChunkView in weights.h for the layout.
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/slots.h"
#include "weights/weights.h"

namespace longleaf {

namespace {

[[noreturn]] void fail_chunk(int64_t chunk, const char* what) {
  throw std::invalid_argument("the model is damaged: weight chunk " + std::to_string(chunk) + " " + what);
}

class Checker {
 public:
  Checker(const ChunkView& view, int64_t c)
      : c_(c),
        chunk_(chunk_at(view, c)),
        words_(view.word[c + 1] - view.word[c]),
        bytes_(view.byte[c + 1] - view.byte[c]),
        pages_(page_count(view.features)),
        features_(view.features) {}

  void check() const {
    require(chunk_.width >= 1 && chunk_.width <= kChunkWidth);
    int64_t word = 0, byte = 0;
    for (int64_t page = 0; page < pages_; ++page) {
      require(chunk_.page_first[page] == word);
      for (int bit = 0; bit < 64; ++bit)
        if (chunk_.page_words[page] >> bit & 1) byte = after_word(page * 64 + bit, word++, byte);
    }
    require(word == words_ && byte == bytes_);
  }

 private:
  void require(bool holds) const {
    if (!holds) fail_chunk(c_, "points outside itself");
  }

  // Where the block of a word ends, which must begin at `byte`.
  int64_t after_word(int64_t number, int64_t word, int64_t byte) const {
    require(word < words_ && chunk_.words[word].first_byte() == byte);
    const uint64_t bits = chunk_.words[word].bits();
    const bool dense = chunk_.words[word].dense();
    const int64_t slots = std::popcount(bits);
    require(bits != 0 && number * kWordFeatures + 63 - std::countl_zero(bits) < features_);
    const int64_t first = byte + slots * (dense ? chunk_.width * (chunk_.coded ? 1 : 4) : kEndBytes);
    require(first <= bytes_);
    if (dense) {
      check_weights(byte, first);
      return first;
    }
    const uint8_t* ends = chunk_.bytes + byte;
    byte = first;
    for (int64_t i = 0; i < slots; ++i) byte = after_slot(byte, first + slot_end(ends, i));
    return byte;
  }

  int64_t after_slot(int64_t byte, int64_t end) const {
    require(end > byte && end <= bytes_);
    const int size = chunk_.coded ? 1 : 4, mask = mask_bytes(chunk_.width);
    const int64_t n = slot_weights(end - byte, chunk_.width, size);
    require(n <= chunk_.width && slot_bytes(n, chunk_.width, size) == end - byte);
    const uint8_t* names = chunk_.bytes + byte;
    if (n <= mask) {
      for (int64_t i = 0; i < n; ++i) require(names[i] < chunk_.width);
    } else {
      int64_t named = 0;
      for (int i = 0; i < mask; ++i) named += std::popcount(names[i]);
      require(named == n && (chunk_.width % 8 == 0 || names[mask - 1] >> chunk_.width % 8 == 0));
    }
    check_weights(end - n * size, end);
    return end;
  }

  // Codes are weights whatever they are.
  void check_weights(int64_t begin, int64_t end) const {
    if (chunk_.coded) return;
    for (int64_t byte = begin; byte < end; byte += 4) {
      float weight;
      std::memcpy(&weight, chunk_.bytes + byte, 4);
      if (!(std::fabs(weight) <= kMostWeight)) fail_chunk(c_, "has a weight that is no number or too large");
    }
  }

  const int64_t c_;
  const Chunk chunk_;
  const int64_t words_, bytes_, pages_, features_;
};

}  // namespace

bool has_sound_numbers(const ChunkView& view, int64_t c) {
  constexpr uint32_t most = std::bit_cast<uint32_t>(2 * kMostWeight);  // the highest level is rounded up
  const Chunk chunk = chunk_at(view, c);
  if (chunk.coded && (chunk.low > most || chunk.step > (most - chunk.low) / (kLevels - 1))) return false;
  return view.weights[c] >= 0 && view.weights[c] <= view.byte[c + 1] - view.byte[c];
}

void check_chunk(const ChunkView& view, int64_t chunk) { Checker(view, chunk).check(); }

}  // namespace longleaf

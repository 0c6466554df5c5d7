// Weights as lists of (feature, child, value).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/slots.h"
#include "weights/weights.h"

namespace longleaf {

namespace {

// Reads a chunk block by block.
class Unpacker {
 public:
  explicit Unpacker(const Chunk& chunk) : chunk_(chunk), size_(chunk.coded ? 1 : 4) {
    for (uint32_t code = 0; chunk.coded && code < 256; ++code) {
      const uint32_t level = code >> 1, bits = level ? chunk.low + (level - 1) * chunk.step : 0;
      weight_of_[code] = std::bit_cast<float>(bits | code << 31);
    }
  }

  void block(int64_t first_feature, const Word& word) {
    const bool dense = word.dense();
    const uint8_t* ends = chunk_.bytes + word.first_byte();
    const uint8_t* slots = ends + (dense ? 0 : kEndBytes * std::popcount(word.bits()));
    const uint8_t* begin = slots;
    int64_t i = 0;
    for (uint64_t bits = word.bits(); bits != 0; bits &= bits - 1, ++i) {
      const uint8_t* end = dense ? begin + chunk_.width * size_ : slots + slot_end(ends, i);
      const auto feature = int32_t(first_feature + std::countr_zero(bits));
      if (dense)
        dense_slot(feature, begin);
      else
        slot(feature, begin, end);
      begin = end;
    }
  }

  ChunkEntries out;

 private:
  void dense_slot(int32_t feature, const uint8_t* begin) {
    for (int child = 0; child < chunk_.width; ++child) add(feature, child, begin, child);
  }

  void slot(int32_t feature, const uint8_t* begin, const uint8_t* end) {
    const int64_t n = slot_weights(end - begin, chunk_.width, size_);
    const int mask = mask_bytes(chunk_.width);
    int64_t next = 0;
    if (n <= mask) {
      for (; next < n; ++next) add(feature, begin[next], begin + n, next);
    } else {
      for (int byte = 0; byte < mask; ++byte)
        for (uint32_t rest = begin[byte]; rest != 0; rest &= rest - 1)
          add(feature, 8 * byte + std::countr_zero(rest), begin + mask, next++);
    }
  }

  void add(int32_t feature, int child, const uint8_t* weights, int64_t i) {
    float weight = weight_of_[weights[i]];
    if (size_ == 4) std::memcpy(&weight, weights + 4 * i, 4);
    if (weight != 0.0f) out.append(feature, uint8_t(child), weight);
  }

  const Chunk chunk_;
  const int size_;
  float weight_of_[256] = {};
};

}  // namespace

ChunkEntries unpack_chunk(const ChunkView& view, int64_t c) {
  const Chunk chunk = chunk_at(view, c);
  Unpacker unpacker(chunk);
  unpacker.out.reserve(size_t(view.byte[c + 1] - view.byte[c]) / (chunk.coded ? 1 : 4));
  int64_t word = 0;
  for (int64_t page = 0; page < page_count(view.features); ++page)
    for (uint64_t words = chunk.page_words[page]; words != 0; words &= words - 1, ++word)
      unpacker.block(page * kPageFeatures + std::countr_zero(words) * kWordFeatures, chunk.words[word]);
  return std::move(unpacker.out);
}

PackedChunk copy_chunk(const ChunkView& view, int64_t c) {
  const Chunk chunk = chunk_at(view, c);
  const int64_t pages = page_count(view.features), words = view.word[c + 1] - view.word[c];
  PackedChunk out;
  out.weights = view.weights[c];
  out.page_words.assign(chunk.page_words, chunk.page_words + pages);
  out.page_first.assign(chunk.page_first, chunk.page_first + pages);
  out.words.assign(chunk.words, chunk.words + words);
  out.bytes.assign(chunk.bytes, chunk.bytes + (view.byte[c + 1] - view.byte[c]));
  out.low = std::bit_cast<float>(chunk.low);
  out.step = chunk.step;
  return out;
}

void sort_entries(ChunkEntries& entries) {
  const auto place = [&](size_t e) { return uint64_t(entries.feature[e]) << 8 | entries.child[e]; };
  const size_t n = entries.feature.size();
  std::vector<size_t> runs{0};  // where the ordered runs begin, then the end
  for (size_t e = 1; e < n; ++e)
    if (place(e) < place(e - 1)) runs.push_back(e);
  runs.push_back(n);
  while (runs.size() > 2) {
    ChunkEntries merged;
    merged.reserve(n);
    std::vector<size_t> longer{0};
    for (size_t r = 0; r + 1 < runs.size(); r += 2) {
      const size_t middle = runs[r + 1], end = runs[std::min(r + 2, runs.size() - 1)];
      for (size_t a = runs[r], b = middle; a < middle || b < end;)
        merged.append(entries, b == end || (a < middle && place(a) <= place(b)) ? a++ : b++);
      longer.push_back(end);
    }
    entries = std::move(merged);
    runs = std::move(longer);
  }
}

ChunkEntries add_entries(const ChunkEntries& start, const ChunkEntries& learned, float threshold) {
  ChunkEntries out;
  out.reserve(start.feature.size() + learned.feature.size());
  const auto place = [](const ChunkEntries& entries, size_t e) {
    return e < entries.feature.size() ? int64_t(entries.feature[e]) << 8 | entries.child[e] : INT64_MAX;
  };
  for (size_t a = 0, b = 0; a < start.feature.size() || b < learned.feature.size();) {
    const int64_t at_a = place(start, a), at_b = place(learned, b), at = std::min(at_a, at_b);
    float value = 0;
    if (at_a == at) value += start.value[a++];
    if (at_b == at) value += learned.value[b++];
    if (value == 0.0f || std::fabs(value) < threshold) continue;
    out.append(int32_t(at >> 8), uint8_t(at & 255), value);
  }
  return out;
}

}  // namespace longleaf

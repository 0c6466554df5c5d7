// A row's features against a chunk of weights: the inner loop of prediction. See ChunkView in core.h for the layout.
//
// A batch of features is looked up first and the weights that were found are fetched while the next ones are looked
// for, so that the memory is asked for many cache lines at once; then they are added up.
#pragma once

#include "kernels.h"
#include "simd.h"

namespace longleaf {
namespace {  // each instruction set has its own copy

constexpr int kBatch = 32;
constexpr int kMaxWidth = 192;  // kChunkWidth in core.h

// A feature of the row that the chunk has weights for.
struct Hit {
  uint32_t word, slot;  // within the chunk; the slot is counted within its word
  float value;
};

LONGLEAF_INLINE uint64_t ones_below(int bit) { return (uint64_t(1) << bit) - 1; }

// Looks features up from i on, until the batch is full or the row ends.
LONGLEAF_INLINE int find_hits(const Chunk& c, const Query& query, int64_t& i, Hit* hits) {
  int found = 0;
  for (; i < query.size && found < kBatch; ++i) {
    const uint32_t feature = uint32_t(query.feature[i]);
    const uint64_t words = c.page_words[feature >> 12];
    const int word_bit = int(feature >> 6 & 63), bit = int(feature & 63);
    if (!(words >> word_bit & 1)) continue;
    const uint32_t word = c.page_first[feature >> 12] + uint32_t(__builtin_popcountll(words & ones_below(word_bit)));
    const uint64_t bits = c.bits[word];
    if (!(bits >> bit & 1)) continue;
    hits[found++] = {word, uint32_t(__builtin_popcountll(bits & ones_below(bit))), query.value[i] * query.scale};
  }
  return found;
}

// Eight codes to weights: the sign is the low bit, the level above it; level 0, in dense chunks only, is no weight.
template <bool dense>
LONGLEAF_INLINE f32x8 decode8(const Chunk& c, const uint8_t* codes) {
  u8x8 raw;
  std::memcpy(&raw, codes, sizeof raw);
  const i32x8 code = __builtin_convertvector(raw, i32x8);
  const i32x8 level = code >> 1;
  const i32x8 magnitude = int32_t(c.low - c.step) + level * int32_t(c.step);
  if constexpr (dense) return (f32x8)(((level > 0) & magnitude) | code << 31);
  return (f32x8)(magnitude | code << 31);
}

LONGLEAF_INLINE float decode1(const Chunk& c, uint8_t code) {
  const uint32_t level = code >> 1;
  const uint32_t bits = (level ? c.low + (level - 1) * c.step : 0) | uint32_t(code) << 31;
  float weight;
  std::memcpy(&weight, &bits, sizeof weight);
  return weight;
}

template <bool coded>
LONGLEAF_INLINE float weight_at(const Chunk& c, const uint8_t* weights, int64_t i) {
  if constexpr (coded) return decode1(c, weights[i]);
  float weight;
  std::memcpy(&weight, weights + 4 * i, sizeof weight);
  return weight;
}

template <bool coded>
LONGLEAF_INLINE void add_dense(const Chunk& c, const uint8_t* weights, float value, float* sum) {
  if constexpr (coded)
    for (int child = 0; child < c.width; child += 8)
      store8(sum + child, load8(sum + child) + splat(value) * decode8<true>(c, weights + child));
  else
    for (int child = 0; child < c.width; ++child) sum[child] += value * weight_at<coded>(c, weights, child);
}

#ifdef __AVX2__
// For every byte: where each set bit's weight stands among the set bits' weights.
struct Ranks {
  uint8_t of[256][8];
  constexpr Ranks() : of() {
    for (int byte = 0; byte < 256; ++byte)
      for (int bit = 0, rank = 0; bit < 8; ++bit) {
        of[byte][bit] = uint8_t(rank);
        rank += byte >> bit & 1;
      }
  }
};
constexpr Ranks kRanks;

// Eight children at a time: their codes are spread to the lanes that the bitmap names.
LONGLEAF_INLINE void add_named_by_bitmap(const Chunk& c, const uint8_t* bitmap, int bytes, float value, float* sum) {
  const i32x8 lane = {1, 2, 4, 8, 16, 32, 64, 128};
  const uint8_t* codes = bitmap + bytes;
  for (int i = 0; i < bytes; ++i) {
    const uint8_t byte = bitmap[i];
    u8x8 rank;
    std::memcpy(&rank, kRanks.of[byte], sizeof rank);
    const f32x8 spread = __builtin_shuffle(decode8<false>(c, codes), __builtin_convertvector(rank, i32x8));
    const i32x8 named = (int32_t(byte) & lane) != 0;
    store8(sum + 8 * i, load8(sum + 8 * i) + splat(value) * (f32x8)(named & (i32x8)spread));
    codes += __builtin_popcount(byte);
  }
}
#endif

template <bool coded>
LONGLEAF_INLINE void add_sparse(const Chunk& c, const uint8_t* slot, int64_t size, float value, float* sum) {
  constexpr int64_t weight_size = coded ? 1 : 4;
  const int64_t mask = (c.width + 7) / 8;
  if (size <= mask * (weight_size + 1)) {
    const int64_t listed = size / (weight_size + 1);
    for (int64_t i = 0; i < listed; ++i) sum[slot[i]] += value * weight_at<coded>(c, slot + listed, i);
    return;
  }
#ifdef __AVX2__
  if constexpr (coded) return add_named_by_bitmap(c, slot, int(mask), value, sum);
#endif
  int64_t next = 0;
  for (int64_t byte = 0; byte < mask; ++byte)
    for (uint32_t rest = slot[byte]; rest != 0; rest &= rest - 1)
      sum[8 * byte + __builtin_ctz(rest)] += value * weight_at<coded>(c, slot + mask, next++);
}

template <bool coded>
LONGLEAF_INLINE void add_batch(const Chunk& c, const Hit* hits, int found, float* sum) {
  const uint8_t* slot[kBatch];
  int64_t size[kBatch];
  for (int h = 0; h < found; ++h) {
    const Hit& hit = hits[h];
    const uint32_t first = c.first_slot[hit.word] + hit.slot;
    if (c.dense) {
      size[h] = c.width * (coded ? 1 : 4);
      slot[h] = c.bytes + first * size[h];
    } else {
      const uint32_t begin = hit.slot == 0 ? 0 : c.end[first - 1];
      slot[h] = c.bytes + c.first_byte[hit.word] + begin;
      size[h] = c.end[first] - begin;
    }
    __builtin_prefetch(slot[h]);
    __builtin_prefetch(slot[h] + size[h] - 1);
  }
  for (int h = 0; h < found; ++h)
    if (c.dense)
      add_dense<coded>(c, slot[h], hits[h].value, sum);
    else
      add_sparse<coded>(c, slot[h], size[h], hits[h].value, sum);
}

void add_products(const Chunk& chunk, const Query& query, float* margin) {
  alignas(32) float sum[kMaxWidth];
  std::memset(sum, 0, sizeof(float) * size_t((chunk.width + 7) / 8 * 8));
  Hit hits[kBatch];
  for (int64_t i = 0; i < query.size;) {
    const int found = find_hits(chunk, query, i, hits);
    if (chunk.coded)
      add_batch<true>(chunk, hits, found, sum);
    else
      add_batch<false>(chunk, hits, found, sum);
  }
  for (int child = 0; child < chunk.width; ++child) margin[child] += sum[child];
}

}  // namespace
}  // namespace longleaf

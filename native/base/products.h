// A row's features against a chunk of weights: the inner loop of prediction. See ChunkView in weights/weights.h for the
// layout.
//
// A look-up takes three steps through memory: a feature's word, where its weights end, the weights. Each
// step is taken for a whole batch of features before the next, and prefetches what the next one will read, so that many
// cache lines are on their way at once.
#pragma once

#include "base/kernels.h"
#include "base/simd.h"
#include "base/slots.h"

namespace longleaf {
namespace {  // each instruction set has its own copy

constexpr int kBatch = 64;
static_assert(kPageFeatures == 1 << 12 && kWordFeatures == 1 << 6, "find_words() shifts by these");

// A feature of the row that the chunk may have weights for.
struct Hit {
  uint32_t place;  // its word; then, where its word's block begins
  uint32_t bit;    // then, how many of the word's features stand before it
  uint32_t slots;  // in its word
  float value;
};
// Its weights.
struct Slot {
  const uint8_t* bytes;
  uint32_t size;
  float value;
};

LONGLEAF_INLINE uint64_t ones_below(uint32_t bit) { return (uint64_t(1) << bit) - 1; }

// The features of a batch whose word is in the chunk. Written without branches: they would be guessed wrong.
LONGLEAF_INLINE int find_words(const Chunk& c, const Query& query, int64_t begin, int64_t end, Hit* hits) {
  int found = 0;
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t feature = uint32_t(query.feature[i]), page = feature >> 12, bit = feature >> 6 & 63;
    const uint64_t words = c.page_words[page];
    const uint32_t word = c.page_first[page] + uint32_t(__builtin_popcountll(words & ones_below(bit)));
    hits[found] = {word, feature & 63, 0, query.value[i] * query.scale};
    found += int(words >> bit & 1);
    __builtin_prefetch(c.words + word);
  }
  return found;
}

// Keeps those that the chunk has.
LONGLEAF_INLINE int find_slots(const Chunk& c, Hit* hits, int size) {
  int found = 0;
  for (int h = 0; h < size; ++h) {
    const Hit hit = hits[h];
    const Word& word = c.words[hit.place];
    const uint64_t bits = word.bits();
    const uint32_t before = uint32_t(__builtin_popcountll(bits & ones_below(hit.bit)));
    hits[found] = {word.first_byte, before, uint32_t(__builtin_popcountll(bits)), hit.value};
    found += int(bits >> hit.bit & 1);
    if (!c.dense) __builtin_prefetch(c.bytes + word.first_byte + kEndBytes * before);
  }
  return found;
}

LONGLEAF_INLINE void find_weights(const Chunk& c, const Hit* hits, int found, Slot* slots) {
  const uint32_t dense_size = uint32_t(c.width) * (c.coded ? 1 : 4);
  for (int h = 0; h < found; ++h) {
    const Hit& hit = hits[h];
    const uint8_t* block = c.bytes + hit.place;
    if (c.dense) {
      slots[h] = {block + size_t(hit.bit) * dense_size, dense_size, hit.value};
    } else {
      const uint32_t begin = hit.bit > 0 ? slot_end(block, hit.bit - 1) : 0;
      slots[h] = {block + kEndBytes * hit.slots + begin, slot_end(block, hit.bit) - begin, hit.value};
    }
    __builtin_prefetch(slots[h].bytes);
    __builtin_prefetch(slots[h].bytes + slots[h].size - 1);
  }
}

// Eight codes to weights: the sign is the low bit, the level above it; level 0, in dense chunks only, is no weight.
template <bool dense>
LONGLEAF_INLINE f32x8 decode8(const Chunk& c, const uint8_t* codes) {
  const i32x8 code = widen8(codes);
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
LONGLEAF_INLINE void add_dense(const Chunk& c, const Slot& slot, float* sum) {
  if constexpr (coded)
    for (int child = 0; child < c.width; child += 8)
      store8(sum + child, load8(sum + child) + splat(slot.value) * decode8<true>(c, slot.bytes + child));
  else
    for (int child = 0; child < c.width; ++child) sum[child] += slot.value * weight_at<coded>(c, slot.bytes, child);
}

// Dense and narrow: the sums stay in registers.
template <int vectors>
LONGLEAF_INLINE void add_narrow(const Chunk& c, const Slot* slots, int found, float* sum) {
  f32x8 total[vectors];
  for (int v = 0; v < vectors; ++v) total[v] = load8(sum + 8 * v);
  for (int h = 0; h < found; ++h)
    for (int v = 0; v < vectors; ++v) total[v] += splat(slots[h].value) * decode8<true>(c, slots[h].bytes + 8 * v);
  for (int v = 0; v < vectors; ++v) store8(sum + 8 * v, total[v]);
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
    const f32x8 spread = __builtin_shuffle(decode8<false>(c, codes), widen8(kRanks.of[byte]));
    const i32x8 named = (int32_t(byte) & lane) != 0;
    store8(sum + 8 * i, load8(sum + 8 * i) + splat(value) * (f32x8)(named & (i32x8)spread));
    codes += __builtin_popcount(byte);
  }
}
#endif

template <bool coded>
LONGLEAF_INLINE void add_sparse(const Chunk& c, const Slot& slot, float* sum) {
  constexpr int weight_size = coded ? 1 : 4;
  const int mask = (c.width + 7) / 8;
  if (int(slot.size) <= mask * (weight_size + 1)) {
    const int listed = int(slot.size) / (weight_size + 1);
    for (int i = 0; i < listed; ++i) sum[slot.bytes[i]] += slot.value * weight_at<coded>(c, slot.bytes + listed, i);
    return;
  }
#ifdef __AVX2__
  if constexpr (coded) return add_named_by_bitmap(c, slot.bytes, mask, slot.value, sum);
#endif
  int next = 0;
  for (int byte = 0; byte < mask; ++byte)
    for (uint32_t rest = slot.bytes[byte]; rest != 0; rest &= rest - 1)
      sum[8 * byte + __builtin_ctz(rest)] += slot.value * weight_at<coded>(c, slot.bytes + mask, next++);
}

template <bool coded>
LONGLEAF_INLINE void add_slots(const Chunk& c, const Slot* slots, int found, float* sum) {
  if (coded && c.dense && c.width <= 8) return add_narrow<1>(c, slots, found, sum);
  if (coded && c.dense && c.width <= 16) return add_narrow<2>(c, slots, found, sum);
  for (int h = 0; h < found; ++h)
    if (c.dense)
      add_dense<coded>(c, slots[h], sum);
    else
      add_sparse<coded>(c, slots[h], sum);
}

void add_products(const Chunk& chunk, const Query& query, float* margin) {
  alignas(32) float sum[kChunkWidth];
  std::memset(sum, 0, sizeof(float) * size_t((chunk.width + 7) / 8 * 8));
  Hit hits[kBatch];
  Slot slots[kBatch];
  for (int64_t begin = 0; begin < query.size; begin += kBatch) {
    const int64_t end = begin + kBatch < query.size ? begin + kBatch : query.size;
    const int found = find_slots(chunk, hits, find_words(chunk, query, begin, end, hits));
    find_weights(chunk, hits, found, slots);
    if (chunk.coded)
      add_slots<true>(chunk, slots, found, sum);
    else
      add_slots<false>(chunk, slots, found, sum);
  }
  for (int child = 0; child < chunk.width; ++child) margin[child] += sum[child];
}

}  // namespace
}  // namespace longleaf

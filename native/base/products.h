// A row's features against a chunk of weights: the inner loop of prediction. See ChunkView in weights/weights.h for the
// layout.
//
// A look-up takes three steps through memory: a feature's word, where its weights end, the weights. Each
// step is taken for a whole batch of features before the next, and prefetches what the next one will read, so that many
// cache lines are on their way at once. Features that follow each other, as those of an embedding do, are looked up
// together where their word is dense.
#pragma once

#include "base/kernels.h"
#include "base/simd.h"
#include "base/slots.h"

namespace longleaf {
namespace {  // each instruction set has its own copy

constexpr int kBatch = 64;
constexpr int kRun = 8;  // fewer features that follow each other are looked up one by one
static_assert(kPageFeatures == 1 << 12 && kWordFeatures == 1 << 6, "find_words() shifts by these");
static_assert(kBatch >= kWordFeatures && kBatch % kRun == 0);

// A feature of the row that the chunk may have weights for.
struct Hit {
  uint32_t place;  // its word; then, where its word's block begins
  uint32_t bit;    // then, how many of the word's features stand before it
  uint32_t slots;  // in its word; 0 if that is dense
  float value;
};
// Its weights.
struct Slot {
  const uint8_t* bytes;
  uint32_t size;  // 0 if there is one for every child
  float value;
};

LONGLEAF_INLINE uint64_t ones_below(uint32_t bit) { return (uint64_t(1) << bit) - 1; }
LONGLEAF_INLINE uint32_t dense_size(const Chunk& c) { return uint32_t(c.width) * (c.coded ? 1 : 4); }

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
    const uint32_t slots = word.dense() ? 0 : uint32_t(__builtin_popcountll(bits));
    hits[found] = {word.first_byte(), before, slots, hit.value};
    found += int(bits >> hit.bit & 1);
    __builtin_prefetch(c.bytes + word.first_byte() + kEndBytes * before);
  }
  return found;
}

LONGLEAF_INLINE void find_weights(const Chunk& c, const Hit* hits, int found, Slot* slots) {
  const uint32_t slot_size = dense_size(c);
  for (int h = 0; h < found; ++h) {
    const Hit& hit = hits[h];
    const uint8_t* block = c.bytes + hit.place;
    if (hit.slots == 0) {
      slots[h] = {block + size_t(hit.bit) * slot_size, 0, hit.value};
      __builtin_prefetch(slots[h].bytes);
      __builtin_prefetch(slots[h].bytes + slot_size - 1);
    } else {
      const uint32_t begin = hit.bit > 0 ? slot_end(block, hit.bit - 1) : 0;
      slots[h] = {block + kEndBytes * hit.slots + begin, slot_end(block, hit.bit) - begin, hit.value};
      __builtin_prefetch(slots[h].bytes);
      __builtin_prefetch(slots[h].bytes + slots[h].size - 1);
    }
  }
}

LONGLEAF_INLINE int find_each(const Chunk& c, const Query& query, int64_t begin, int64_t end, Slot* slots) {
  Hit hits[kBatch];
  const int found = find_slots(c, hits, find_words(c, query, begin, end, hits));
  find_weights(c, hits, found, slots);
  return found;
}

// Whether the kRun features from `begin` on follow each other.
LONGLEAF_INLINE bool is_run(const Query& query, int64_t begin) {
  return begin + kRun <= query.size && query.feature[begin + kRun - 1] - query.feature[begin] == kRun - 1;
}
// Where the run that begins there ends, or its word does.
LONGLEAF_INLINE int64_t run_end(const Query& query, int64_t begin) {
  const int32_t first = query.feature[begin];
  const int64_t word = begin + kWordFeatures - first % kWordFeatures, most = word < query.size ? word : query.size;
  if (query.feature[most - 1] - first == most - 1 - begin) return most;
  int64_t end = begin + 1;
  while (end < most && query.feature[end] - first == end - begin) ++end;
  return end;
}

// The features of a run, all in one word.
LONGLEAF_INLINE int find_run(const Chunk& c, const Query& query, int64_t begin, int64_t end, Slot* slots) {
  const uint32_t feature = uint32_t(query.feature[begin]), page = feature >> 12, bit = feature >> 6 & 63;
  const uint64_t words = c.page_words[page];
  if (!(words >> bit & 1)) return 0;
  const Word& word = c.words[c.page_first[page] + uint32_t(__builtin_popcountll(words & ones_below(bit)))];
  const uint64_t run = ~uint64_t(0) >> (kWordFeatures - (end - begin)) << (feature & 63);
  if (!word.dense() || (run & ~word.bits()) != 0) return find_each(c, query, begin, end, slots);
  const uint32_t slot_size = dense_size(c);
  const int before = __builtin_popcountll(word.bits() & ones_below(feature & 63));
  const uint8_t* bytes = c.bytes + word.first_byte() + size_t(before) * slot_size;
  const int found = int(end - begin);
  for (int i = 0; i < found; ++i) slots[i] = {bytes + size_t(i) * slot_size, 0, query.value[begin + i] * query.scale};
  return found;
}

// Eight codes to weights: the sign is the low bit, the level above it; level 0, in dense words only, is no weight.
template <bool dense>
LONGLEAF_INLINE f32x8 decode8(const Chunk& c, const uint8_t* codes) {
  const i32x8 code = widen8(codes);
  const i32x8 level = code >> 1;
  const i32x8 magnitude = int32_t(c.low - c.step) + level * int32_t(c.step);
  if constexpr (dense) return (f32x8)(keep8(magnitude, level) | code << 31);
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

// Slots with a weight for every child: the children from `first` on, up to 8 * vectors. The sums stay in registers.
template <int vectors>
LONGLEAF_INLINE void add_vectors(const Chunk& c, const Slot* slots, int found, int first, float* sum) {
  if constexpr (vectors > 1)
    if (c.width - first <= 8 * (vectors - 1)) return add_vectors<vectors - 1>(c, slots, found, first, sum);
  f32x8 total[vectors];
  for (int v = 0; v < vectors; ++v) total[v] = load8(sum + first + 8 * v);
  for (int h = 0; h < found; ++h)
    for (int v = 0; v < vectors; ++v)
      total[v] += splat(slots[h].value) * decode8<true>(c, slots[h].bytes + first + 8 * v);
  for (int v = 0; v < vectors; ++v) store8(sum + first + 8 * v, total[v]);
}

template <bool coded>
LONGLEAF_INLINE void add_dense(const Chunk& c, const Slot* slots, int found, float* sum) {
  if constexpr (coded)
    for (int first = 0; first < c.width; first += 64) add_vectors<8>(c, slots, found, first, sum);
  else
    for (int h = 0; h < found; ++h)
      for (int child = 0; child < c.width; ++child)
        sum[child] += slots[h].value * weight_at<coded>(c, slots[h].bytes, child);
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

// In the order of the slots, whatever they are: sums must not depend on how features were found.
template <bool coded>
LONGLEAF_INLINE void add_slots(const Chunk& c, const Slot* slots, int found, float* sum) {
  for (int h = 0; h < found;) {
    if (slots[h].size != 0) {
      add_sparse<coded>(c, slots[h++], sum);
      continue;
    }
    const int first = h;
    while (h < found && slots[h].size == 0) ++h;
    add_dense<coded>(c, slots + first, h - first, sum);
  }
}

void add_products(const Chunk& chunk, const Query& query, float* margin) {
  alignas(32) float sum[kChunkWidth];
  std::memset(sum, 0, sizeof(float) * size_t((chunk.width + 7) / 8 * 8));
  Slot slots[kBatch];
  for (int64_t begin = 0, end; begin < query.size; begin = end) {
    int found;
    if (is_run(query, begin)) {
      end = run_end(query, begin);
      found = find_run(chunk, query, begin, end, slots);
    } else {
      const int64_t most = begin + kBatch < query.size ? begin + kBatch : query.size;
      for (end = begin + kRun; end < most && !is_run(query, end);) end += kRun;
      if (end > most) end = most;
      found = find_each(chunk, query, begin, end, slots);
    }
    if (chunk.coded)
      add_slots<true>(chunk, slots, found, sum);
    else
      add_slots<false>(chunk, slots, found, sum);
  }
  for (int child = 0; child < chunk.width; ++child) margin[child] += sum[child];
}

}  // namespace
}  // namespace longleaf

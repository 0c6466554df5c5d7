// The layout of a tree's weights: see ChunkView in core.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "core.h"

namespace longleaf {

namespace {

constexpr int kSlotsPerBucket = 4;  // on average; a look-up scans half of them
constexpr int kMaxShift = 16;       // keys have 16 bits

int choose_shift(int64_t features, int64_t slots) {
  int shift = 0;
  while (shift < kMaxShift && (features >> shift) * kSlotsPerBucket > slots) ++shift;
  return shift;
}

int64_t bucket_count(int64_t features, int shift) { return ((std::max<int64_t>(features, 1) - 1) >> shift) + 1; }

int64_t count_slots(const ChunkEntries& entries) {
  int64_t slots = 0;
  for (size_t e = 0; e < entries.feature.size(); ++e)
    slots += e == 0 || entries.feature[e] != entries.feature[e - 1];
  return slots;
}

// Writes chunk c's buckets, slots and children; its ranges are known already.
void fill_chunk(ChunkArrays& out, int64_t c, const ChunkEntries& entries, int64_t buckets) {
  const int shift = out.shift[c];
  uint32_t* bucket = out.bucket.data() + 2 * out.bucket_range[c];
  int64_t slot = 0, next_bucket = 0;
  const int64_t size = int64_t(entries.feature.size());
  for (int64_t e = 0; e < size;) {
    const int32_t feature = entries.feature[e];
    int64_t end = e + 1;
    while (end < size && entries.feature[end] == feature) ++end;
    for (; next_bucket <= (feature >> shift); ++next_bucket) {
      bucket[2 * next_bucket] = uint32_t(slot);
      bucket[2 * next_bucket + 1] = uint32_t(e);
    }
    out.key[out.slot[c] + slot] = uint16_t(feature & ((1 << shift) - 1));
    out.count[out.slot[c] + slot] = uint8_t(end - e - 1);
    ++slot;
    e = end;
  }
  for (; next_bucket <= buckets; ++next_bucket) {
    bucket[2 * next_bucket] = uint32_t(slot);
    bucket[2 * next_bucket + 1] = uint32_t(size);
  }
  std::copy(entries.child.begin(), entries.child.end(), out.child.begin() + out.entry[c]);
}

// 256 codes: 128 magnitudes from the smallest to the largest weight in equal ratios, times two signs (the low bit).
// With weights between 0.1 and 20 neighbours differ by 4 %, so that no weight is off by more than 2 %.
struct Codebook {
  float low = 1, log_step = 0;

  static Codebook spanning(float low, float high) {
    return {low, high > low ? float(std::log(double(high) / low) / 127) : 0.0f};
  }
  uint8_t encode(float weight) const {
    const float level = log_step > 0 ? std::log(std::fabs(weight) / low) / log_step : 0.0f;
    const int rounded = std::clamp(int(std::lround(level)), 0, 127);
    return uint8_t(rounded << 1 | (weight < 0));
  }
  std::vector<float> values() const {
    std::vector<float> values(256);
    for (int code = 0; code < 256; ++code) {
      const double magnitude = low * std::exp(double(log_step) * (code >> 1));
      values[code] = float(code & 1 ? -magnitude : magnitude);
    }
    return values;
  }
};

Codebook fit_codebook(const std::vector<ChunkEntries>& chunks) {
  float low = INFINITY, high = 0;
  for (const ChunkEntries& entries : chunks)
    for (float value : entries.value) {
      low = std::min(low, std::fabs(value));
      high = std::max(high, std::fabs(value));
    }
  if (high == 0) return Codebook{};
  return Codebook::spanning(std::max(low, high * 1e-4f), high);  // without pruning, what is tiny may be coarse
}

}  // namespace

std::vector<int32_t> chunk_nodes(const TreeView& tree) {
  std::vector<int32_t> nodes;
  for (int64_t v = 0; v < tree.nodes; ++v)
    for (int32_t first = tree.first_child[v]; first < tree.first_child[v + 1]; first += kChunkWidth)
      nodes.push_back(first);
  nodes.push_back(int32_t(tree.nodes));
  return nodes;
}

ChunkArrays assemble_chunks(std::vector<int32_t> node, std::vector<ChunkEntries> chunks, std::vector<float> bias,
                            int64_t features, int weight_bits, int threads, Work& work) {
  const int64_t n = int64_t(chunks.size());
  ChunkArrays out;
  out.node = std::move(node);
  out.bias = std::move(bias);
  out.shift.resize(n);
  out.bucket_range.assign(n + 1, 0);
  out.slot.assign(n + 1, 0);
  out.entry.assign(n + 1, 0);
  for (int64_t c = 0; c < n; ++c) {
    const int64_t slots = count_slots(chunks[c]);
    out.shift[c] = uint8_t(choose_shift(features, slots));
    out.bucket_range[c + 1] = out.bucket_range[c] + bucket_count(features, out.shift[c]) + 1;
    out.slot[c + 1] = out.slot[c] + slots;
    out.entry[c + 1] = out.entry[c] + int64_t(chunks[c].feature.size());
  }
  out.bucket.resize(2 * out.bucket_range[n]);
  out.key.resize(out.slot[n]);
  out.count.resize(out.slot[n]);
  out.child.resize(out.entry[n]);
  const bool coded = weight_bits == 8;
  const Codebook codebook = coded ? fit_codebook(chunks) : Codebook{};
  if (coded) {
    out.codebook = codebook.values();
    out.codes.resize(out.entry[n]);
  } else {
    out.values.resize(out.entry[n]);
  }
  work.for_each(n, threads, [&](int64_t c, int) {
    fill_chunk(out, c, chunks[c], out.bucket_range[c + 1] - out.bucket_range[c] - 1);
    const std::vector<float>& value = chunks[c].value;
    if (coded)
      for (size_t e = 0; e < value.size(); ++e) out.codes[out.entry[c] + e] = codebook.encode(value[e]);
    else
      std::copy(value.begin(), value.end(), out.values.begin() + out.entry[c]);
    chunks[c] = {};
  });
  return out;
}

void check_chunk(const ChunkView& v, int64_t c) {
  auto require = [c](bool holds) {
    if (!holds) throw std::invalid_argument("the model is damaged: weight chunk " + std::to_string(c) + " points outside itself");
  };
  const int64_t width = v.node[c + 1] - v.node[c];
  const int64_t slots = v.slot[c + 1] - v.slot[c], entries = v.entry[c + 1] - v.entry[c];
  require(v.shift[c] <= kMaxShift && width >= 1 && width <= kChunkWidth);
  const int64_t buckets = bucket_count(v.features, v.shift[c]);
  require(v.bucket_range[c + 1] - v.bucket_range[c] == buckets + 1);
  const uint32_t* bucket = v.bucket + 2 * v.bucket_range[c];
  require(bucket[0] == 0 && bucket[1] == 0 && bucket[2 * buckets] == slots && bucket[2 * buckets + 1] == entries);
  int64_t entry = 0;
  for (int64_t b = 0; b < buckets; ++b) {
    require(bucket[2 * b] <= bucket[2 * b + 2] && bucket[2 * b + 2] <= slots && bucket[2 * b + 1] == entry);
    for (uint32_t s = bucket[2 * b]; s < bucket[2 * b + 2]; ++s) entry += v.count[v.slot[c] + s] + 1;
  }
  require(entry == entries);
  for (int64_t e = 0; e < entries; ++e) require(v.child[v.entry[c] + e] < width);
}

}  // namespace longleaf

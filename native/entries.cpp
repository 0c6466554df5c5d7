// Weights as lists of (feature, child, value).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core.h"

namespace longleaf {

namespace {

// Calls visit(feature) for every feature that a chunk has weights for, in order.
template <class Visit>
void each_slot(const ChunkView& view, int64_t c, Visit visit) {
  const Chunk chunk = chunk_at(view, c);
  int64_t next = 0;
  for (int64_t page = 0; page < page_count(view.features); ++page)
    for (uint64_t words = chunk.page_words[page]; words != 0; words &= words - 1)
      for (uint64_t bits = chunk.bits[next++]; bits != 0; bits &= bits - 1)
        visit(int32_t(page * kPageFeatures + std::countr_zero(words) * kWordFeatures + std::countr_zero(bits)));
}

}  // namespace

ChunkEntries unpack_chunk(const ChunkView& view, int64_t c) {
  ChunkEntries out;
  const int width = chunk_at(view, c).width;
  const float one = 1;
  std::vector<float> weight(static_cast<size_t>(width));
  each_slot(view, c, [&](int32_t feature) {
    std::fill(weight.begin(), weight.end(), 0.0f);
    kernels().add_products(chunk_at(view, c), {&feature, &one, 1, 1.0f}, weight.data());
    for (int child = 0; child < width; ++child) {
      if (weight[size_t(child)] == 0.0f) continue;
      out.feature.push_back(feature);
      out.child.push_back(uint8_t(child));
      out.value.push_back(weight[size_t(child)]);
    }
  });
  return out;
}

void sort_entries(ChunkEntries& entries) {
  const size_t n = entries.feature.size();
  std::vector<std::pair<uint64_t, uint32_t>> key(n);  // a feature needs 31 bits, so the place has a field of its own
  for (size_t e = 0; e < n; ++e) key[e] = {uint64_t(entries.feature[e]) << 8 | entries.child[e], uint32_t(e)};
  if (std::is_sorted(key.begin(), key.end())) return;
  std::sort(key.begin(), key.end());
  ChunkEntries sorted;
  sorted.feature.reserve(n);
  sorted.child.reserve(n);
  sorted.value.reserve(n);
  for (const auto& [_, e] : key) {
    sorted.feature.push_back(entries.feature[e]);
    sorted.child.push_back(entries.child[e]);
    sorted.value.push_back(entries.value[e]);
  }
  entries = std::move(sorted);
}

ChunkEntries add_entries(const ChunkEntries& start, const ChunkEntries& learned, float threshold) {
  ChunkEntries out;
  const auto place = [](const ChunkEntries& entries, size_t e) {
    return e < entries.feature.size() ? int64_t(entries.feature[e]) << 8 | entries.child[e] : INT64_MAX;
  };
  for (size_t a = 0, b = 0; a < start.feature.size() || b < learned.feature.size();) {
    const int64_t at_a = place(start, a), at_b = place(learned, b), at = std::min(at_a, at_b);
    float value = 0;
    if (at_a == at) value += start.value[a++];
    if (at_b == at) value += learned.value[b++];
    if (value == 0.0f || std::fabs(value) < threshold) continue;
    out.feature.push_back(int32_t(at >> 8));
    out.child.push_back(uint8_t(at & 255));
    out.value.push_back(value);
  }
  return out;
}

}  // namespace longleaf

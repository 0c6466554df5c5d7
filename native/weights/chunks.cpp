// The layout of a tree's weights: see ChunkView in weights.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/slots.h"
#include "weights/weights.h"

namespace longleaf {

namespace {

// What the codes of a chunk stand for: levels from the smallest to the largest magnitude, in equal steps of the bits
// of a float, which are log2 to within 0.0861. If the largest is r times the smallest, a weight is off by half a step,
// at most (0.1 + log2 r) / 252 of itself: 3.1 % for r = 200, 5.4 % for r = 10,000. Weights below the largest / 10,000
// take that magnitude, and are off by no more than it.
struct Levels {
  uint32_t low = 0, step = 0;

  static Levels spanning(const std::vector<float>& values) {
    float smallest = INFINITY, largest = 0;
    for (float value : values) {
      smallest = std::min(smallest, std::fabs(value));
      largest = std::max(largest, std::fabs(value));
    }
    if (largest == 0) return {std::bit_cast<uint32_t>(1.0f), 0};
    smallest = std::max({smallest, largest * 1e-4f, std::numeric_limits<float>::min()});  // what is tiny may be coarse
    largest = std::max(largest, smallest);
    const uint32_t low = std::bit_cast<uint32_t>(smallest), high = std::bit_cast<uint32_t>(largest);
    uint32_t step = (high - low + kLevels - 2) / (kLevels - 1);
    if (low + step * (kLevels - 1) > kMaxFinite) step = (high - low) / (kLevels - 1);
    return {low, step};
  }
  static constexpr uint32_t kMaxFinite = 0x7f7fffff;

  uint8_t encode(float weight) const {
    const uint32_t bits = std::bit_cast<uint32_t>(std::fabs(weight));
    const uint32_t above = bits > low && step > 0 ? std::min<uint32_t>((bits - low + step / 2) / step, kLevels - 1) : 0;
    return uint8_t((above + 1) << 1 | (weight < 0));
  }
};

// Appends the entries of one chunk, word by word.
class Packer {
 public:
  Packer(PackedChunk& out, const ChunkEntries& entries, int width, bool coded)
      : out_(out), entries_(entries), width_(width), size_(coded ? 1 : 4), levels_{Levels::spanning(entries.value)} {
    out_.low = coded ? std::bit_cast<float>(levels_.low) : 0.0f;
    out_.step = coded ? levels_.step : 0;
    const Sizes all = sizes_of(0, int64_t(entries.feature.size()));
    all_dense_ = all.dense <= all.sparse;
  }
  // The word of the entries [begin, end).
  void add_word(int64_t begin, int64_t end) {
    const size_t first_byte = out_.bytes.size();
    if (first_byte >= kDenseWord) throw std::length_error("the weights of 192 siblings must take less than 2 GiB.");
    const bool dense = is_dense(begin, end);
    out_.words.push_back({0, 0, uint32_t(first_byte) | (dense ? kDenseWord : 0)});
    each_feature(begin, end, [&](int64_t from, int64_t to) {
      const int bit = int(entries_.feature[from] % kWordFeatures);
      (bit < 32 ? out_.words.back().low : out_.words.back().high) |= uint32_t(1) << bit % 32;
      if (dense)
        add_dense(from, to);
      else
        add_sparse(from, to);
    });
    close_block();
  }

  // Calls visit(begin, end) for every run of entries with the same feature.
  template <class Visit>
  void each_feature(int64_t begin, int64_t end, Visit visit) const {
    for (int64_t next; begin < end; begin = next) {
      for (next = begin + 1; next < end && entries_.feature[next] == entries_.feature[begin];) ++next;
      visit(begin, next);
    }
  }

 private:
  struct Sizes {
    int64_t slots = 0, dense = 0, sparse = 0;  // slots, and what they take either way
  };
  Sizes sizes_of(int64_t begin, int64_t end) const {
    Sizes sizes;
    each_feature(begin, end, [&](int64_t from, int64_t to) {
      ++sizes.slots;
      sizes.dense += width_ * size_;
      sizes.sparse += slot_bytes(to - from, width_, size_) + kEndBytes;
    });
    return sizes;
  }
  // Words of both kinds in a chunk cost mispredicted branches: they are worth that if runs of features are read.
  bool is_dense(int64_t begin, int64_t end) const {
    if (all_dense_) return true;
    const Sizes sizes = sizes_of(begin, end);
    if (sizes.slots < kFewestSlots) return false;
    return sizes.dense <= sizes.sparse || 5 * (end - begin) >= 2 * sizes.slots * width_;
  }
  static constexpr int64_t kFewestSlots = 16;

  void close_block() {
    const auto* ends = reinterpret_cast<const uint8_t*>(ends_.data());
    out_.bytes.insert(out_.bytes.end(), ends, ends + sizeof(uint16_t) * ends_.size());
    out_.bytes.insert(out_.bytes.end(), block_.begin(), block_.end());
    ends_.clear();
    block_.clear();
  }
  void add_weight(float weight) {
    if (size_ == 1) {
      block_.push_back(weight == 0.0f ? 0 : levels_.encode(weight));
      return;
    }
    uint8_t bytes[4];
    std::memcpy(bytes, &weight, 4);
    block_.insert(block_.end(), bytes, bytes + 4);
  }
  void add_dense(int64_t begin, int64_t end) {
    for (int child = 0; child < width_; ++child) {
      const bool there = begin < end && entries_.child[begin] == child;
      add_weight(there ? entries_.value[begin++] : 0.0f);
    }
  }
  void add_sparse(int64_t begin, int64_t end) {
    if (end - begin <= mask_bytes(width_)) {
      block_.insert(block_.end(), entries_.child.begin() + begin, entries_.child.begin() + end);
    } else {
      const size_t mask = block_.size();
      block_.resize(mask + size_t(mask_bytes(width_)), 0);
      for (int64_t e = begin; e < end; ++e) block_[mask + entries_.child[e] / 8] |= uint8_t(1 << entries_.child[e] % 8);
    }
    for (int64_t e = begin; e < end; ++e) add_weight(entries_.value[e]);
    ends_.push_back(uint16_t(block_.size()));
  }

  PackedChunk& out_;
  const ChunkEntries& entries_;
  const int width_, size_;
  const Levels levels_;
  std::vector<uint16_t> ends_;
  std::vector<uint8_t> block_;
  bool all_dense_ = false;
};

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  from = {};
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

PackedChunk pack_chunk(const ChunkEntries& entries, int width, int64_t features, int weight_bits) {
  PackedChunk out;
  out.weights = int64_t(entries.feature.size());
  out.page_words.assign(size_t(page_count(features)), 0);
  out.page_first.assign(out.page_words.size(), 0);
  Packer packer(out, entries, width, weight_bits == 8);
  for (int64_t begin = 0, end; begin < out.weights; begin = end) {
    const int64_t word = entries.feature[begin] / kWordFeatures;
    for (end = begin + 1; end < out.weights && entries.feature[end] / kWordFeatures == word;) ++end;
    out.page_words[size_t(word / 64)] |= uint64_t(1) << word % 64;
    packer.add_word(begin, end);
  }
  for (size_t page = 1; page < out.page_first.size(); ++page)
    out.page_first[page] = out.page_first[page - 1] + uint32_t(std::popcount(out.page_words[page - 1]));
  return out;
}

ChunkArrays join_chunks(std::vector<int32_t> node, std::vector<PackedChunk> chunks, std::vector<float> bias,
                        int weight_bits) {
  ChunkArrays out;
  out.node = std::move(node);
  out.bias = std::move(bias);
  out.word.push_back(0);
  out.byte.push_back(0);
  for (const PackedChunk& chunk : chunks) {
    out.weights.push_back(chunk.weights);
    out.word.push_back(out.word.back() + int64_t(chunk.words.size()));
    out.byte.push_back(out.byte.back() + int64_t(chunk.bytes.size()));
    if (weight_bits != 8) continue;
    out.low.push_back(chunk.low);
    out.step.push_back(chunk.step);
  }
  out.words.reserve(size_t(out.word.back()));
  out.bytes.reserve(size_t(out.byte.back() + kSpareBytes));
  for (PackedChunk& chunk : chunks) {
    append(out.page_words, chunk.page_words);
    append(out.page_first, chunk.page_first);
    append(out.words, chunk.words);
    append(out.bytes, chunk.bytes);
  }
  out.bytes.resize(out.bytes.size() + kSpareBytes, 0);
  return out;
}

Chunk chunk_at(const ChunkView& v, int64_t c) {
  const int64_t pages = c * page_count(v.features);
  return {v.page_words + pages,
          v.page_first + pages,
          v.words + v.word[c],
          v.bytes + v.byte[c],
          v.node[c + 1] - v.node[c],
          v.low != nullptr,
          v.low ? std::bit_cast<uint32_t>(v.low[c]) : 0,
          v.low ? v.step[c] : 0};
}

bool has_feature(const Chunk& chunk, int32_t feature) {
  const uint64_t words = chunk.page_words[feature / kPageFeatures];
  const int bit = int(feature / kWordFeatures % 64);
  if (!(words >> bit & 1)) return false;
  const int before = std::popcount(words & ((uint64_t(1) << bit) - 1));
  const Word& word = chunk.words[chunk.page_first[feature / kPageFeatures] + uint32_t(before)];
  return word.bits() >> (feature % kWordFeatures) & 1;
}

}  // namespace longleaf

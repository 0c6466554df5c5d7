// The weights of a tree's classifiers, packed in chunks of siblings.
//
// The layout is that of model files. A chunk that comes from a file must pass has_sound_numbers() before anything else,
// and check_chunk() before its contents are read.
#pragma once

#include <cstdint>
#include <vector>

#include "base/kernels.h"
#include "base/parallel.h"
#include "trees/trees.h"

namespace longleaf {

// A chunk covers up to kChunkWidth consecutive siblings and lists, by feature, the children that have a weight there,
// so that one pass over a row's features yields every child's margin. Features are found through two bitmaps: a page of
// kPageFeatures features tells which of its 64 words hold any, a word which of its kWordFeatures features are there;
// the ones before a bit are counted to find its place.
//   chunk c:  nodes [node[c], node[c + 1]), pages [c * pages(features), (c + 1) * pages(features))
//   page p:   page_words[p] is its bitmap, page_first[p] its first word, counted from word[c]
//   word w:   words[w] has its bitmap, where its block of bytes begins, counted from byte[c], and whether it is dense
//   block:    where each of its features' slots ends, two bytes each, counted from the last of these; then the slots;
//             a dense one has slots only
// What a look-up reads one after the other is stored together, since it comes from memory a cache line at a time.
// A slot with n weights names their children, a byte each, or as a bitmap over all children where that is shorter; then
// come the weights: 32-bit floats, or a byte each, the sign in its low bit and a level above it. Level 0 is the weight
// 0; the bits of level i's float are those of low[c] plus (i - 1) * step[c], so that levels differ by nearly equal
// ratios. All words of a chunk are dense where that takes no more bytes, or else those of many features that take no
// more, or that have two fifths of their weights: their slots have a weight for every child and need no ends, so that
// features that follow each other in a row are read in one go.
// kSpareBytes bytes follow the last chunk's.
struct ChunkView {
  int64_t chunks = 0, nodes = 0, features = 0;
  const int32_t* node = nullptr;                   // chunks + 1
  const int64_t *word = nullptr, *byte = nullptr;  // chunks + 1 each
  const int64_t* weights = nullptr;                // per chunk, how many there are: only reported, never relied on
  const uint64_t* page_words = nullptr;
  const uint32_t* page_first = nullptr;
  const Word* words = nullptr;
  const uint8_t* bytes = nullptr;
  const float* low = nullptr;  // null for 32-bit weights
  const uint32_t* step = nullptr;
  const float* bias = nullptr;  // one per node
};
struct ChunkArrays {
  std::vector<int32_t> node;
  std::vector<int64_t> word, byte;
  std::vector<int64_t> weights;
  std::vector<uint64_t> page_words;
  std::vector<uint32_t> page_first;
  std::vector<Word> words;
  std::vector<uint8_t> bytes;
  std::vector<float> low, bias;
  std::vector<uint32_t> step;
};
inline int64_t page_count(int64_t features) { return (features + kPageFeatures - 1) / kPageFeatures; }

// What a chunk takes in these arrays besides its words and bytes.
inline constexpr int64_t kChunkBytes = sizeof(int32_t) + 3 * sizeof(int64_t);  // node ... weights
inline constexpr int64_t kLevelBytes = sizeof(float) + sizeof(uint32_t);       // of 8-bit weights: low and step
inline constexpr int64_t kPageBytes = sizeof(uint64_t) + sizeof(uint32_t);     // of each page
inline constexpr int kLevels = 127;                                            // of 8-bit weights, above 0

// One chunk's weights as (feature, child, value) in order of feature, then child.
struct ChunkEntries {
  std::vector<int32_t> feature;
  std::vector<uint8_t> child;
  std::vector<float> value;

  void reserve(size_t size) {
    feature.reserve(size);
    child.reserve(size);
    value.reserve(size);
  }
  void append(int32_t f, uint8_t c, float v) {
    feature.push_back(f);
    child.push_back(c);
    value.push_back(v);
  }
  void append(const ChunkEntries& other, size_t e) { append(other.feature[e], other.child[e], other.value[e]); }
};
inline constexpr int64_t kEntryBytes = sizeof(int32_t) + sizeof(uint8_t) + sizeof(float);

// ---------------------------------------------------------------- chunks.cpp

std::vector<int32_t> chunk_nodes(const TreeView& tree);  // where each chunk's nodes begin, then the node count

// One chunk's share of the arrays, packed as soon as its entries are known, so that these need not be kept.
struct PackedChunk {
  int64_t weights = 0;
  std::vector<uint64_t> page_words;
  std::vector<uint32_t> page_first;
  std::vector<Word> words;
  std::vector<uint8_t> bytes;
  float low = 0;
  uint32_t step = 0;
};
PackedChunk pack_chunk(const ChunkEntries& entries, int width, int64_t features, int weight_bits);
ChunkArrays join_chunks(std::vector<int32_t> node, std::vector<PackedChunk> chunks, std::vector<float> bias,
                        int weight_bits);
Chunk chunk_at(const ChunkView& view, int64_t chunk);
bool has_feature(const Chunk& chunk, int32_t feature);  // whether any child has a weight there

// ---------------------------------------------------------------- chunk_checks.cpp

// Weights and biases of a larger magnitude are refused. Sums over rows of the longest length that is accepted stay
// finite floats, and the tenth power of a margin, which the steepest hinge takes, a finite double.
inline constexpr float kMostWeight = 1e15f;
// What is quick to check of every chunk: that its levels are weights, and that it has no more weights than bytes.
bool has_sound_numbers(const ChunkView& view, int64_t chunk);
// Throws std::invalid_argument if a chunk points outside itself, or has 32-bit weights that are no numbers.
void check_chunk(const ChunkView& view, int64_t chunk);

// ---------------------------------------------------------------- entries.cpp

ChunkEntries unpack_chunk(const ChunkView& view, int64_t chunk);  // a checked one
PackedChunk copy_chunk(const ChunkView& view, int64_t chunk);     // byte by byte
// Orders a chunk's entries by feature, then child. They come block by block of lanes, each in order: runs are merged.
void sort_entries(ChunkEntries& entries);
// The sum of two, each in order; what is too small in sum is dropped.
ChunkEntries add_entries(const ChunkEntries& a, const ChunkEntries& b, float threshold);

// ---------------------------------------------------------------- regroup.cpp

// The chunks of a tree that was made of another one: origin[v] is the other tree's node that v was, -1 for a new one.
ChunkArrays regroup_chunks(const ChunkView& old, const TreeView& tree, const int64_t* origin, const float* bias,
                           int weight_bits, int threads, Work& work);

}  // namespace longleaf

// Weights that follow their nodes into a changed tree.
//
// Given: a tree's chunks, and another tree whose nodes are some of its nodes in new places, and new ones. Out: the
// other tree's chunks. One whose nodes are exactly an old chunk's is copied byte by byte; the rest are packed again.
#include <algorithm>

#include "weights/weights.h"

namespace longleaf {

namespace {

class Regrouper {
 public:
  Regrouper(const ChunkView& old, const int64_t* origin, int weight_bits)
      : old_(old), origin_(origin), weight_bits_(weight_bits) {}

  // The chunk of the nodes [first, last).
  PackedChunk chunk(int32_t first, int32_t last) const {
    const int64_t c = chunk_of(origin_[first]);
    if (c >= 0 && is_same(c, first, last)) return copy_chunk(old_, c);
    ChunkEntries entries;
    int64_t done = -1;  // siblings keep their order, so those of one old chunk stand together
    for (int32_t node = first; node < last; ++node) {
      const int64_t from = chunk_of(origin_[node]);
      if (from < 0 || from == done) continue;
      append(from, node, last, first, entries);
      done = from;
    }
    sort_entries(entries);
    return pack_chunk(entries, last - first, old_.features, weight_bits_);
  }

 private:
  int64_t chunk_of(int64_t node) const {
    if (node <= 0) return -1;
    return std::upper_bound(old_.node, old_.node + old_.chunks, node) - old_.node - 1;
  }

  bool is_same(int64_t c, int32_t first, int32_t last) const {
    if (old_.node[c + 1] - old_.node[c] != last - first) return false;
    for (int32_t node = first; node < last; ++node)
      if (origin_[node] != old_.node[c] + node - first) return false;
    return true;
  }

  // Appends what chunk c has of the nodes [begin, last), as entries of a chunk that begins at `first`.
  void append(int64_t c, int32_t begin, int32_t last, int32_t first, ChunkEntries& entries) const {
    check_chunk(old_, c);
    int16_t place[kChunkWidth];
    std::fill_n(place, kChunkWidth, int16_t(-1));
    for (int32_t node = begin; node < last; ++node)
      if (chunk_of(origin_[node]) == c) place[origin_[node] - old_.node[c]] = int16_t(node - first);
    const ChunkEntries all = unpack_chunk(old_, c);
    for (size_t e = 0; e < all.feature.size(); ++e)
      if (place[all.child[e]] >= 0) entries.append(all.feature[e], uint8_t(place[all.child[e]]), all.value[e]);
  }

  const ChunkView& old_;
  const int64_t* origin_;
  const int weight_bits_;
};

}  // namespace

ChunkArrays regroup_chunks(const ChunkView& old, const TreeView& tree, const int64_t* origin, const float* bias,
                           int weight_bits, int threads, Work& work) {
  std::vector<int32_t> nodes = chunk_nodes(tree);
  std::vector<PackedChunk> packed(nodes.size() - 1);
  const Regrouper regrouper(old, origin, weight_bits);
  work.for_each(int64_t(packed.size()), threads,
                [&](int64_t c, int) { packed[size_t(c)] = regrouper.chunk(nodes[size_t(c)], nodes[size_t(c) + 1]); });
  return join_chunks(std::move(nodes), std::move(packed), {bias, bias + tree.nodes}, weight_bits);
}

}  // namespace longleaf

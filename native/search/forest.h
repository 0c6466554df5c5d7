// A model's trees as the searches see them.
#pragma once

#include <atomic>
#include <memory>

#include "search/search.h"

namespace longleaf {

struct Forest::Tree {
  TreeView view;
  ChunkView chunks;
  std::vector<int32_t> parent;                           // -1 at the root
  std::vector<int32_t> leaf;                             // per label: its leaf, -1 where the tree has none
  std::vector<int32_t> family_chunk;                     // per node: the first chunk of its children
  int64_t first_node = 0;                                // of this tree, counting through all trees
  int64_t first_chunk = 0;                               // likewise
  int64_t leaves = 0, leaf_families = 0;                 // how many there are; families of nothing but leaves
  mutable std::unique_ptr<std::atomic<bool>[]> checked;  // per chunk

  // Leaves have no children of their own, and the nodes stand in breadth-first order.
  bool has_only_leaves(int32_t node) const {
    const int32_t* first_child = view.first_child;
    return first_child[first_child[node]] == first_child[first_child[node + 1]];
  }
  bool has_a_leaf(int32_t node) const {
    if (has_only_leaves(node)) return true;
    for (int32_t v = view.first_child[node]; v < view.first_child[node + 1]; ++v)
      if (view.is_leaf(v)) return true;
    return false;
  }
};

inline Query query_of(const CsrView& X, const float* row_scale, int64_t row) {
  return {X.indices + X.indptr[row], X.data + X.indptr[row], X.row_size(row), row_scale[row]};
}

// log eta of all children of `node`, whose own is `above`, into value[0 .. children).
void family_log_probabilities(const Forest::Tree& tree, int link, int32_t node, const Query& query, float above,
                              float* value);

}  // namespace longleaf

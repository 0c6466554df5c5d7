// A model's trees as the searches see them.
#pragma once

#include <atomic>
#include <memory>

#include "core.h"

namespace longleaf {

struct Forest::Part {
  TreeView tree;
  ChunkView chunks;
  std::vector<int32_t> parent;        // -1 at the root
  std::vector<int32_t> leaf;          // per label: its leaf, -1 where the tree has none
  std::vector<int32_t> family_chunk;  // per node: the first chunk of its children
  int64_t first_node = 0;             // of this tree, counting through all trees
  mutable std::unique_ptr<std::atomic<bool>[]> checked;  // per chunk
};

// The margins of all children of `node`, into margin[0 .. children).
void family_margins(const Forest::Part& part, int32_t node, const Query& query, float* margin);

}  // namespace longleaf

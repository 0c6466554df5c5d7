// How the training of a tree is divided.
#pragma once

#include <span>

#include "train/train.h"

namespace longleaf {

// What one thread works on at a time: families packed into one block of lanes, or up to a chunk of a wide family.
struct Unit {
  std::vector<int32_t> families;  // parents whose children are trained together
  std::vector<int32_t> nodes;     // the children, family by family
  double cost = 0;
};

// The units of the nodes [first_node, last_node), the largest first, so that the threads finish together.
std::vector<Unit> units_between(const TreeView& tree, const NodeRows& rows, int32_t first_node, int32_t last_node);

// Which chunks the trained nodes belong to.
struct ChunkPlan {
  std::vector<int32_t> node;  // of every chunk of the tree: its first node; then the number of nodes
  std::vector<int32_t> of;    // per trained node, its chunk
  int32_t first_node, first_chunk, last_chunk;

  ChunkPlan(const TreeView& tree, int32_t first, int32_t last);
  int32_t chunk_of(int32_t child) const { return of[size_t(child - node[size_t(first_chunk)])]; }
  std::vector<int32_t> chunks_of(std::span<const int32_t> nodes) const;  // each once; a chunk's nodes stand together
};

}  // namespace longleaf

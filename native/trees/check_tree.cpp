// Whether arrays are a tree.
#include <stdexcept>

#include "trees/trees.h"

namespace longleaf {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

void check_tree(const TreeView& tree, int64_t labels) {
  require(tree.nodes >= 1 && tree.first_child[0] == 1, "a tree must begin with its root");
  require(tree.first_child[tree.nodes] == tree.nodes, "a tree's children must cover all its nodes");
  for (int64_t v = 0; v < tree.nodes; ++v) {
    require(tree.first_child[v] <= tree.first_child[v + 1], "a tree's children must be in order");
    require(tree.is_leaf(v) || tree.first_child[v] > v, "a tree's children must come after their parent");
    require(tree.is_leaf(v) ? tree.label[v] >= 0 && tree.label[v] < labels : tree.label[v] == -1,
            "every leaf, and no other node, must have a label");
  }
}

}  // namespace longleaf

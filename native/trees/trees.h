// Label trees: what a tree is, which labels are clustered together, and which rows belong to each node.
//
// All results depend on the arrays and the seed alone, never on the number of threads. What takes long is given a Work
// and throws Interrupted when that stops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/base.h"
#include "base/buffer.h"
#include "base/parallel.h"

namespace longleaf {

// A tree in breadth-first order: node 0 is the root, the children of v are [first_child[v], first_child[v + 1]).
struct TreeView {
  int64_t nodes = 0;
  const int32_t* first_child = nullptr;  // nodes + 1
  const int32_t* label = nullptr;        // the label of a leaf, -1 for an inner node

  bool is_leaf(int64_t v) const { return first_child[v] == first_child[v + 1]; }
};
// Throws std::invalid_argument unless it is such a tree, with a label below `labels` at every leaf and at no other
// node.
void check_tree(const TreeView& tree, int64_t labels);

// The sum of the rows that carry a label, scaled to unit length; one sparse vector per label.
struct LabelCentroids {
  std::vector<int64_t> indptr;
  Buffer<int32_t> indices;
  Buffer<float> data;
};
LabelCentroids label_centroids(const CsrView& X, const float* row_scale, const CsrView& labels_to_rows, int threads,
                               Work& work);

// Clusters of labels, each split until it has at most max_leaf labels: cluster c covers order[begin[c], end[c]).
struct Clusters {
  std::vector<int32_t> order;               // a permutation of the centroids' rows
  std::vector<int32_t> begin, end, parent;  // cluster 0 is everything, parent -1; parents come before children
};
struct KMeansSettings {
  int arity = 2, max_leaf = 100, max_iterations = 20;
  double tolerance = 1e-4;
  bool balanced = true;
  uint64_t seed = 0;
  int threads = 1;
};
Clusters cluster_labels(const CsrView& centroids, const KMeansSettings& settings, Work& work);

// The rows that hold a label below each node, in order; every row at the root.
struct NodeRowLists {
  std::vector<int64_t> indptr;
  std::vector<int32_t> rows;
};
// labels: rows to labels; those in no leaf of the tree are ignored.
NodeRowLists assign_rows(const CsrView& labels, const TreeView& tree, const Work& work);

// The rows that train refined labels. The tree's root has groups, these the labels; a group's rows are those that hold
// one of its labels or rank it, a label's those that hold it, the root has none.
// ranked: `ranks` labels per row, -1 for none; labels without a leaf are ignored.
NodeRowLists assign_ranked_rows(const CsrView& labels, const int32_t* ranked, int64_t ranks, const TreeView& tree,
                                const Work& work);

struct NodeRows {
  const int64_t* indptr = nullptr;
  const int32_t* rows = nullptr;
  const float* factor = nullptr;  // per entry: the weight of that row as a positive one of that node; null for 1

  std::span<const int32_t> of(int64_t node) const {
    return {rows + indptr[node], size_t(indptr[node + 1] - indptr[node])};
  }
};

}  // namespace longleaf

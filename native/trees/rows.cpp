// Which rows each node of a tree holds.
#include <algorithm>
#include <numeric>
#include <utility>

#include "trees/trees.h"

namespace longleaf {

namespace {

// The parent of each node, -1 at the root, and the leaf of each label below `labels`, -1 where it has none.
struct Paths {
  std::vector<int32_t> parent, leaf;

  Paths(const TreeView& tree, int64_t labels) : parent(size_t(tree.nodes), -1), leaf(size_t(labels), -1) {
    for (int64_t v = 0; v < tree.nodes; ++v) {
      for (int32_t c = tree.first_child[v]; c < tree.first_child[v + 1]; ++c) parent[c] = int32_t(v);
      const int64_t label = tree.label[v];
      if (tree.is_leaf(v) && label >= 0 && label < labels) leaf[label] = int32_t(v);  // these rows may have fewer
    }
  }
};

// for_each_node(row, visit) calls visit(node) for the nodes that hold the row, once each.
template <class ForEachNode>
NodeRowLists lists_of(int64_t rows, int64_t nodes, ForEachNode for_each_node) {
  NodeRowLists out;
  out.indptr.assign(size_t(nodes) + 1, 0);
  for (int64_t row = 0; row < rows; ++row) for_each_node(row, [&](int32_t v) { ++out.indptr[v + 1]; });
  std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
  out.rows.resize(size_t(out.indptr.back()));
  std::vector<int64_t> next(out.indptr.begin(), out.indptr.end() - 1);
  for (int64_t row = 0; row < rows; ++row) for_each_node(row, [&](int32_t v) { out.rows[next[v]++] = int32_t(row); });
  return out;
}

// Which nodes a row has been seen at, in each of two passes over the rows.
class Marks {
 public:
  explicit Marks(int64_t nodes) : mark_(size_t(nodes), -1) {}
  void start(int64_t row) {
    if (row == 0) ++pass_;
    now_ = 2 * row + pass_;
  }
  // Whether the node is new to the row.
  bool set(int32_t node) { return std::exchange(mark_[node], now_) != now_; }

 private:
  std::vector<int64_t> mark_;
  int64_t pass_ = -1, now_ = -1;
};

}  // namespace

NodeRowLists assign_rows(const CsrView& labels, const TreeView& tree, const Work& work) {
  const Paths paths(tree, labels.cols);
  Marks marks(tree.nodes);
  // up from each leaf until a node that this row has marked already
  return lists_of(labels.rows, tree.nodes, [&](int64_t row, auto visit) {
    work.check();
    marks.start(row);
    marks.set(0);
    visit(0);
    for (int64_t j = labels.indptr[row]; j < labels.indptr[row + 1]; ++j)
      for (int32_t v = paths.leaf[labels.indices[j]]; v >= 0 && marks.set(v); v = paths.parent[v]) visit(v);
  });
}

NodeRowLists assign_ranked_rows(const CsrView& labels, const int32_t* ranked, int64_t ranks, const TreeView& tree,
                                const Work& work) {
  const Paths paths(tree, labels.cols);
  Marks marks(tree.nodes);
  return lists_of(labels.rows, tree.nodes, [&](int64_t row, auto visit) {
    work.check();
    marks.start(row);
    const auto visit_group = [&](int32_t leaf) {
      if (leaf > 0 && marks.set(paths.parent[leaf])) visit(paths.parent[leaf]);
    };
    for (int64_t j = labels.indptr[row]; j < labels.indptr[row + 1]; ++j) {
      const int32_t leaf = paths.leaf[labels.indices[j]];
      if (leaf > 0 && marks.set(leaf)) visit(leaf);
      visit_group(leaf);
    }
    for (int64_t j = row * ranks; j < (row + 1) * ranks; ++j)
      if (ranked[j] >= 0) visit_group(paths.leaf[ranked[j]]);
  });
}

}  // namespace longleaf

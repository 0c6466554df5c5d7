// Which rows each node of a tree holds.
#include <algorithm>
#include <numeric>

#include "trees/trees.h"

namespace longleaf {

NodeRowLists assign_rows(const CsrView& labels, const TreeView& tree, const Work& work) {
  std::vector<int32_t> parent(tree.nodes, -1), leaf(labels.cols, -1);
  for (int64_t v = 0; v < tree.nodes; ++v) {
    for (int32_t c = tree.first_child[v]; c < tree.first_child[v + 1]; ++c) parent[c] = int32_t(v);
    const int64_t label = tree.label[v];
    if (tree.is_leaf(v) && label >= 0 && label < labels.cols) leaf[label] = int32_t(v);  // these rows may have fewer
  }
  // visits every node that holds a row, once: up from each leaf until a node that this row has marked already
  std::vector<int64_t> mark(tree.nodes, -1);
  auto for_each_node = [&](int64_t row, auto&& visit) {
    work.check();
    mark[0] = row;
    visit(0);
    for (int64_t j = labels.indptr[row]; j < labels.indptr[row + 1]; ++j)
      for (int32_t v = leaf[labels.indices[j]]; v >= 0 && mark[v] != row; v = parent[v]) {
        mark[v] = row;
        visit(v);
      }
  };
  NodeRowLists out;
  out.indptr.assign(tree.nodes + 1, 0);
  for (int64_t row = 0; row < labels.rows; ++row) for_each_node(row, [&](int32_t v) { ++out.indptr[v + 1]; });
  std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
  out.rows.resize(out.indptr.back());
  std::vector<int64_t> next(out.indptr.begin(), out.indptr.end() - 1);
  std::fill(mark.begin(), mark.end(), -1);
  for (int64_t row = 0; row < labels.rows; ++row)
    for_each_node(row, [&](int32_t v) { out.rows[next[v]++] = int32_t(row); });
  return out;
}

}  // namespace longleaf

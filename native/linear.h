// What the parts of training share.
#pragma once

#include "core.h"

namespace longleaf {

// The rows that hold a label below each node; every row at the root.
struct NodeRows {
  std::vector<int64_t> indptr;
  std::vector<int32_t> rows;
  std::span<const int32_t> of(int64_t node) const {
    return {rows.data() + indptr[node], size_t(indptr[node + 1] - indptr[node])};
  }
};
NodeRows assign_rows(const CsrView& labels, const TreeView& tree);

struct TrainingData {
  const CsrView& X;
  const TreeView& tree;
  const NodeRows& rows;
  const std::vector<int32_t>& chunk_node;
  const float* row_scale;
  const float *c_positive, *c_negative;
  const float* row_weight;
};

}  // namespace longleaf

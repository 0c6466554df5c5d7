// What all folders of native/ share, and how they fit together.
//
// native/ knows arrays, not Python: borrowed views come in, owned arrays come out. bind/ alone knows Python, and checks
// everything that a caller can get wrong before it calls the rest; only what is read from model files is checked by
// weights/ and search/ themselves. Each folder has one header of its own name that states its contract. A folder
// includes only those above it in this list:
//
//   base/       arrays (this header, buffer.h, feature_set.h, keep_best.h), threads that can be interrupted
//   (parallel.h),
//               reproducible random numbers (random.h), the inner loops in vector instructions (kernels.h)
//   files/      XMLC text, and working arrays that may be in files
//   text/       texts to sparse rows of weighted term counts
//   trees/      label trees: their form, label centroids, k-means, the rows of each node
//   weights/    a tree's weights, packed in chunks of siblings
//   train/      the classifiers of a tree's nodes
//   search/     a model's trees: the best k labels of a row, and the probabilities of given ones
//   baselines/  an l1 solver, sparse separators and trees that split by nDCG
//   bind/       all of this as Python calls it
#pragma once

#include <cstddef>
#include <cstdint>

namespace longleaf {

// Rows of sparse features; indices are within [0, cols) and sorted within a row.
struct CsrView {
  int64_t rows = 0, cols = 0;
  const int64_t* indptr = nullptr;
  const int32_t* indices = nullptr;
  const float* data = nullptr;  // null for a pattern (labels)

  int64_t row_size(int64_t row) const { return indptr[row + 1] - indptr[row]; }
};

}  // namespace longleaf

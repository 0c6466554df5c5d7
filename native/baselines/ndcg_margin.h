// A row's margin at an inner node of a tree that splits by nDCG.
#pragma once

#include <cstdint>

#include "baselines/baselines.h"

namespace longleaf {

// Growing and searching must send a row the same way, so both add up in this order. weight: by feature.
inline double ndcg_margin(const CsrView& X, int64_t row, float scale, const float* weight, float bias) {
  double sum = 0;
  for (int64_t e = X.indptr[row]; e < X.indptr[row + 1]; ++e) sum += double(X.data[e]) * double(weight[X.indices[e]]);
  return sum * double(scale) + double(bias);
}

}  // namespace longleaf

// Rows turned into columns.
#pragma once

#include <cstdint>
#include <vector>

#include "baselines/baselines.h"

namespace longleaf {

// The rows by features, scaled, and what each feature and its square sum up to over all rows.
struct Columns {
  std::vector<int64_t> indptr;
  std::vector<int32_t> row;
  std::vector<float> value;
  std::vector<double> sum, squares;  // rows count by their weight

  Columns(const TrainingData& data, const Work& work)
      : indptr(size_t(data.X.cols) + 1, 0), sum(size_t(data.X.cols), 0.0), squares(sum) {
    const CsrView& X = data.X;
    for (int64_t e = 0; e < X.indptr[X.rows]; ++e) ++indptr[size_t(X.indices[e]) + 1];
    for (size_t f = 0; f < sum.size(); ++f) indptr[f + 1] += indptr[f];
    row.resize(size_t(indptr.back()));
    value.resize(row.size());
    std::vector<int64_t> next(indptr.begin(), indptr.end() - 1);
    for (int64_t i = 0; i < X.rows; ++i) {
      work.check();
      for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
        const size_t f = size_t(X.indices[e]), place = size_t(next[f]++);
        row[place] = int32_t(i);
        value[place] = X.data[e] * data.row_scale[i];
        const double weight = data.row_weight ? data.row_weight[i] : 1.0f;
        sum[f] += value[place] * weight;
        squares[f] += double(value[place]) * value[place] * weight;
      }
    }
  }
};

}  // namespace longleaf

// A label's centroid: the direction of the sum of its rows.
#include <algorithm>
#include <cmath>

#include "core.h"

namespace longleaf {

// As a share of the average square of a centroid's entries. At 0.05, what is dropped is 0.1 to 0.5 % of all squares, but
// a tenth (TIB-SID) to nearly a half (EURLEX57K) of the entries.
static constexpr double kNegligible = 0.05;

LabelCentroids label_centroids(const CsrView& X, const float* row_scale, const CsrView& labels_to_rows, int threads,
                               Work& work) {
  const int64_t n = labels_to_rows.rows;
  std::vector<std::vector<int32_t>> features(n);
  std::vector<std::vector<float>> values(n);
  struct Sum {
    std::vector<float> total;
    std::vector<int32_t> used;
  };
  std::vector<Sum> sums(std::max(1, threads));
  work.for_each(n, threads, [&](int64_t label, int thread) {
    Sum& sum = sums[thread];
    sum.total.resize(X.cols, 0.0f);
    sum.used.clear();
    for (int64_t i = labels_to_rows.indptr[label]; i < labels_to_rows.indptr[label + 1]; ++i) {
      const int64_t row = labels_to_rows.indices[i];
      for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) {
        float& total = sum.total[X.indices[j]];
        if (total == 0.0f) sum.used.push_back(X.indices[j]);
        total += row_scale[row] * X.data[j];
      }
    }
    std::sort(sum.used.begin(), sum.used.end());
    sum.used.erase(std::unique(sum.used.begin(), sum.used.end()), sum.used.end());
    double square = 0;
    for (int32_t feature : sum.used) square += double(sum.total[feature]) * sum.total[feature];
    const float scale = square > 0 ? float(1 / std::sqrt(square)) : 0.0f;
    // what is far below the average square is dropped: the clustering hardly sees it, and pays for every entry
    const float least = float(std::sqrt(kNegligible * square / double(std::max<size_t>(sum.used.size(), 1))));
    const auto kept = [&](int32_t feature) { return std::fabs(sum.total[feature]) > least; };
    const size_t size = size_t(std::count_if(sum.used.begin(), sum.used.end(), kept));
    features[label].reserve(size);  // exactly: growing would take up to twice as much
    values[label].reserve(size);
    for (int32_t feature : sum.used) {
      if (kept(feature)) {
        features[label].push_back(feature);
        values[label].push_back(scale * sum.total[feature]);
      }
      sum.total[feature] = 0.0f;
    }
  });
  LabelCentroids out;
  out.indptr.push_back(0);
  for (const auto& part : features) out.indptr.push_back(out.indptr.back() + int64_t(part.size()));
  out.indices.reserve(out.indptr.back());
  out.data.reserve(out.indptr.back());
  for (int64_t label = 0; label < n; ++label) {
    out.indices.insert(out.indices.end(), features[label].begin(), features[label].end());
    out.data.insert(out.data.end(), values[label].begin(), values[label].end());
    features[label] = {};
    values[label] = {};
  }
  return out;
}

}  // namespace longleaf

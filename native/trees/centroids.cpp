// A label's centroid: the direction of the sum of its rows.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/feature_set.h"
#include "trees/trees.h"

namespace longleaf {

// As a share of the average square of a centroid's entries. At 0.05, what is dropped is 0.1 to 0.5 % of all squares,
// but a tenth (TIB-SID) to nearly a half (EURLEX57K) of the entries.
static constexpr double kNegligible = 0.05;

// Labels are summed a block at a time and moved to where they stay: all of them in pieces would be held twice in the
// end.
LabelCentroids label_centroids(const CsrView& X, const float* row_scale, const CsrView& labels_to_rows, int threads,
                               Work& work) {
  constexpr int64_t block = 4096;
  const int64_t n = labels_to_rows.rows;
  std::vector<std::vector<int32_t>> features(std::min(block, n));
  std::vector<std::vector<float>> values(features.size());
  struct Sum {
    explicit Sum(int64_t features) : total(size_t(features), 0.0f), present(features) {}
    std::vector<float> total;
    FeatureSet present;
    std::vector<int32_t> used;  // what is present, in order
  };
  std::vector<std::unique_ptr<Sum>> sums(size_t(std::max(1, threads)));
  LabelCentroids out;
  out.indptr.reserve(size_t(n) + 1);
  out.indptr.push_back(0);
  for (int64_t first = 0; first < n; first += block) {
    const int64_t size = std::min(block, n - first);
    work.for_each(size, threads, [&](int64_t place, int thread) {
      const int64_t label = first + place;
      if (!sums[thread]) sums[thread] = std::make_unique<Sum>(X.cols);
      Sum& sum = *sums[thread];
      sum.present.clear();
      sum.used.clear();
      for (int64_t i = labels_to_rows.indptr[label]; i < labels_to_rows.indptr[label + 1]; ++i) {
        work.check();
        const int64_t row = labels_to_rows.indices[i];
        for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) {
          float& total = sum.total[X.indices[j]];
          if (total == 0.0f) sum.present.add(X.indices[j]);
          total += row_scale[row] * X.data[j];
        }
      }
      sum.present.each([&](int32_t feature) { sum.used.push_back(feature); });
      double square = 0;
      for (int32_t feature : sum.used) square += double(sum.total[feature]) * sum.total[feature];
      const float scale = square > 0 ? float(1 / std::sqrt(square)) : 0.0f;
      // what is far below the average square is dropped: the clustering hardly sees it, and pays for every entry
      const float least = float(std::sqrt(kNegligible * square / double(std::max<size_t>(sum.used.size(), 1))));
      const auto kept = [&](int32_t feature) { return std::fabs(sum.total[feature]) > least; };
      const size_t entries = size_t(std::count_if(sum.used.begin(), sum.used.end(), kept));
      features[place].reserve(entries);  // exactly: growing would take up to twice as much
      values[place].reserve(entries);
      for (int32_t feature : sum.used) {
        if (kept(feature)) {
          features[place].push_back(feature);
          values[place].push_back(scale * sum.total[feature]);
        }
        sum.total[feature] = 0.0f;
      }
    });
    for (int64_t place = 0; place < size; ++place) {
      out.indices.append(features[place].data(), features[place].size());
      out.data.append(values[place].data(), values[place].size());
      out.indptr.push_back(int64_t(out.indices.size()));
      features[place] = {};
      values[place] = {};
    }
  }
  return out;
}

}  // namespace longleaf

// The hierarchical clustering of label centroids.
//
// Problem: split labels into `arity` clusters of equal size (within one) whose members point in similar directions,
// and split those again until none has more than max_leaf labels.
// Given: one sparse unit vector per label, the scaled sum of its rows. Out: nested ranges of a permutation.
// Method: spherical k-means from randomly drawn labels (Prabhu et al. 2018, Parabel). The objective is the sum of the
// cluster sums' norms, so no similarity is computed only to judge; for two clusters one product with the difference of
// the centres ranks the labels, and only labels that change sides touch the sums again. Halves of halves are split
// where their vectors have been copied to: a copy serves three levels.
#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>

#include "trees/splitter.h"
#include "trees/trees.h"

namespace longleaf {

Clusters cluster_labels(const CsrView& centroids, const KMeansSettings& settings, Work& work) {
  constexpr int kLevelsOfACopy = 3;
  Clusters out;
  out.order.resize(centroids.rows);
  std::iota(out.order.begin(), out.order.end(), 0);
  out.begin = {0};
  out.end = {int32_t(centroids.rows)};
  out.parent = {-1};
  std::vector<std::unique_ptr<Splitter>> splitters(std::max(1, settings.threads));
  std::vector<Split> splits(1);  // of the level's clusters
  for (size_t level_begin = 0; !splits.empty();) {
    std::vector<size_t> wide;  // the clusters that are still to be split
    for (size_t i = 0; i < splits.size(); ++i)
      if (out.end[level_begin + i] - out.begin[level_begin + i] > settings.max_leaf && splits[i].sizes.empty())
        wide.push_back(i);
    // few clusters: the threads share each one; many: a thread has each to itself
    const bool few = int64_t(wide.size()) < settings.threads;
    const int levels = settings.arity == 2 && settings.balanced && level_begin > 0 ? kLevelsOfACopy : 1;
    work.for_each(int64_t(wide.size()), few ? 1 : settings.threads, [&](int64_t w, int thread) {
      auto& splitter = splitters[thread];
      if (!splitter) splitter = std::make_unique<Splitter>(centroids, settings, work);
      const size_t c = level_begin + wide[w];
      splits[wide[w]] = splitter->split(out.order, out.begin[c], out.end[c], levels, few ? settings.threads : 1);
    });
    std::vector<Split> next;
    for (size_t i = 0; i < splits.size(); ++i) {
      int32_t begin = out.begin[level_begin + i];
      for (int32_t size : splits[i].sizes) {
        out.begin.push_back(begin);
        out.end.push_back(begin + size);
        out.parent.push_back(int32_t(level_begin + i));
        begin += size;
      }
      splits[i].below.resize(splits[i].sizes.size());
      std::move(splits[i].below.begin(), splits[i].below.end(), std::back_inserter(next));
    }
    level_begin += splits.size();
    splits = std::move(next);
  }
  return out;
}

}  // namespace longleaf

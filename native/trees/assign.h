// From scores of labels and centres to clusters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/parallel.h"

namespace longleaf {

// The nearest pairs of label and centre first, as long as the centre has room. Of each label only the best pair that is
// still possible waits in the heap; when its centre turns out to be full, the label's next one takes its place.
// score: [label][lane], of which the first `clusters` lanes are centres. Returns the cluster of each label.
inline std::vector<int32_t> assign_balanced(const std::vector<float>& score, size_t lanes, int clusters,
                                            const Work& work) {
  struct Pair {
    float score;
    int32_t label, centre;
    bool operator<(const Pair& other) const { return score != other.score ? score < other.score : label > other.label; }
  };
  const auto labels = int32_t(score.size() / lanes);
  std::vector<int32_t> room(size_t(clusters), labels / clusters), cluster(size_t(labels), -1);
  for (int c = 0; c < labels % clusters; ++c) ++room[size_t(c)];
  const auto best_pair = [&](int32_t i) {
    Pair best{-INFINITY, i, -1};
    const float* s = &score[size_t(i) * lanes];
    for (int c = 0; c < clusters; ++c)
      if (room[size_t(c)] > 0 && (best.centre < 0 || s[c] > best.score)) best = {s[c], i, c};
    return best;
  };
  std::vector<Pair> heap;
  heap.reserve(size_t(labels));
  for (int32_t i = 0; i < labels; ++i) heap.push_back(best_pair(i));
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    work.check();
    std::pop_heap(heap.begin(), heap.end());
    const Pair next = heap.back();
    if (room[size_t(next.centre)] > 0) {
      heap.pop_back();
      cluster[size_t(next.label)] = next.centre;
      --room[size_t(next.centre)];
    } else {
      heap.back() = best_pair(next.label);
      std::push_heap(heap.begin(), heap.end());
    }
  }
  return cluster;
}

// The cluster of the nearest centre, of each label.
inline std::vector<int32_t> assign_nearest(const std::vector<float>& score, size_t lanes, int clusters) {
  std::vector<int32_t> cluster(score.size() / lanes);
  for (size_t i = 0; i < cluster.size(); ++i) {
    const float* s = &score[i * lanes];
    cluster[i] = int32_t(std::max_element(s, s + clusters) - s);
  }
  return cluster;
}

}  // namespace longleaf

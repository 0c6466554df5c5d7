// Splitting a cluster of labels: see kmeans.cpp for the problem and the method.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/kernels.h"
#include "base/random.h"
#include "files/huge.h"
#include "trees/assign.h"
#include "trees/trees.h"

namespace longleaf {

// The sizes of the clusters that a cluster was split into, in order; below: how each of them is split, as far as known.
struct Split {
  std::vector<int32_t> sizes;
  std::vector<Split> below;
};

// What one thread splits clusters with: a cluster's vectors with their features renumbered, and the centres.
class Splitter {
 public:
  Splitter(const CsrView& centroids, const KMeansSettings& settings, const Work& work)
      : centroids_(centroids), settings_(settings), work_(work), local_(size_t(centroids.cols), -1) {}

  // Reorders the labels [begin, end) of `order` so that those of one cluster follow each other, and splits these again,
  // for so many levels in all.
  Split split(std::vector<int32_t>& order, int32_t begin, int32_t end, int levels, int threads) {
    gather(&order[begin], end - begin);
    std::vector<int32_t> rows(size_t(end - begin));
    std::iota(rows.begin(), rows.end(), 0);
    return split_gathered(&order[begin], rows.data(), begin, end - begin, levels, threads);
  }

 private:
  // labels and rows: the same, as the caller names them and by their places among the vectors.
  Split split_gathered(int32_t* labels, int32_t* rows, int32_t begin, int32_t size, int levels, int threads) {
    rows_ = rows;
    size_ = size;
    random_ = Random(settings_.seed, uint64_t(begin) << 32 | uint32_t(size));
    const int clusters = std::min<int32_t>(settings_.arity, size);
    cluster_.assign(size, -1);
    if (clusters == 2 && settings_.balanced)
      halve(threads);
    else
      partition(clusters, threads);
    Split out;
    out.sizes = reorder(labels, rows, clusters);
    if (levels == 1) return out;
    for (const int32_t below : out.sizes) {
      const bool wide = below > settings_.max_leaf;
      out.below.push_back(wide ? split_gathered(labels, rows, begin, below, levels - 1, threads) : Split{});
      labels += below;
      rows += below;
      begin += below;
    }
    return out;
  }

  void gather(const int32_t* labels, int32_t size) {
    // all of them, in their own order: nothing to copy, unless sums over all features would take more room than copies
    if (size == centroids_.rows && centroids_.indptr[size] >= 8 * centroids_.cols) {
      const auto* feature = reinterpret_cast<const uint32_t*>(centroids_.indices);
      vectors_ = {centroids_.indptr, feature, centroids_.data, centroids_.cols, true};
      return;
    }
    indptr_.assign(1, 0);
    feature_.clear();
    value_.clear();
    used_.clear();
    int64_t entries = 0;
    for (int32_t i = 0; i < size; ++i) entries += centroids_.row_size(labels[i]);
    feature_.reserve(size_t(entries));  // growing would hold them twice
    value_.reserve(size_t(entries));
    for (int32_t i = 0; i < size; ++i) {
      work_.check();
      for (int64_t j = centroids_.indptr[labels[i]]; j < centroids_.indptr[labels[i] + 1]; ++j) {
        int32_t& local = local_[centroids_.indices[j]];
        if (local < 0) {
          local = int32_t(used_.size());
          used_.push_back(centroids_.indices[j]);
        }
        feature_.push_back(uint32_t(local));
        value_.push_back(centroids_.data[j]);
      }
      indptr_.push_back(int64_t(feature_.size()));
    }
    for (int32_t feature : used_) local_[feature] = -1;
    vectors_ = {indptr_.data(), feature_.data(), value_.data(), int64_t(used_.size()), false};
  }

  LocalRow row(int32_t i) const {
    const int64_t begin = vectors_.indptr[rows_[i]];
    return {vectors_.feature + begin, vectors_.value + begin, vectors_.indptr[rows_[i] + 1] - begin};
  }
  size_t features() const { return size_t(vectors_.features); }

  // Adds the entries [begin, end) of a label's vector to a sum.
  static void add(const LocalRow& x, int64_t begin, int64_t end, float sign, float* sum, int stride) {
    for (int64_t j = begin; j < end; ++j) sum[size_t(x.feature[j]) * stride] += sign * x.value[j];
  }
  void add(int32_t i, float sign, float* sum, int stride) const { add(row(i), 0, row(i).size, sign, sum, stride); }

  // Subtracts labels that changed their cluster from the sum of the old one, sum_of(cluster), and adds them to the new
  // one's.
  template <class SumOf>
  void move_labels(const std::vector<int32_t>& before, SumOf sum_of, int stride, int threads) const {
    // features in order can be divided into ranges, which threads add without meeting
    const int64_t shares = vectors_.in_order ? threads : 1;
    Work work = Work::inside(work_);
    work.for_each(shares, threads, [&](int64_t share, int) {
      const auto first = uint32_t(vectors_.features * share / shares),
                 last = uint32_t(vectors_.features * (share + 1) / shares);
      for (int32_t i = 0; i < size_; ++i) {
        if (cluster_[i] == before[i]) continue;
        work_.check();
        const LocalRow x = row(i);
        const auto place = [&](uint32_t feature) {
          return std::lower_bound(x.feature, x.feature + x.size, feature) - x.feature;
        };
        const int64_t begin = shares > 1 ? place(first) : 0, end = shares > 1 ? place(last) : x.size;
        if (before[i] >= 0) add(x, begin, end, -1, sum_of(before[i]), stride);
        add(x, begin, end, 1, sum_of(cluster_[i]), stride);
      }
    });
  }

  std::vector<int32_t> draw_seeds(int clusters) {
    std::vector<int32_t> seeds(size_);
    std::iota(seeds.begin(), seeds.end(), 0);
    for (int c = 0; c < clusters; ++c) std::swap(seeds[c], seeds[c + random_.below(uint32_t(size_ - c))]);
    seeds.resize(size_t(clusters));
    return seeds;
  }

  // Balanced 2-means: the half of the labels that lies nearer to the first centre than the rest.
  void halve(int threads) {
    const std::vector<int32_t> seeds = draw_seeds(2);
    const size_t width = (features() + kLanes - 1) / kLanes * kLanes;
    std::vector<float> sum[2];
    for (int side : {0, 1}) sum[side].assign(width, 0.0f);
    std::vector<float> difference(width, 0.0f), score(size_);
    add(seeds[0], 1, difference.data(), 1);
    add(seeds[1], -1, difference.data(), 1);
    std::vector<int32_t> order(size_), before(size_, -1);
    std::iota(order.begin(), order.end(), 0);
    double best = 0;
    for (int iteration = 0; iteration < settings_.max_iterations; ++iteration) {
      score_all(difference, score, threads);
      std::nth_element(order.begin(), order.begin() + size_ / 2, order.end(),
                       [&](int32_t a, int32_t b) { return score[a] != score[b] ? score[a] > score[b] : a < b; });
      for (int32_t r = 0; r < size_; ++r) cluster_[order[r]] = r >= size_ / 2;
      if (cluster_ == before || iteration + 1 == settings_.max_iterations) break;  // the sums are not needed again
      move_labels(before, [&](int32_t side) { return sum[side].data(); }, 1, threads);
      before = cluster_;
      const double square[2] = {square_of(sum[0]), square_of(sum[1])};
      const double objective = std::sqrt(square[0]) + std::sqrt(square[1]);
      if (objective <= best * (1 + settings_.tolerance)) break;
      best = objective;
      const float scale[2] = {square[0] > 0 ? float(1 / std::sqrt(square[0])) : 0.0f,
                              square[1] > 0 ? float(1 / std::sqrt(square[1])) : 0.0f};
      for (size_t f = 0; f < width; ++f) difference[f] = sum[0][f] * scale[0] - sum[1][f] * scale[1];
    }
  }

  // Of a vector that is a whole number of kLanes long.
  static double square_of(const std::vector<float>& vector) {
    double square[kLanes] = {};
    kernels().lane_squares(vector.data(), nullptr, int64_t(vector.size()) / kLanes, square);
    return std::accumulate(square, square + kLanes, 0.0);
  }

  void score_all(const std::vector<float>& direction, std::vector<float>& score, int threads) const {
    constexpr int32_t batch = 64;
    Work work = Work::inside(work_);
    work.for_each((size_ + batch - 1) / batch, threads, [&](int64_t b, int) {
      for (int32_t i = int32_t(b) * batch; i < std::min<int32_t>(size_, int32_t(b + 1) * batch); ++i) {
        const LocalRow x = row(i);
        float total[4] = {};  // independent chains
        int64_t j = 0;
        for (; j + 4 <= x.size; j += 4)
          for (int c = 0; c < 4; ++c) total[c] += x.value[j + c] * direction[x.feature[j + c]];
        for (; j < x.size; ++j) total[0] += x.value[j] * direction[x.feature[j]];
        score[i] = (total[0] + total[1]) + (total[2] + total[3]);
      }
    });
  }

  // k-means with any number of clusters, kLanes centres at a time: [block of centres][feature][lane] holds the sums of
  // the clusters, whose lengths divide the products.
  void partition(int clusters, int threads) {
    const std::vector<int32_t> seeds = draw_seeds(clusters);
    const int blocks = (clusters + kLanes - 1) / kLanes;
    const size_t lanes = size_t(blocks) * kLanes, block = features() * kLanes;
    HugeVector<float> sum(block * size_t(blocks), 0.0f);
    std::vector<float> scale(lanes, 1.0f), score(size_t(size_) * lanes);
    const auto lane = [&](int c) { return sum.data() + size_t(c / kLanes) * block + c % kLanes; };
    for (int c = 0; c < clusters; ++c) add(seeds[c], 1, lane(c), kLanes);
    std::vector<int32_t> before(size_, -1);
    double best = 0;
    for (int iteration = 0; iteration < settings_.max_iterations; ++iteration) {
      score_centres(sum, scale, score, threads);
      if (settings_.balanced)
        cluster_ = assign_balanced(score, lanes, clusters, work_);
      else
        cluster_ = assign_nearest(score, lanes, clusters);
      if (cluster_ == before || iteration + 1 == settings_.max_iterations) break;  // the sums are not needed again
      if (iteration == 0) std::fill(sum.begin(), sum.end(), 0.0f);
      move_labels(before, lane, kLanes, threads);
      before = cluster_;
      double objective = 0;
      for (int b = 0; b < blocks; ++b) {
        double square[kLanes] = {};
        kernels().lane_squares(&sum[size_t(b) * block], nullptr, vectors_.features, square);
        for (int c = 0; c < kLanes; ++c) {
          objective += std::sqrt(square[c]);
          scale[size_t(b * kLanes + c)] = square[c] > 0 ? float(1 / std::sqrt(square[c])) : 0.0f;
        }
      }
      if (objective <= best * (1 + settings_.tolerance)) break;
      best = objective;
    }
  }

  void score_centres(const HugeVector<float>& sum, const std::vector<float>& scale, std::vector<float>& score,
                     int threads) const {
    constexpr int32_t batch = 64;
    const size_t lanes = scale.size(), block = features() * kLanes;
    Work work = Work::inside(work_);
    work.for_each((size_ + batch - 1) / batch, threads, [&](int64_t b, int) {
      for (int32_t i = int32_t(b) * batch; i < std::min<int32_t>(size_, int32_t(b + 1) * batch); ++i) {
        float* s = &score[size_t(i) * lanes];
        for (size_t first = 0; first < lanes; first += kLanes)
          kernels().lane_margins(row(i), &sum[first / kLanes * block], s + first);
        for (size_t c = 0; c < lanes; ++c) s[c] *= scale[c];
      }
    });
  }

  std::vector<int32_t> reorder(int32_t* labels, int32_t* rows, int clusters) const {
    std::vector<std::vector<int32_t>> members{size_t(clusters)};
    for (int32_t i = 0; i < size_; ++i) members[cluster_[i]].push_back(i);
    std::erase_if(members, [](const auto& cluster) { return cluster.empty(); });
    if (members.size() == 1 && size_ > 1) {  // nothing distinguished them: they are halved all the same
      members.push_back({members[0].begin() + size_ / 2, members[0].end()});
      members[0].resize(size_ / 2);
    }
    const std::vector<int32_t> old_labels(labels, labels + size_), old_rows(rows, rows + size_);
    std::vector<int32_t> sizes;
    for (const auto& cluster : members) {
      for (const int32_t i : cluster) {
        *labels++ = old_labels[i];
        *rows++ = old_rows[i];
      }
      sizes.push_back(int32_t(cluster.size()));
    }
    return sizes;
  }

  const CsrView& centroids_;
  const KMeansSettings& settings_;
  const Work& work_;
  Random random_{0};
  const int32_t* rows_ = nullptr;  // the places among the vectors of the labels that are being split
  int32_t size_ = 0;               // and how many
  std::vector<int32_t> local_, used_, cluster_;
  std::vector<int64_t> indptr_;
  HugeVector<uint32_t> feature_;
  HugeVector<float> value_;

  struct Vectors {
    const int64_t* indptr;
    const uint32_t* feature;
    const float* value;
    int64_t features;
    bool in_order;  // the features of each vector
  };
  Vectors vectors_{};  // the labels', copied together or as they came
};

}  // namespace longleaf

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
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>

#include "base/core.h"
#include "base/kernels.h"
#include "base/random.h"
#include "files/huge.h"

namespace longleaf {

namespace {

// The sizes of a cluster's parts, in order; below: how each of them is split, as far as that is known.
struct Split {
  std::vector<int32_t> sizes;
  std::vector<Split> below;
};

// One thread's workplace: a cluster's vectors with their features renumbered, and its centres.
class Splitter {
 public:
  Splitter(const CsrView& centroids, const KMeansSettings& settings)
      : centroids_(centroids), settings_(settings), local_(centroids.cols, -1) {}

  // Reorders the labels [begin, end) of `order` so that their parts lie one after another, and the parts of these, for
  // so many levels.
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
    const int parts = std::min<int32_t>(settings_.arity, size);
    cluster_.assign(size, -1);
    if (parts == 2 && settings_.balanced)
      halve(threads);
    else
      partition(parts, threads);
    Split out;
    out.sizes = reorder(labels, rows, parts);
    if (levels == 1) return out;
    for (int32_t part : out.sizes) {
      const bool wide = part > settings_.max_leaf;
      out.below.push_back(wide ? split_gathered(labels, rows, begin, part, levels - 1, threads) : Split{});
      labels += part;
      rows += part;
      begin += part;
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

  // Takes the labels that have left a cluster from its sum, sum_of(cluster), and adds them to their new one's.
  template <class SumOf>
  void move_labels(const std::vector<int32_t>& before, SumOf sum_of, int stride, int threads) const {
    // features in order fall apart into ranges, which threads can add without meeting
    const int64_t shares = vectors_.in_order ? threads : 1;
    Work work;
    work.for_each(shares, threads, [&](int64_t share, int) {
      const auto first = uint32_t(vectors_.features * share / shares),
                 last = uint32_t(vectors_.features * (share + 1) / shares);
      for (int32_t i = 0; i < size_; ++i) {
        if (cluster_[i] == before[i]) continue;
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

  std::vector<int32_t> draw_seeds(int parts) {
    std::vector<int32_t> seeds(size_);
    std::iota(seeds.begin(), seeds.end(), 0);
    for (int c = 0; c < parts; ++c) std::swap(seeds[c], seeds[c + random_.below(uint32_t(size_ - c))]);
    seeds.resize(parts);
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
      if (cluster_ == before || iteration + 1 == settings_.max_iterations) break;  // no one asks for the sums any more
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
    Work work;
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

  // k-means with any number of parts, kLanes centres at a time: [block of centres][feature][lane] holds the sums of
  // the clusters, whose lengths divide the products.
  void partition(int parts, int threads) {
    const std::vector<int32_t> seeds = draw_seeds(parts);
    const int blocks = (parts + kLanes - 1) / kLanes;
    const size_t lanes = size_t(blocks) * kLanes, block = features() * kLanes;
    HugeVector<float> sum(block * size_t(blocks), 0.0f);
    std::vector<float> scale(lanes, 1.0f), score(size_t(size_) * lanes);
    const auto lane = [&](int c) { return sum.data() + size_t(c / kLanes) * block + c % kLanes; };
    for (int c = 0; c < parts; ++c) add(seeds[c], 1, lane(c), kLanes);
    std::vector<int32_t> before(size_, -1);
    double best = 0;
    for (int iteration = 0; iteration < settings_.max_iterations; ++iteration) {
      score_centres(sum, scale, score, threads);
      if (settings_.balanced)
        assign_balanced(parts, int(lanes), score);
      else
        assign_nearest(parts, int(lanes), score);
      if (cluster_ == before || iteration + 1 == settings_.max_iterations) break;  // no one asks for the sums any more
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
    Work work;
    work.for_each((size_ + batch - 1) / batch, threads, [&](int64_t b, int) {
      for (int32_t i = int32_t(b) * batch; i < std::min<int32_t>(size_, int32_t(b + 1) * batch); ++i) {
        float* s = &score[size_t(i) * lanes];
        for (size_t first = 0; first < lanes; first += kLanes)
          kernels().lane_margins(row(i), &sum[first / kLanes * block], s + first);
        for (size_t c = 0; c < lanes; ++c) s[c] *= scale[c];
      }
    });
  }

  // The nearest pairs of label and centre first, as long as the centre has room. Of each label only the best pair that
  // is still possible waits in the heap; when its centre turns out to be full, the label's next one takes its place.
  void assign_balanced(int parts, int lanes, const std::vector<float>& score) {
    std::vector<int32_t> room(parts, size_ / parts);
    for (int c = 0; c < size_ % parts; ++c) ++room[c];
    struct Pair {
      float score;
      int32_t label, centre;
      bool operator<(const Pair& other) const {
        return score != other.score ? score < other.score : label > other.label;
      }
    };
    const auto best_pair = [&](int32_t i) {
      Pair best{-INFINITY, i, -1};
      for (int c = 0; c < parts; ++c)
        if (room[c] > 0 && (best.centre < 0 || score[size_t(i) * lanes + c] > best.score))
          best = {score[size_t(i) * lanes + c], i, c};
      return best;
    };
    std::vector<Pair> heap;
    heap.reserve(size_);
    for (int32_t i = 0; i < size_; ++i) heap.push_back(best_pair(i));
    std::make_heap(heap.begin(), heap.end());
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      const Pair next = heap.back();
      if (room[next.centre] > 0) {
        heap.pop_back();
        cluster_[next.label] = next.centre;
        --room[next.centre];
      } else {
        heap.back() = best_pair(next.label);
        std::push_heap(heap.begin(), heap.end());
      }
    }
  }

  void assign_nearest(int parts, int lanes, const std::vector<float>& score) {
    for (int32_t i = 0; i < size_; ++i) {
      const float* s = &score[size_t(i) * lanes];
      cluster_[i] = int32_t(std::max_element(s, s + parts) - s);
    }
  }

  std::vector<int32_t> reorder(int32_t* labels, int32_t* rows, int parts) const {
    std::vector<std::vector<int32_t>> members(parts);
    for (int32_t i = 0; i < size_; ++i) members[cluster_[i]].push_back(i);
    std::erase_if(members, [](const auto& part) { return part.empty(); });
    if (members.size() == 1 && size_ > 1) {  // nothing told them apart: cut in two all the same
      members.push_back({members[0].begin() + size_ / 2, members[0].end()});
      members[0].resize(size_ / 2);
    }
    const std::vector<int32_t> old_labels(labels, labels + size_), old_rows(rows, rows + size_);
    std::vector<int32_t> sizes;
    for (const auto& part : members) {
      for (int32_t i : part) {
        *labels++ = old_labels[i];
        *rows++ = old_rows[i];
      }
      sizes.push_back(int32_t(part.size()));
    }
    return sizes;
  }

  const CsrView& centroids_;
  const KMeansSettings& settings_;
  Random random_{0};
  const int32_t* rows_ = nullptr;  // which of the vectors the labels are that are being split
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
  Vectors vectors_{};  // the labels', copied together or as they were given
};

}  // namespace

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
      if (!splitter) splitter = std::make_unique<Splitter>(centroids, settings);
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

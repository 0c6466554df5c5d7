// Ranking the labels that a row's leaves hold.
//
// Problem: given the mean P_j(x) over the trees of label j's gain in the leaf of x, find the k labels of the
// highest
//   alpha log P_j(x) - (1 - alpha) log(1 + exp(gamma / 2 |x - mu_j|^2)),      mu_j: the mean of the rows with label j,
// rows taken at unit length there, and as they come in the trees.
// Source: Jain, Prabhu and Varma, KDD 2016.
//
// Method: many rows go down a tree together, so that a node's weights are spread out once for all. A row's candidates
// are looked at in order of what they could reach at most, their distance being no less than the difference of the
// lengths, until none can get among the best k.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/keep_best.h"
#include "baselines/baselines.h"
#include "baselines/ndcg_margin.h"

namespace longleaf {

namespace {

constexpr int64_t kRowsAtOnce = 1024;
constexpr int64_t kSearchedInstead = 8;  // times a row's features: means of more entries are searched, not read through

struct Found {
  double key;
  int32_t label;
  bool operator<(const Found& other) const { return key != other.key ? key < other.key : label > other.label; }
};

// Kept by a thread from batch to batch.
class Ranker {
 public:
  Ranker(const NdcgForest& forest, const NdcgRows& rows, const NdcgSearchSettings& settings)
      : forest_(forest),
        X_(rows.X),
        row_scale_(rows.scale),
        unit_scale_(rows.unit_scale),
        settings_(settings),
        spread_(size_t(rows.X.cols), 0.0f),
        sum_(size_t(forest.means.rows), 0.0) {}

  void find_leaves(int64_t begin, int64_t end) {
    begin_ = begin;
    const size_t n = size_t(end - begin);
    leaf_.resize(n * forest_.trees.size());
    for (size_t t = 0; t < forest_.trees.size(); ++t) {
      rows_.resize(n);
      std::iota(rows_.begin(), rows_.end(), int32_t(0));
      waiting_.assign(1, {0, 0, n});
      while (!waiting_.empty()) {
        const Group group = waiting_.back();
        waiting_.pop_back();
        send_on(t, group);
      }
    }
  }

  // Returns the number of candidates.
  int64_t rank(int64_t row, int32_t* labels, float* scores) {
    add_leaves(row);
    const double length = spread_row(row);
    candidates_.clear();
    for (const int32_t label : seen_) {
      const double apart = length - std::sqrt(forest_.mean_squares[size_t(label)]);
      candidates_.push_back({key(label, apart * apart), label});
    }
    std::make_heap(candidates_.begin(), candidates_.end());
    best_.clear();
    for (auto end = candidates_.end(); end != candidates_.begin(); --end) {
      const Found most = candidates_.front();
      if (best_.size() == size_t(settings_.k) && most.key + kRounding < best_.front().key) break;
      std::pop_heap(candidates_.begin(), end);
      const double squares = length * length + forest_.mean_squares[size_t(most.label)];
      const double distance = std::max(squares - 2 * double(unit_scale_[row]) * dot(row, most.label), 0.0);
      keep_best(best_, Found{key(most.label, distance), most.label}, size_t(settings_.k));
    }
    std::sort(best_.begin(), best_.end(), [](const Found& a, const Found& b) { return b < a; });
    for (size_t i = 0; i < size_t(settings_.k); ++i) {
      labels[i] = i < best_.size() ? best_[i].label : -1;
      scores[i] = i < best_.size() ? float(std::exp(best_[i].key)) : 0.0f;
    }
    for (const int32_t label : seen_) sum_[size_t(label)] = 0;
    for (int64_t e = X_.indptr[row]; e < X_.indptr[row + 1]; ++e) spread_[size_t(X_.indices[e])] = 0;
    return int64_t(seen_.size());
  }

 private:
  static constexpr double kRounding = 1e-9;
  // Rows of the batch at a node.
  struct Group {
    int32_t node;
    size_t begin, end;
  };

  void send_on(size_t t, const Group& group) {
    const NdcgTreeView& tree = forest_.trees[t];
    const int32_t place = tree.place[group.node], *child = tree.children + 2 * int64_t(group.node);
    if (child[0] < 0) {
      for (size_t i = group.begin; i < group.end; ++i) leaf_[size_t(rows_[i]) * forest_.trees.size() + t] = place;
      return;
    }
    const int64_t begin = tree.weights.indptr[place], end = tree.weights.indptr[place + 1];
    for (int64_t w = begin; w < end; ++w) spread_[size_t(tree.weights.indices[w])] = tree.weights.data[w];
    const auto middle = std::partition(
        rows_.begin() + std::ptrdiff_t(group.begin), rows_.begin() + std::ptrdiff_t(group.end), [&](int32_t i) {
          const int64_t row = begin_ + i;
          return ndcg_margin(X_, row, row_scale_[row], spread_.data(), tree.bias[place]) <= 0;
        });
    for (int64_t w = begin; w < end; ++w) spread_[size_t(tree.weights.indices[w])] = 0;
    const size_t parted = size_t(middle - rows_.begin());
    if (parted > group.begin) waiting_.push_back({child[0], group.begin, parted});
    if (parted < group.end) waiting_.push_back({child[1], parted, group.end});
  }

  void add_leaves(int64_t row) {
    seen_.clear();
    for (size_t t = 0; t < forest_.trees.size(); ++t) {
      const CsrView& leaves = forest_.trees[t].leaves;
      const int32_t leaf = leaf_[size_t(row - begin_) * forest_.trees.size() + t];
      for (int64_t e = leaves.indptr[leaf]; e < leaves.indptr[leaf + 1]; ++e) {
        if (leaves.data[e] <= 0) continue;
        double& sum = sum_[size_t(leaves.indices[e])];
        if (sum == 0) seen_.push_back(leaves.indices[e]);
        sum += double(leaves.data[e]);
      }
    }
  }

  // Returns the row's length.
  double spread_row(int64_t row) {
    double square = 0;
    for (int64_t e = X_.indptr[row]; e < X_.indptr[row + 1]; ++e) {
      spread_[size_t(X_.indices[e])] = X_.data[e];
      square += double(X_.data[e]) * double(X_.data[e]);
    }
    return std::sqrt(square) * double(unit_scale_[row]);
  }

  double key(int32_t label, double distance) const {
    const double far = settings_.gamma / 2 * distance;
    return settings_.alpha * std::log(sum_[size_t(label)] / double(forest_.trees.size())) -
           (1 - settings_.alpha) * (far + std::log1p(std::exp(-far)));
  }

  // Of the spread row with a label's mean.
  double dot(int64_t row, int32_t label) const {
    const CsrView& means = forest_.means;
    const int32_t *at = means.indices + means.indptr[label], *end = means.indices + means.indptr[label + 1];
    double sum = 0;
    if (end - at <= kSearchedInstead * X_.row_size(row)) {
      for (; at != end; ++at) sum += double(spread_[size_t(*at)]) * double(means.data[at - means.indices]);
      return sum;
    }
    for (int64_t e = X_.indptr[row]; e < X_.indptr[row + 1] && at != end; ++e) {
      at = std::lower_bound(at, end, X_.indices[e]);
      if (at != end && *at == X_.indices[e]) sum += double(X_.data[e]) * double(means.data[at - means.indices]);
    }
    return sum;
  }

  const NdcgForest& forest_;
  const CsrView X_;
  const float *const row_scale_, *const unit_scale_;
  const NdcgSearchSettings settings_;
  int64_t begin_ = 0;          // the batch's first row
  std::vector<int32_t> leaf_;  // by row of the batch, then tree
  std::vector<int32_t> rows_;  // of the batch, those of a node together
  std::vector<Group> waiting_;
  std::vector<float> spread_;  // by feature: a node's weights or a row, 0 between
  std::vector<double> sum_;    // by label, 0 between rows
  std::vector<int32_t> seen_;
  std::vector<Found> candidates_, best_;
};

}  // namespace

NdcgForest ndcg_forest(std::vector<NdcgTreeView> trees, const CsrView& means) {
  NdcgForest forest{std::move(trees), means, std::vector<double>(size_t(means.rows), 0.0)};
  for (int64_t label = 0; label < means.rows; ++label)
    for (int64_t e = means.indptr[label]; e < means.indptr[label + 1]; ++e)
      forest.mean_squares[size_t(label)] += double(means.data[e]) * double(means.data[e]);
  return forest;
}

void ndcg_top_k(const NdcgForest& forest, const NdcgRows& rows, const NdcgSearchSettings& settings, Work& work,
                int32_t* labels, float* scores, int64_t* candidates) {
  std::vector<std::unique_ptr<Ranker>> rankers(size_t(std::max(settings.threads, 1)));
  const int64_t batches = (rows.X.rows + kRowsAtOnce - 1) / kRowsAtOnce;
  work.for_each(batches, settings.threads, [&](int64_t batch, int thread) {
    auto& ranker = rankers[size_t(thread)];
    if (!ranker) ranker = std::make_unique<Ranker>(forest, rows, settings);
    const int64_t begin = batch * kRowsAtOnce, end = std::min(begin + kRowsAtOnce, rows.X.rows);
    ranker->find_leaves(begin, end);
    for (int64_t row = begin; row < end; ++row) {
      work.check();
      candidates[row] = ranker->rank(row, labels + row * settings.k, scores + row * settings.k);
    }
  });
}

}  // namespace longleaf

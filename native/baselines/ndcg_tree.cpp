// Growing trees that split rows so that each side can be ranked well by one order of its labels.
//
// Problem: at a node, find a sparse linear separator w, sides d_i of the rows and two orders r+, r- of the labels that
// minimise  |w|_1 + sum_i C / share(d_i) log(1 + exp(-d_i w.x_i)) - sum_i DCG(r of the side of i, y_i).
// Given: the rows' features and labels, the gain of each label: the inverse propensity makes DCG the
// propensity-scored one. Out: trees. An error costs C over its side's share of the rows, as in the authors' code: it
// keeps splits even. Method: sides first, drawn at random to begin with (ndcg_sides.cpp), then w for those sides
// (separator.cpp); the rows go where w sends them. Sources: Prabhu and Varma, KDD 2014 (FastXML); Jain, Prabhu and
// Varma, KDD 2016 (PfastreXML).
#include <algorithm>
#include <memory>
#include <numeric>

#include "base/random.h"
#include "baselines/baselines.h"
#include "baselines/ndcg_margin.h"
#include "baselines/ndcg_sides.h"
#include "baselines/separator.h"

namespace longleaf {

namespace {

// Kept by a thread from tree to tree.
class Grower {
 public:
  Grower(const NdcgData& data, const NdcgSettings& settings, Work& work)
      : data_(data),
        settings_(settings),
        work_(work),
        sides_of_(data.labels, data.gain, work),
        separator_of_(data.X, data.row_scale, work),
        weight_(size_t(data.X.cols), 0.0f),
        sum_(size_t(data.labels.cols), 0.0) {}

  NdcgTreeArrays grow(uint64_t seed, double share) {
    NdcgTreeArrays tree;
    rows_.resize(size_t(data_.X.rows));
    std::iota(rows_.begin(), rows_.end(), 0);
    std::vector<Range> waiting{{0, rows_.size()}};
    for (size_t node = 0; node < waiting.size(); ++node) {
      const auto [begin, end] = waiting[node];
      const size_t middle = split(seed, node, begin, end, tree);
      if (middle == begin || middle == end) {
        tree.children.insert(tree.children.end(), {-1, -1});
        tree.place.push_back(int32_t(tree.leaf_indptr.size() - 1));
        add_leaf(std::span(rows_).subspan(begin, end - begin), tree);
        work_.add(share * double(end - begin));
        continue;
      }
      const int32_t child = int32_t(waiting.size());
      tree.children.insert(tree.children.end(), {child, child + 1});
      tree.place.push_back(int32_t(tree.bias.size() - 1));
      waiting.push_back({begin, middle});
      waiting.push_back({middle, end});
    }
    return tree;
  }

 private:
  struct Range {
    size_t begin, end;
  };

  // Puts the rows of margins above 0 behind the others; returns where they begin: at an end for a leaf, which leaves no
  // separator behind.
  size_t split(uint64_t seed, size_t node, size_t begin, size_t end, NdcgTreeArrays& tree) {
    const size_t n = end - begin;
    if (int64_t(n) <= settings_.max_leaf) return begin;
    const std::span<int32_t> rows = std::span(rows_).subspan(begin, n);
    Random random(seed, node);
    side_.resize(n);
    for (uint8_t& side : side_) side = uint8_t(random.next() >> 63);
    sides_of_.find(rows, side_);
    const size_t on = size_t(std::accumulate(side_.begin(), side_.end(), int64_t(0)));
    if (on == 0 || on == n) return begin;
    const auto cost = [&](size_t of_side) { return float(settings_.C * double(n) / double(of_side)); };
    const Separator found = separator_of_.solve(
        rows, side_.data(), {cost(n - on), cost(on), settings_.bias, settings_.tolerance, settings_.max_epochs, seed});
    const size_t middle = begin + divide(rows, found);
    if (middle == begin || middle == end) return begin;
    tree.weight_indices.insert(tree.weight_indices.end(), found.feature.begin(), found.feature.end());
    tree.weight_data.insert(tree.weight_data.end(), found.weight.begin(), found.weight.end());
    tree.weight_indptr.push_back(int64_t(tree.weight_indices.size()));
    tree.bias.push_back(found.bias);
    return middle;
  }

  // Returns how many rows have margins of at most 0; these come first.
  size_t divide(std::span<int32_t> rows, const Separator& found) {
    for (size_t w = 0; w < found.feature.size(); ++w) weight_[size_t(found.feature[w])] = found.weight[w];
    above_.clear();
    size_t below = 0;
    for (const int32_t row : rows) {
      if (ndcg_margin(data_.X, row, data_.row_scale[row], weight_.data(), found.bias) > 0)
        above_.push_back(row);
      else
        rows[below++] = row;
    }
    std::copy(above_.begin(), above_.end(), rows.begin() + std::ptrdiff_t(below));
    for (const int32_t f : found.feature) weight_[size_t(f)] = 0;
    return below;
  }

  void add_leaf(std::span<const int32_t> rows, NdcgTreeArrays& tree) {
    seen_.clear();
    for (const int32_t row : rows)
      for (int64_t e = data_.labels.indptr[row]; e < data_.labels.indptr[row + 1]; ++e) {
        const int32_t label = data_.labels.indices[e];
        if (sum_[size_t(label)] == 0) seen_.push_back(label);
        sum_[size_t(label)] += data_.gain[label];
      }
    const size_t kept = std::min(seen_.size(), size_t(settings_.max_labels));
    std::sort(seen_.begin(), seen_.end());
    if (kept < seen_.size())
      std::stable_sort(seen_.begin(), seen_.end(),
                       [&](int32_t a, int32_t b) { return sum_[size_t(a)] > sum_[size_t(b)]; });
    std::sort(seen_.begin(), seen_.begin() + std::ptrdiff_t(kept));
    for (size_t i = 0; i < kept; ++i) {
      tree.leaf_indices.push_back(seen_[i]);
      tree.leaf_data.push_back(float(sum_[size_t(seen_[i])] / double(rows.size())));
    }
    for (const int32_t label : seen_) sum_[size_t(label)] = 0;
    tree.leaf_indptr.push_back(int64_t(tree.leaf_indices.size()));
  }

  const NdcgData& data_;
  const NdcgSettings& settings_;
  Work& work_;
  SideFinder sides_of_;
  SeparatorSolver separator_of_;
  std::vector<int32_t> rows_;  // each node's rows stand together, in order
  std::vector<uint8_t> side_;
  std::vector<int32_t> above_;
  std::vector<float> weight_;  // by feature, 0 between nodes
  std::vector<double> sum_;    // by label, 0 between leaves
  std::vector<int32_t> seen_;
};

}  // namespace

std::vector<uint8_t> ndcg_sides(const CsrView& labels, const double* gain, const uint8_t* begun, const Work& work) {
  std::vector<int32_t> rows(static_cast<size_t>(labels.rows));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<uint8_t> sides(begun, begun + rows.size());
  SideFinder(labels, gain, work).find(rows, sides);
  return sides;
}

std::vector<NdcgTreeArrays> grow_ndcg_trees(const NdcgData& data, std::span<const uint64_t> seeds,
                                            const NdcgSettings& settings, Work& work) {
  std::vector<NdcgTreeArrays> trees(seeds.size());
  std::vector<std::unique_ptr<Grower>> growers(size_t(std::max(settings.threads, 1)));
  const double share = 1 / (double(data.X.rows) * double(seeds.size()));
  work.for_each(int64_t(seeds.size()), settings.threads, [&](int64_t t, int thread) {
    auto& grower = growers[size_t(thread)];
    if (!grower) grower = std::make_unique<Grower>(data, settings, work);
    trees[size_t(t)] = grower->grow(seeds[size_t(t)], share);
  });
  return trees;
}

}  // namespace longleaf

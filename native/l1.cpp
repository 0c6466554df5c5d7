// Training one classifier per label with an l1 norm.
//
// Problem: for every leaf v of a flat tree
//   min_w  |w|_1 + sum over all rows i of  C_i max(0, 1 - y_i w.x_i)^2,      y_i = +1 if v holds i, else -1;
// the bias is a feature that every row has. Given: rows, the labels' leaves, costs. Out: the weights, chunked by siblings.
//
// Method: coordinate descent, each step a Newton step with a line search (Yuan, Chang, Hsieh and Lin, "A comparison of
// optimization methods and software for large-scale l1-regularized linear classification", JMLR 11, 2010), over a working
// set of features: those with a weight, and those whose slope says that they should have one (Johnson and Guestrin,
// "Blitz", ICML 2015). When it has come to rest the slopes of all features are looked at again.
//
// A label's few weights touch few rows. All others, the far rows, have the margin of the bias and count as one: slopes of
// all features are those for far rows everywhere, a multiple of the features' sums, put right for the near rows.
//
// When to stop: 2 C_i slack_i, scaled down until no feature's slope exceeds 1, is a point of the dual problem, and the
// gap between both objectives bounds how far the primal one is from its minimum.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "columns.h"
#include "core.h"
#include "l1_step.h"
#include "random.h"
#include "units.h"

namespace longleaf {

namespace {

struct Entry {
  int32_t feature;
  float weight;
};
struct Solution {
  std::vector<Entry> entries;  // in order of features
  float bias = 0;
};

// One thread's workplace. Features are numbered as in X; the bias comes after the last one.
class L1Solver {
 public:
  L1Solver(const TrainingData& data, const Columns& columns, const TrainSettings& settings, const Work& work)
      : data_(data), columns_(columns), settings_(settings), work_(work), bias_(size_t(data.X.cols)),
        w_(bias_ + 1, 0.0), slope_(bias_ + 1, 0.0), moved_(size_t(data.X.rows), 0.0), positive_(size_t(data.X.rows), 0.0f),
        is_near_(size_t(data.X.rows), 0) {
    for (int64_t i = 0; i < data.X.rows; ++i) all_weight_ += row_weight(i);
  }

  Solution solve(int32_t node, TrainReport& report) {
    start(node);
    for (int epoch = 0; !work_.stopped();) {
      const double largest = find_slopes();
      const double gap = relative_gap();
      if (gap <= settings_.tolerance) break;
      if (epoch >= settings_.max_epochs) {
        ++report.unfinished;
        break;
      }
      const double resting = std::max(0.1 * settings_.tolerance, 0.1 * largest);
      choose_working_set();
      do {
        ++report.epochs;
        ++epoch;
      } while (run_epoch() > resting && epoch < settings_.max_epochs && !work_.stopped());
    }
    return finish();
  }

 private:
  double row_weight(int64_t i) const { return data_.row_weight ? data_.row_weight[i] : 1.0; }
  double cost(size_t i) const { return positive_[i] > 0 ? positive_[i] : c_negative_ * row_weight(int64_t(i)); }
  double side(size_t i) const { return positive_[i] > 0 ? 1.0 : -1.0; }
  double bias() const { return settings_.bias * w_[bias_]; }
  double slack(size_t i) const { return 1 - side(i) * (moved_[i] + bias()); }
  double far_slack() const { return std::max(0.0, 1 + bias()); }

  void start(int32_t node) {
    random_ = Random(settings_.seed, uint64_t(node));
    c_negative_ = data_.c_negative[node];
    far_weight_ = all_weight_;
    for (int64_t j = data_.rows.indptr[node]; j < data_.rows.indptr[node + 1]; ++j) {
      const size_t row = size_t(data_.rows.rows[j]);
      const double factor = data_.rows.factor ? data_.rows.factor[j] : 1.0;
      positive_[row] = float(data_.c_positive[node] * factor * row_weight(int64_t(row)));
      touch(row);
    }
  }

  void touch(size_t row) {
    if (is_near_[row]) return;
    is_near_[row] = 1;
    near_.push_back(int32_t(row));
    far_weight_ = std::max(0.0, far_weight_ - row_weight(int64_t(row)));
  }

  // How fast the losses change with each weight; gives by how much the worst one breaks its rule.
  double find_slopes() {
    const double far = 2 * c_negative_ * far_slack();
    for (size_t f = 0; f < bias_; ++f) slope_[f] = far * columns_.sum[f];
    double of_bias = far * far_weight_;
    const CsrView& X = data_.X;
    for (int32_t row : near_) {
      const size_t i = size_t(row);
      const double own = -2 * cost(i) * side(i) * std::max(0.0, slack(i));
      of_bias += own;
      const double change = (own - far * row_weight(row)) * data_.row_scale[row];
      if (change == 0) continue;
      for (int64_t e = X.indptr[row]; e < X.indptr[row + 1]; ++e) slope_[size_t(X.indices[e])] += change * X.data[e];
    }
    slope_[bias_] = settings_.bias * of_bias;
    double largest = 0;
    for (size_t f = 0; f <= bias_; ++f) largest = std::max(largest, violation(w_[f], slope_[f]));
    return largest;
  }

  double relative_gap() const {
    double norm = 0, steepest = 1, losses = c_negative_ * far_weight_ * far_slack() * far_slack();
    double duals = 2 * c_negative_ * far_weight_ * far_slack();  // the sum of 2 C slack
    for (size_t f = 0; f <= bias_; ++f) {
      norm += std::fabs(w_[f]);
      steepest = std::max(steepest, std::fabs(slope_[f]));
    }
    for (int32_t row : near_) {
      const double s = std::max(0.0, slack(size_t(row)));
      losses += cost(size_t(row)) * s * s;
      duals += 2 * cost(size_t(row)) * s;
    }
    const double primal = norm + losses, dual = duals / steepest - losses / (steepest * steepest);
    return primal > 0 ? (primal - dual) / primal : 0;
  }

  // The features with a weight, and of the others at most as many again, those that ask for one most.
  void choose_working_set() {
    constexpr size_t kFewest = 64;
    working_.clear();
    asking_.clear();
    for (size_t f = 0; f < bias_; ++f) {
      if (w_[f] != 0)
        working_.push_back(int32_t(f));
      else if (std::fabs(slope_[f]) > 1)
        asking_.push_back(int32_t(f));
    }
    const size_t room = std::max(kFewest, working_.size());
    if (asking_.size() > room) {
      std::nth_element(asking_.begin(), asking_.begin() + int64_t(room), asking_.end(), [&](int32_t a, int32_t b) {
        const double steep_a = std::fabs(slope_[size_t(a)]), steep_b = std::fabs(slope_[size_t(b)]);
        return steep_a != steep_b ? steep_a > steep_b : a < b;
      });
      asking_.resize(room);
    }
    working_.insert(working_.end(), asking_.begin(), asking_.end());
    std::sort(working_.begin(), working_.end());
  }

  // One step for each feature of the working set; gives the largest violation that was met. The bias, which ties all
  // rows together, follows whenever as many rows were visited as it has to look at. Features that want no weight by a wide
  // margin leave the set.
  double run_epoch() {
    random_.shuffle(working_.data(), int64_t(working_.size()));
    double largest = settings_.bias != 0 ? step_bias() : 0;
    size_t kept = 0, visits = 0;
    for (int32_t f : working_) {
      const double slope = step_feature(size_t(f), largest);
      if (w_[size_t(f)] != 0 || std::fabs(slope) > kWide) working_[kept++] = f;
      visits += size_t(columns_.indptr[size_t(f) + 1] - columns_.indptr[size_t(f)]);
      if (settings_.bias == 0 || visits < near_.size()) continue;
      step_bias();
      visits = 0;
    }
    working_.resize(kept);
    return largest;
  }
  static constexpr double kWide = 0.9;

  double step_feature(size_t f, double& largest) {
    const int64_t begin = columns_.indptr[f], end = columns_.indptr[f + 1];
    const int32_t* rows = columns_.row.data();
    const float* values = columns_.value.data();
    double slope = 0, curvature = 0;
    for (int64_t e = begin; e < end; ++e) {
      const size_t i = size_t(rows[e]);
      const double s = slack(i);
      if (s <= 0) continue;
      const double c = 2 * cost(i) * values[e];
      slope -= c * side(i) * s;
      curvature += c * values[e];
    }
    largest = std::max(largest, violation(w_[f], slope));
    const double step = line_search(w_[f], slope, curvature, [&](double d) {
      double change = 0;
      for (int64_t e = begin; e < end; ++e) change += loss_change(size_t(rows[e]), d * values[e]);
      return change;
    });
    if (step == 0) return slope;
    w_[f] += step;
    for (int64_t e = begin; e < end; ++e) {
      moved_[size_t(rows[e])] += step * values[e];
      touch(size_t(rows[e]));
    }
    return slope;
  }

  double step_bias() {
    const double value = settings_.bias, far = far_slack(), far_cost = c_negative_ * far_weight_;
    double slope = 2 * far_cost * far * value, curvature = far > 0 ? 2 * far_cost * value * value : 0;
    for (int32_t row : near_) {
      const double s = slack(size_t(row));
      if (s <= 0) continue;
      slope -= 2 * cost(size_t(row)) * side(size_t(row)) * s * value;
      curvature += 2 * cost(size_t(row)) * value * value;
    }
    const double found = violation(w_[bias_], slope);
    w_[bias_] += line_search(w_[bias_], slope, curvature, [&](double d) {
      const double then = std::max(0.0, 1 + bias() + d * value);
      double change = far_cost * (then * then - far * far);
      for (int32_t row : near_) change += loss_change(size_t(row), d * value);
      return change;
    });
    return found;
  }

  double loss_change(size_t i, double margin_change) const {
    const double s = slack(i), before = std::max(0.0, s), after = std::max(0.0, s - side(i) * margin_change);
    return cost(i) * (after * after - before * before);
  }

  // Hands the weights over and tidies up for the next label.
  Solution finish() {
    Solution out;
    for (size_t f = 0; f < bias_; ++f) {
      if (w_[f] != 0 && std::fabs(w_[f]) > settings_.threshold) out.entries.push_back({int32_t(f), float(w_[f])});
      w_[f] = 0;
    }
    out.bias = float(bias());
    w_[bias_] = 0;
    for (int32_t row : near_) {
      moved_[size_t(row)] = 0;
      positive_[size_t(row)] = 0;
      is_near_[size_t(row)] = 0;
    }
    near_.clear();
    return out;
  }

  const TrainingData& data_;
  const Columns& columns_;
  const TrainSettings& settings_;
  const Work& work_;
  const size_t bias_;  // the number of the bias among the features
  Random random_{0};
  double c_negative_ = 0, all_weight_ = 0, far_weight_ = 0;
  std::vector<double> w_, slope_;
  std::vector<double> moved_;    // per row, its margin without the bias; 0 for far ones
  std::vector<float> positive_;  // per row, what an error costs where it is positive; 0 elsewhere
  std::vector<uint8_t> is_near_;
  std::vector<int32_t> near_, working_, asking_;
};

}  // namespace

ChunkArrays train_l1(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                     Work& work, TrainReport& report) {
  const ChunkPlan plan(data.tree, first_node, last_node);
  const int32_t first = std::max(first_node, 1);  // the root has no classifier
  const Columns columns(data);
  std::vector<Solution> solutions(size_t(std::max(last_node - first, 0)));
  std::vector<std::unique_ptr<L1Solver>> solvers(size_t(std::max(1, settings.threads)));
  std::vector<TrainReport> reports(solvers.size());
  work.for_each(int64_t(solutions.size()), settings.threads, [&](int64_t index, int thread) {
    auto& solver = solvers[size_t(thread)];
    if (!solver) solver = std::make_unique<L1Solver>(data, columns, settings, work);
    solutions[size_t(index)] = solver->solve(first + int32_t(index), reports[size_t(thread)]);
    work.add(1.0 / double(solutions.size()));
  });
  for (const TrainReport& part : reports) {
    report.epochs += part.epochs;
    report.unfinished += part.unfinished;
  }
  std::vector<float> bias(size_t(last_node - first_node), 0.0f);
  std::vector<PackedChunk> packed;
  for (int32_t c = plan.first_chunk; c < plan.last_chunk; ++c) {
    ChunkEntries entries;
    for (int32_t v = plan.node[size_t(c)]; v < plan.node[size_t(c) + 1]; ++v) {
      const Solution& solution = solutions[size_t(v - first)];
      bias[size_t(v - first_node)] = solution.bias;
      for (const Entry& e : solution.entries) entries.append(e.feature, uint8_t(v - plan.node[size_t(c)]), e.weight);
    }
    sort_entries(entries);
    packed.push_back(pack_chunk(entries, plan.node[size_t(c) + 1] - plan.node[size_t(c)], data.X.cols, settings.weight_bits));
  }
  return join_chunks({plan.node.begin() + plan.first_chunk, plan.node.begin() + plan.last_chunk + 1}, std::move(packed),
                     std::move(bias), settings.weight_bits);
}

}  // namespace longleaf

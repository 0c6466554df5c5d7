// Training one classifier per label with an l1 norm.
//
// Problem: for every leaf v of a flat tree
//   min_w  |w|_1 + sum over all rows i of  C_i max(0, 1 - y_i w.x_i)^2,      y_i = +1 if v holds i, else -1;
// the bias is a feature that every row has. Given: rows, the labels' leaves, costs. Out: the weights, chunked by
// siblings.
//
// Method: proximal Newton steps (Lee, Sun and Saunders, "Proximal Newton-type methods for minimizing composite
// functions", SIAM J. Optim. 24, 2014; for this family of problems Yuan, Ho and Lin, "An improved GLMNET for
// l1-regularized logistic regression", JMLR 13, 2012). The losses are taken for quadratic, which they are as long as
// the same rows have slack; the minimum of |w|_1 and that model is found by coordinate descent on its matrix, which
// costs next to nothing beside a look at the rows; and a line search says how far to go there. Tens of steps do what
// takes coordinate descent on the rows themselves hundreds of passes, since bias and weights pull at each other.
//
// All this over a working set of features: those with a weight, and those whose slope says that they should have one
// (Johnson and Guestrin, "Blitz", ICML 2015), first the ones that promise most: a Newton step on a weight alone would
// gain (|slope| - 1)^2 / (2 curvature), so that words of every other row, whose columns cost most, wait until they are
// needed, and mostly never are. When the set has come to rest the slopes of all features are looked at again.
//
// A label's few weights touch few rows. All others, the far rows, have the margin of the bias and count as one: slopes
// of all features are those for far rows everywhere, a multiple of the features' sums, put right for the near rows.
//
// When to stop: 2 C_i slack_i, scaled down until no feature's slope exceeds 1, is a point of the dual problem, and the
// gap between both objectives bounds how far the primal one is from its minimum.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "baselines/baselines.h"
#include "baselines/columns.h"
#include "baselines/l1_newton.h"
#include "train/units.h"

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

// What one thread solves problems with.
class L1Solver {
 public:
  L1Solver(const TrainingData& data, const Columns& columns, const TrainSettings& settings, const Work& work)
      : data_(data),
        columns_(columns),
        settings_(settings),
        work_(work),
        rows_(data),
        newton_(columns, rows_, settings.bias),
        w_(size_t(data.X.cols), 0.0),
        slope_(size_t(data.X.cols), 0.0) {}

  Solution solve(int32_t node, TrainReport& report) {
    rows_.start(node);
    random_ = Random(settings_.seed, uint64_t(node));
    bias_ = 0;
    work_on({}, kRestingBias, 0, settings_.max_epochs);  // by the bias alone most rows lose their slack, and stay far
    for (int epoch = 0;;) {
      const double gap = look_around();
      if (gap <= settings_.tolerance) break;
      if (epoch >= settings_.max_epochs) {
        ++report.unfinished;
        break;
      }
      choose_working_set();
      const double resting = std::max(0.1 * settings_.tolerance, 0.1 * largest_);
      const int last = working_.size() > kBlock ? epoch + 1 : settings_.max_epochs;
      epoch = take_turns(resting, epoch, last, report);
    }
    return finish();
  }

 private:
  static constexpr size_t kBlock = 512;  // the model's matrix then has 2 MB
  static constexpr double kRestingBias = 0.01;

  // Works on the set until it is at rest. One that is too large for a model is divided into blocks, new ones each time,
  // which get one step in turn: to rest, each would only answer to what the others are about to leave. Returns the
  // epochs so far.
  int take_turns(double resting, int epoch, int last, TrainReport& report) {
    if (working_.size() > kBlock) random_.shuffle(working_.data(), int64_t(working_.size()));
    int reached = epoch + 1;  // even without a step, which the last digits may not allow: so it comes to an end
    for (size_t begin = 0; begin < working_.size() || begin == 0; begin += kBlock) {
      const size_t size = std::min(kBlock, working_.size() - begin);
      reached = std::max(reached, work_on({working_.data() + begin, size}, resting, epoch, last));
    }
    report.epochs += reached - epoch;
    return reached;
  }

  // Steps on some features and the bias until no slope of theirs is off by more than `resting`, or to the last epoch.
  int work_on(std::span<const int32_t> features, double resting, int epoch, int last) {
    newton_.take(features, w_, bias_);
    while (epoch < last && newton_.look() > resting) {
      work_.check();
      ++epoch;
      if (newton_.step(0.1 * resting) == 0) break;
    }
    bias_ = newton_.weight()[0];
    for (size_t p = 0; p < features.size(); ++p) w_[size_t(features[p])] = newton_.weight()[p + 1];
    return epoch;
  }

  // Finds how fast the losses change with each weight, which features have a weight and which need one, and by how
  // much the worst one breaks its rule; returns the duality gap as a share of the objective.
  double look_around() {
    const double b = settings_.bias * bias_, far_slack = std::max(0.0, 1 + b), far = 2 * rows_.c_negative() * far_slack;
    for (size_t f = 0; f < slope_.size(); ++f) slope_[f] = far * columns_.sum[f];
    double of_bias = 2 * rows_.far_cost() * far_slack;
    double losses = rows_.far_cost() * far_slack * far_slack, duals = of_bias;  // the sum of 2 C slack
    const CsrView& X = data_.X;
    for (size_t r = 0; r < rows_.near.size(); ++r) {
      work_.check();
      const L1Rows::Row& near = rows_.near[r];
      const int32_t row = rows_.number(r);
      const double slack = std::max(0.0, near.slack(b)), own = 2 * double(near.cost) * slack;
      losses += double(near.cost) * slack * slack;
      duals += own;
      of_bias -= double(near.side) * own;
      const double change = (-double(near.side) * own - far * rows_.weight(row)) * data_.row_scale[row];
      if (change == 0) continue;
      for (int64_t e = X.indptr[row]; e < X.indptr[row + 1]; ++e) slope_[size_t(X.indices[e])] += change * X.data[e];
    }
    of_bias *= settings_.bias;
    largest_ = violation(bias_, of_bias);
    double norm = std::fabs(bias_), steepest = std::max(1.0, std::fabs(of_bias));
    working_.clear();
    candidates_.clear();
    for (size_t f = 0; f < slope_.size(); ++f) {
      const double steep = std::fabs(slope_[f]);
      if (w_[f] == 0 && steep <= 1) continue;
      largest_ = std::max(largest_, violation(w_[f], slope_[f]));
      norm += std::fabs(w_[f]);
      steepest = std::max(steepest, steep);
      (w_[f] != 0 ? working_ : candidates_).push_back(int32_t(f));
    }
    const double primal = norm + losses, dual = duals / steepest - losses / (steepest * steepest);
    return primal > 0 ? (primal - dual) / primal : 0;
  }

  // The features with a weight, and of the others those that promise most: at most as many again, as long as one block
  // holds them all. The one that breaks its rule most is always among them: without it the set might be at rest as it
  // is.
  void choose_working_set() {
    constexpr size_t kFewest = 16;
    const size_t block = kBlock - std::min(kBlock, working_.size());  // what one still has room for
    const size_t room = std::max(kFewest, std::min(working_.size(), block));
    if (candidates_.size() > room) {
      const auto beyond = [&](int32_t f) { return std::fabs(slope_[size_t(f)]) - 1; };
      const auto promise = [&](int32_t f) { return beyond(f) * beyond(f) / columns_.squares[size_t(f)]; };
      const auto worst = std::max_element(candidates_.begin(), candidates_.end(),
                                          [&](int32_t a, int32_t b) { return beyond(a) < beyond(b); });
      std::iter_swap(candidates_.begin(), worst);
      std::nth_element(candidates_.begin() + 1, candidates_.begin() + int64_t(room), candidates_.end(),
                       [&](int32_t a, int32_t b) {
                         const double promise_a = promise(a), promise_b = promise(b);
                         return promise_a != promise_b ? promise_a > promise_b : a < b;
                       });
      candidates_.resize(room);
    }
    working_.insert(working_.end(), candidates_.begin(), candidates_.end());
    std::sort(working_.begin(), working_.end());
  }

  // Hands the weights over and tidies up for the next label.
  Solution finish() {
    Solution out;
    for (size_t f = 0; f < w_.size(); ++f) {
      if (w_[f] != 0 && std::fabs(w_[f]) > settings_.threshold) out.entries.push_back({int32_t(f), float(w_[f])});
      w_[f] = 0;
    }
    out.bias = float(settings_.bias * bias_);
    return out;
  }

  const TrainingData& data_;
  const Columns& columns_;
  const TrainSettings& settings_;
  const Work& work_;
  L1Rows rows_;
  L1Newton newton_;
  Random random_{0};
  double bias_ = 0, largest_ = 0;  // the weight of the bias; by how much the worst weight breaks its rule
  std::vector<double> w_, slope_;
  std::vector<int32_t> working_, candidates_;
};

}  // namespace

ChunkArrays train_l1(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                     Work& work, TrainReport& report) {
  const ChunkPlan plan(data.tree, first_node, last_node);
  const int32_t first = std::max(first_node, 1);  // the root has no classifier
  std::unique_ptr<const Columns> transposed;
  work.run([&] { transposed = std::make_unique<const Columns>(data, work); });
  const Columns& columns = *transposed;
  std::vector<Solution> solutions(size_t(std::max(last_node - first, 0)));
  std::vector<std::unique_ptr<L1Solver>> solvers(size_t(std::max(1, settings.threads)));
  std::vector<TrainReport> reports(solvers.size());
  work.for_each(int64_t(solutions.size()), settings.threads, [&](int64_t index, int thread) {
    auto& solver = solvers[size_t(thread)];
    if (!solver) solver = std::make_unique<L1Solver>(data, columns, settings, work);
    solutions[size_t(index)] = solver->solve(first + int32_t(index), reports[size_t(thread)]);
    work.add(1.0 / double(solutions.size()));
  });
  for (const TrainReport& of_thread : reports) report.add(of_thread);
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
    packed.push_back(
        pack_chunk(entries, plan.node[size_t(c) + 1] - plan.node[size_t(c)], data.X.cols, settings.weight_bits));
  }
  return join_chunks({plan.node.begin() + plan.first_chunk, plan.node.begin() + plan.last_chunk + 1}, std::move(packed),
                     std::move(bias), settings.weight_bits);
}

}  // namespace longleaf

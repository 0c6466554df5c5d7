// Parting rows by a sparse hyperplane.
//
// Problem: given the sides y_i = +1 or -1 of some rows,
//   min_w  |w|_1 + sum_i C_i log(1 + exp(-y_i w.x_i)),      the bias being a feature that every row has.
// Given: rows, sides, a cost for each side. Out: the weights that are not 0, and the bias.
//
// Method: Newton steps, each the minimum of |w|_1 plus the quadratic that touches the losses, found by coordinate
// descent, then a line search along it (newGLMNET: Yuan, Ho and Lin, "An improved GLMNET for l1-regularized logistic
// regression", JMLR 13, 2012; the solver of LIBLINEAR and of the authors of FastXML). Exponentials are taken once a row
// and Newton step, not once an entry.
//
// Few features get a weight, so few are turned into columns. A feature's slope is a sum over rows of -y_i C_i x_if
// times a number between 0 and 1. Where neither the positive nor the negative terms add up to 1, it wants no weight
// whatever the others are, and is dropped for good. Of the rest, those begin that want a weight while all are 0;
// whenever these have come to rest, the slopes of the others are looked up row by row, and those that want a weight
// join.
#include "baselines/separator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "baselines/l1_step.h"

namespace longleaf {

namespace {

constexpr double kWide = 0.9;    // slopes between -1 and 1 want no weight; those near are kept in sight
constexpr double kInner = 0.1;   // what a quadratic problem may leave of the violations that it began with
constexpr int kMostPasses = 20;  // over its features
constexpr int kMostHalvings = 20;
constexpr double kFarthest = 10;  // that one step of one weight goes

double log_loss(double margin) { return std::log1p(std::exp(-std::fabs(margin))) + std::max(0.0, -margin); }

}  // namespace

SeparatorSolver::SeparatorSolver(const CsrView& X, const float* row_scale, const Work& work)
    : X_(X), row_scale_(row_scale), work_(work), pull_(size_t(X.cols)), number_(size_t(X.cols)) {}

Separator SeparatorSolver::solve(std::span<const int32_t> rows, const uint8_t* sides,
                                 const SeparatorSettings& settings) {
  rows_of_ = &rows;
  settings_ = settings;
  random_ = Random(settings.seed);
  take_rows(sides);
  take_features();
  double enough = 0;
  for (int epoch = 0; epoch < settings.max_epochs; ++epoch) {
    double off = look();
    if (epoch == 0) enough = settings.tolerance * off;
    if (off <= enough) {
      if (!add_those_that_want_a_weight(enough - off)) break;
      off = look();
    }
    solve_quadratic(kInner * off);
    if (!walk()) break;
  }
  return finish();
}

void SeparatorSolver::take_rows(const uint8_t* sides) {
  const size_t n = rows_of_->size();
  margin_.assign(n, 0.0f);
  loss_.assign(n, std::log(2.0));
  cost_.resize(n);
  rows_.resize(n);
  for (size_t i = 0; i < n; ++i) cost_[i] = sides[i] ? settings_.cost_on : -settings_.cost_off;
  bias_ = {};
}

// Finds the features that may want a weight, and makes columns of those that do at 0, where each row counts by half.
void SeparatorSolver::take_features() {
  touched_.clear();
  for (size_t i = 0; i < rows_of_->size(); ++i)
    for_each_entry(i, [&, cost = cost_[i]](int32_t f, float value) {
      Pull& pull = pull_[size_t(f)];
      if (pull.entries++ == 0) touched_.push_back(f);
      const float slope = -cost * value;
      pull.rise += std::max(slope, 0.0f);
      pull.fall += std::max(-slope, 0.0f);
    });
  wanted_.assign(1, -1);
  column_.assign(1, -1);
  columns_.clear();
  entries_.clear();
  std::vector<int32_t> first;
  for (const int32_t f : touched_) {
    const Pull pull = pull_[size_t(f)];
    number_[size_t(f)] = 0;
    if (std::max(pull.rise, pull.fall) <= 1) continue;
    number_[size_t(f)] = int32_t(wanted_.size());
    if (std::fabs(pull.rise - pull.fall) / 2 > kWide) first.push_back(int32_t(wanted_.size()));
    wanted_.push_back(f);
    column_.push_back(-1);
  }
  add_columns(first);
}

void SeparatorSolver::add_columns(const std::vector<int32_t>& added) {
  if (added.empty()) return;
  const size_t before = columns_.size();
  int64_t end = int64_t(entries_.size());
  for (const int32_t number : added) {
    const int32_t f = wanted_[size_t(number)];
    column_[size_t(number)] = int32_t(columns_.size());
    columns_.push_back({f, end, end, 0, 0, 0, 0});
    end += pull_[size_t(f)].entries;
  }
  entries_.resize(size_t(end));
  for (size_t i = 0; i < rows_of_->size(); ++i)
    for_each_entry(i, [&](int32_t f, float value) {
      const int32_t c = column_[size_t(number_[size_t(f)])];
      if (c >= int32_t(before)) entries_[size_t(columns_[size_t(c)].end++)] = {int32_t(i), value};
    });
}

// Looks at the features without a column; false if all in all they are off by no more than `enough`.
bool SeparatorSolver::add_those_that_want_a_weight(double enough) {
  slope_.assign(wanted_.size(), 0.0f);
  for (size_t i = 0; i < rows_of_->size(); ++i)
    for_each_entry(i, [&, slope = rows_[i].slope](int32_t f, float value) {
      slope_[size_t(number_[size_t(f)])] += slope * value;
    });
  std::vector<int32_t> added;
  double off = 0;
  for (size_t number = 1; number < wanted_.size(); ++number) {
    if (column_[number] >= 0) continue;
    off += violation(0, slope_[number]);
    if (std::fabs(slope_[number]) > kWide) added.push_back(int32_t(number));
  }
  if (off <= enough) return false;
  add_columns(added);
  return true;
}

// Takes slopes and curvatures at the weights; returns the sum of what the slopes are off by.
double SeparatorSolver::look() {
  bias_.slope = bias_.curvature = 0;
  bias_.target = bias_.weight;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const float cost = std::fabs(cost_[i]), m = std::copysign(1.0f, cost_[i]) * margin_[i], e = std::exp(-std::fabs(m));
    const float wrong = (m > 0 ? e : 1.0f) / (1.0f + e);  // sigmoid(-m)
    rows_[i] = {-cost_[i] * wrong, cost * wrong * (1.0f - wrong)};
    bias_.slope += double(rows_[i].slope * settings_.bias);
    bias_.curvature += double(rows_[i].curvature * settings_.bias * settings_.bias);
  }
  double off = settings_.bias == 0 ? 0.0 : violation(bias_.weight, bias_.slope);
  for (Column& column : columns_) {
    work_.check();
    column.slope = column.curvature = 0;
    column.target = column.weight;
    for (int64_t e = column.begin; e < column.end; ++e) {
      const Entry entry = entries_[size_t(e)];
      const Row row = rows_[size_t(entry.row)];
      column.slope += double(row.slope * entry.value);
      column.curvature += double(row.curvature * entry.value * entry.value);
    }
    off += violation(column.weight, column.slope);
  }
  return off;
}

double SeparatorSolver::slope_of(const Column& column) const {
  double slope = 0;
  for (int64_t e = column.begin; e < column.end; ++e)
    slope += double(rows_[size_t(entries_[size_t(e)].row)].slope * entries_[size_t(e)].value);
  return slope;
}

namespace {

// To the minimum of |w| and the quadratic along one weight, but not too far.
double short_step(double weight, double slope, double curvature) {
  const double step = newton_step(weight, slope, curvature);
  return std::fabs(step) < 1e-12 ? 0.0 : std::clamp(step, -kFarthest, kFarthest);
}

}  // namespace

void SeparatorSolver::step(Column& column, double slope) {
  const double step = short_step(column.target, slope, column.curvature);
  if (step == 0) return;
  column.target += step;
  for (int64_t e = column.begin; e < column.end; ++e) {
    Row& row = rows_[size_t(entries_[size_t(e)].row)];
    row.slope += float(step) * entries_[size_t(e)].value * row.curvature;
  }
}

void SeparatorSolver::step_bias() {
  if (settings_.bias == 0) return;
  double slope = 0;
  for (const Row& row : rows_) slope += double(row.slope);
  const double step = short_step(bias_.target, slope * settings_.bias, bias_.curvature);
  bias_.target += step;
  for (Row& row : rows_) row.slope += float(step) * settings_.bias * row.curvature;
}

// Rows' slopes follow the quadratic while it is being solved. The bias, which ties all rows together, has its step
// whenever the others have visited rows a few times over.
void SeparatorSolver::solve_quadratic(double enough) {
  working_.resize(columns_.size());
  std::iota(working_.begin(), working_.end(), 0);
  for (int pass = 0; pass < kMostPasses; ++pass) {
    random_.shuffle(working_.data(), int64_t(working_.size()));
    double off = 0;
    size_t kept = 0, visits = 0;
    for (const int32_t c : working_) {
      Column& column = columns_[size_t(c)];
      work_.check();
      const double slope = slope_of(column);
      if (column.target == 0 && std::fabs(slope) <= kWide) continue;
      working_[kept++] = c;
      off += violation(column.target, slope);
      step(column, slope);
      visits += size_t(column.end - column.begin);
      if (visits < 4 * rows_.size()) continue;
      step_bias();
      visits = 0;
    }
    step_bias();
    working_.resize(kept);
    if (off <= enough) break;
  }
}

// Goes towards the targets as far as the objective falls by a hundredth of what they promise.
bool SeparatorSolver::walk() {
  const auto weight_at = [](const Column& c, double share) {
    return share == 1 ? c.target : c.weight + share * (c.target - c.weight);
  };
  const auto norm_change = [&](const Column& c, double share) {
    return std::fabs(weight_at(c, share)) - std::fabs(c.weight);
  };
  const auto promise = [&](const Column& c) { return c.slope * (c.target - c.weight) + norm_change(c, 1); };
  margin_change_.assign(rows_.size(), float(bias_.target - bias_.weight) * settings_.bias);
  double promised = promise(bias_);
  for (const Column& column : columns_) {
    if (column.target == column.weight) continue;
    promised += promise(column);
    const float change = float(column.target - column.weight);
    for (int64_t e = column.begin; e < column.end; ++e)
      margin_change_[size_t(entries_[size_t(e)].row)] += change * entries_[size_t(e)].value;
  }
  double share = 1;
  for (int halvings = 0;; ++halvings, share /= 2) {
    if (halvings == kMostHalvings) return false;
    double change = loss_change(share) + norm_change(bias_, share);
    for (const Column& column : columns_) change += norm_change(column, share);
    if (change <= 0.01 * share * promised) break;
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    margin_[i] += float(share) * margin_change_[i];
    loss_[i] = log_loss(std::copysign(1.0, double(cost_[i])) * double(margin_[i]));
  }
  bias_.weight = weight_at(bias_, share);
  for (Column& column : columns_) column.weight = weight_at(column, share);
  return true;
}

double SeparatorSolver::loss_change(double share) const {
  double change = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const float margin = margin_[i] + float(share) * margin_change_[i];
    change +=
        std::fabs(double(cost_[i])) * (log_loss(std::copysign(1.0, double(cost_[i])) * double(margin)) - loss_[i]);
  }
  return change;
}

Separator SeparatorSolver::finish() {
  for (const int32_t f : touched_) pull_[size_t(f)] = {};
  std::sort(columns_.begin(), columns_.end(), [](const Column& a, const Column& b) { return a.feature < b.feature; });
  Separator out;
  for (const Column& column : columns_)
    if (column.weight != 0) {
      out.feature.push_back(column.feature);
      out.weight.push_back(float(column.weight));
    }
  out.bias = float(bias_.weight) * settings_.bias;
  return out;
}

Separator separate(const CsrView& X, const float* row_scale, const uint8_t* sides, const SeparatorSettings& settings,
                   const Work& work) {
  std::vector<int32_t> rows(static_cast<size_t>(X.rows));
  std::iota(rows.begin(), rows.end(), 0);
  return SeparatorSolver(X, row_scale, work).solve(rows, sides, settings);
}

}  // namespace longleaf

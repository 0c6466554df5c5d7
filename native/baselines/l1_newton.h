// Newton steps on a few weights of one label's problem.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "baselines/columns.h"
#include "baselines/l1_model.h"
#include "baselines/l1_rows.h"

namespace longleaf {

// The losses are quadratic as long as no row's slack changes its sign: the model's curvature is the sum over the rows
// with slack, and only rows that got or lost theirs change it.
class L1Newton {
 public:
  L1Newton(const Columns& columns, L1Rows& rows, double bias) : columns_(columns), rows_(rows), bias_(bias) {}

  // Takes the features to work on, and their weights after that of the bias.
  void take(std::span<const int32_t> features, const std::vector<double>& w, double bias_weight) {
    weight_.assign(1, bias_weight);
    for (int32_t f : features) weight_.push_back(w[size_t(f)]);
    gather(features);
    model_.clear(weight_.size(), bias_);
    has_slack_.assign(rows_.near.size(), 0);
    far_has_slack_ = false;
  }

  // Brings the model up to date; returns the largest violation among the features.
  double look() {
    const double b = bias_ * weight_[0];
    std::vector<double>& slope = model_.slope();
    std::fill(slope.begin(), slope.end(), 0.0);
    for (size_t r = 0; r < rows_.near.size(); ++r) {
      const L1Rows::Row& row = rows_.near[r];
      const double s = row.slack(b);
      if ((s > 0) != bool(has_slack_[r])) {
        model_.bend(entries(r), (s > 0 ? 2 : -2) * double(row.cost));
        has_slack_[r] = s > 0;
      }
      if (s <= 0) continue;
      const double own = -2 * double(row.cost) * double(row.side) * s;
      slope[0] += own;
      for (const RowEntry& entry : entries(r)) slope[size_t(entry.place)] += own * double(entry.value);
    }
    if ((1 + b > 0) != far_has_slack_) {
      far_has_slack_ = 1 + b > 0;
      model_.bend({}, (far_has_slack_ ? 2 : -2) * rows_.far_cost());
    }
    slope[0] = bias_ * (slope[0] + 2 * rows_.far_cost() * std::max(0.0, 1 + b));
    double largest = 0;
    for (size_t f = 0; f < weight_.size(); ++f) largest = std::max(largest, violation(weight_[f], slope[f]));
    return largest;
  }

  // One step; returns its share of the model's step, 0 where there is no way down.
  double step(double enough) {
    const double promise = model_.minimise(weight_, enough);
    if (!(promise < 0)) return 0;
    move();
    const double t = line_search(promise);
    for (size_t r = 0; r < move_.size(); ++r) rows_.near[r].margin += t * move_[r];
    for (size_t f = 0; f < weight_.size(); ++f) weight_[f] += t * model_.step()[f];
    return t;
  }

  const std::vector<double>& weight() const { return weight_; }  // of the bias, then of the features

 private:
  std::span<const RowEntry> entries(size_t r) const {
    return {entries_.data() + first_[r], size_t(first_[r + 1] - first_[r])};
  }

  template <class Visit>
  void each_entry(int32_t feature, Visit visit) const {
    for (int64_t e = columns_.indptr[size_t(feature)]; e < columns_.indptr[size_t(feature) + 1]; ++e)
      visit(columns_.row[size_t(e)], columns_.value[size_t(e)]);
  }

  // The features' columns turned into short rows, which then are read from end to end for every step.
  void gather(std::span<const int32_t> features) {
    for (int32_t f : features) each_entry(f, [&](int32_t row, float) { rows_.touch(row); });
    first_.assign(rows_.near.size() + 2, 0);  // counts two places on: filling then moves each to where it belongs
    for (int32_t f : features) each_entry(f, [&](int32_t row, float) { ++first_[rows_.place(row) + 2]; });
    for (size_t r = 2; r < first_.size(); ++r) first_[r] += first_[r - 1];
    entries_.resize(size_t(first_.back()));
    for (size_t p = 0; p < features.size(); ++p)
      each_entry(features[p], [&](int32_t row, float value) {
        entries_[size_t(first_[rows_.place(row) + 1]++)] = {int32_t(p + 1), value};
      });
  }

  // What the whole step does to each row's margin, and the rows that have slack at either end: no other ever does.
  void move() {
    const std::vector<double>& step = model_.step();
    const double b = bias_ * weight_[0], to_bias = bias_ * step[0];
    move_.resize(rows_.near.size());
    moving_.clear();
    for (size_t r = 0; r < move_.size(); ++r) {
      double by = 0;
      for (const RowEntry& entry : entries(r)) by += step[size_t(entry.place)] * double(entry.value);
      move_[r] = by;
      const L1Rows::Row& row = rows_.near[r];
      const double s = row.slack(b), change = -double(row.side) * (by + to_bias);
      if (std::max(s, s + change) > 0) moving_.push_back({s, change, double(row.cost)});
    }
    if (std::max(1 + b, 1 + b + to_bias) > 0) moving_.push_back({1 + b, to_bias, rows_.far_cost()});
  }

  // The whole step where the objective falls by a tenth of what it promises, else about the best share of it: rows
  // that all but touch their slack, most of them in a young problem, bend the losses where the model knows of none.
  double line_search(double promise) const {
    if (change() <= 0.1 * promise) return 1;
    double low = 0, high = 1, at_low = promise, at_high = steepness(1);
    for (int tries = 0; tries < kMostTries; ++tries) {
      const double width = high - low;
      double t = low + width / 2;
      if (tries % 2 == 0 && at_high > at_low)
        t = std::clamp(low - at_low * width / (at_high - at_low), low + 0.01 * width, high - 0.01 * width);
      const double here = steepness(t);
      if (std::fabs(here) <= -0.1 * promise) return t;
      (here < 0 ? low : high) = t;
      (here < 0 ? at_low : at_high) = here;
    }
    return low;  // the objective falls all the way there
  }
  static constexpr int kMostTries = 20;

  // By how much the objective changes with the whole step.
  double change() const {
    double sum = 0;
    for (size_t f = 0; f < weight_.size(); ++f) sum += std::fabs(weight_[f] + model_.step()[f]) - std::fabs(weight_[f]);
    for (const Moving& row : moving_) {
      const double before = std::max(0.0, row.slack), after = std::max(0.0, row.slack + row.change);
      sum += row.cost * (after * after - before * before);
    }
    return sum;
  }

  // How fast the objective changes after such a share of the step.
  double steepness(double t) const {
    double sum = 0;
    for (size_t f = 0; f < weight_.size(); ++f) {
      const double d = model_.step()[f], at = weight_[f] + t * d;
      sum += at > 0 ? d : at < 0 ? -d : -std::fabs(d);
    }
    for (const Moving& row : moving_) sum += 2 * row.cost * row.change * std::max(0.0, row.slack + t * row.change);
    return sum;
  }

  struct Moving {
    double slack, change, cost;
  };

  const Columns& columns_;
  L1Rows& rows_;
  const double bias_;
  L1Model model_;
  std::vector<double> weight_;
  std::vector<int64_t> first_;     // per near row, where its entries begin; then where they end
  std::vector<RowEntry> entries_;  // of the near rows, one after another, in order of places
  std::vector<uint8_t> has_slack_;
  bool far_has_slack_ = false;
  std::vector<double> move_;
  std::vector<Moving> moving_;
};

}  // namespace longleaf

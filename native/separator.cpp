// Parting rows by a sparse hyperplane.
//
// Problem: given the sides y_i = +1 or -1 of some rows,
//   min_w  |w|_1 + sum_i C_i log(1 + exp(-y_i w.x_i)),      the bias being a feature that every row has.
// Given: rows, sides, a cost for each side. Out: the weights that are not 0, and the bias.
//
// Method: coordinate descent, each step a Newton step with a line search (Yuan, Chang, Hsieh and Lin, "A comparison of
// optimization methods and software for large-scale l1-regularized linear classification", JMLR 11, 2010). Features that
// want no weight are left out until the others have come to rest.
#include <algorithm>
#include <cmath>

#include "core.h"
#include "l1_step.h"
#include "random.h"

namespace longleaf {

namespace {

class SeparatorSolver {
 public:
  SeparatorSolver(const CsrView& X, const uint8_t* sides, const SeparatorSettings& settings)
      : settings_(settings), random_(settings.seed) {
    take_rows(X, sides);
    take_columns(X);
  }

  Separator solve() {
    std::vector<int32_t> all(weight_.size());
    for (size_t f = 0; f < all.size(); ++f) all[f] = int32_t(f);
    working_ = all;
    const double begun = run_epoch();
    const double enough = settings_.tolerance * begun;
    for (int epoch = 1; epoch < settings_.max_epochs; ++epoch) {
      const bool whole = working_.size() == all.size();
      if (run_epoch() > enough) continue;
      if (whole) break;
      working_ = all;
    }
    return finish();
  }

 private:
  // What a step reads of a row, side by side.
  struct Row {
    float margin, side, cost;
    float slope, curvature;  // of its loss, which counts by its cost
  };
  struct Entry {
    int32_t row;
    float value;
  };

  void take_rows(const CsrView& X, const uint8_t* sides) {
    rows_.resize(size_t(X.rows));
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].margin = 0;
      rows_[i].side = sides[i] ? 1.0f : -1.0f;
      rows_[i].cost = sides[i] ? settings_.cost_on : settings_.cost_off;
      refresh(rows_[i]);
    }
  }

  // Renumbers the features that occur, and turns the rows into columns; the bias is the last one.
  void take_columns(const CsrView& X) {
    std::vector<int32_t> number(size_t(X.cols), -1);
    const int64_t entries = X.indptr[X.rows];
    for (int64_t e = 0; e < entries; ++e) number[size_t(X.indices[e])] = 0;
    for (size_t f = 0; f < number.size(); ++f)
      if (number[f] == 0) {
        number[f] = int32_t(feature_.size());
        feature_.push_back(int32_t(f));
      }
    const size_t columns = feature_.size() + (settings_.bias != 0);
    indptr_.assign(columns + 1, 0);
    for (int64_t e = 0; e < entries; ++e) ++indptr_[size_t(number[size_t(X.indices[e])]) + 1];
    if (columns > feature_.size()) indptr_[columns] = X.rows;
    for (size_t f = 0; f < columns; ++f) indptr_[f + 1] += indptr_[f];
    entries_.resize(size_t(indptr_.back()));
    std::vector<int64_t> next(indptr_.begin(), indptr_.end() - 1);
    for (int64_t i = 0; i < X.rows; ++i) {
      for (int64_t e = X.indptr[i]; e < X.indptr[i + 1]; ++e)
        entries_[size_t(next[size_t(number[size_t(X.indices[e])])]++)] = {int32_t(i), X.data[e]};
      if (columns > feature_.size()) entries_[size_t(next[columns - 1]++)] = {int32_t(i), settings_.bias};
    }
    weight_.assign(columns, 0.0);
  }

  static void refresh(Row& row) {
    const float m = row.side * row.margin, e = std::exp(-std::fabs(m));
    const float wrong = (m > 0 ? e : 1.0f) / (1.0f + e);  // sigmoid(-m)
    row.slope = -row.cost * row.side * wrong;
    row.curvature = row.cost * wrong * (1.0f - wrong);
  }

  static double loss_change(const Row& row, float margin_change) {
    const auto loss = [](double m) { return std::log1p(std::exp(-std::fabs(m))) + std::max(0.0, -m); };
    return row.cost * (loss(row.side * (row.margin + margin_change)) - loss(row.side * row.margin));
  }

  // One step for each feature of the working set; gives the sum of what the slopes were off by. The bias, which ties all
  // rows together, follows whenever as many rows were visited as it has.
  double run_epoch() {
    random_.shuffle(working_.data(), int64_t(working_.size()));
    double off = 0, of_bias = 0;
    size_t kept = 0, visits = 0;
    for (int32_t f : working_) {
      const double slope = step(size_t(f), off);
      if (weight_[size_t(f)] != 0 || std::fabs(slope) > kWide) working_[kept++] = f;
      visits += size_t(indptr_[size_t(f) + 1] - indptr_[size_t(f)]);
      if (settings_.bias == 0 || visits < rows_.size()) continue;
      step(weight_.size() - 1, of_bias);
      visits = 0;
    }
    working_.resize(kept);
    return off;
  }
  static constexpr double kWide = 0.9;  // slopes between -1 and 1 want no weight

  double step(size_t f, double& off) {
    const int64_t begin = indptr_[f], end = indptr_[f + 1];
    double slope = 0, curvature = 0;
    for (int64_t e = begin; e < end; ++e) {
      const Entry& entry = entries_[size_t(e)];
      const Row& row = rows_[size_t(entry.row)];
      slope += double(row.slope * entry.value);
      curvature += double(row.curvature * entry.value * entry.value);
    }
    off += violation(weight_[f], slope);
    const double change = line_search(weight_[f], slope, curvature, [&](double d) {
      double sum = 0;
      for (int64_t e = begin; e < end; ++e)
        sum += loss_change(rows_[size_t(entries_[size_t(e)].row)], float(d) * entries_[size_t(e)].value);
      return sum;
    });
    if (change == 0) return slope;
    weight_[f] += change;
    for (int64_t e = begin; e < end; ++e) {
      Row& row = rows_[size_t(entries_[size_t(e)].row)];
      row.margin += float(change) * entries_[size_t(e)].value;
      refresh(row);
    }
    return slope;
  }

  Separator finish() const {
    Separator out;
    for (size_t f = 0; f < feature_.size(); ++f)
      if (weight_[f] != 0) {
        out.feature.push_back(feature_[f]);
        out.weight.push_back(float(weight_[f]));
      }
    if (weight_.size() > feature_.size()) out.bias = float(weight_.back()) * settings_.bias;
    return out;
  }

  const SeparatorSettings settings_;
  Random random_;
  std::vector<Row> rows_;
  std::vector<int32_t> feature_;  // by column, but for the bias
  std::vector<int64_t> indptr_;
  std::vector<Entry> entries_;
  std::vector<double> weight_;
  std::vector<int32_t> working_;
};

}  // namespace

Separator separate(const CsrView& X, const uint8_t* sides, const SeparatorSettings& settings) {
  return SeparatorSolver(X, sides, settings).solve();
}

}  // namespace longleaf

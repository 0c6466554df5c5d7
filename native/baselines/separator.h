// The solver of separator.cpp, kept from node to node: what it does for a node goes by the node's own rows, never by
// the number of all features.
#pragma once

#include <span>
#include <vector>

#include "base/random.h"
#include "baselines/baselines.h"

namespace longleaf {

class SeparatorSolver {
 public:
  SeparatorSolver(const CsrView& X, const float* row_scale, const Work& work);

  // sides: per element of `rows`, 0 or 1.
  Separator solve(std::span<const int32_t> rows, const uint8_t* sides, const SeparatorSettings& settings);

 private:
  // What a feature's slope lies between, whatever the weights, and its entries: it is above -fall and below rise.
  struct Pull {
    float rise = 0, fall = 0;
    int32_t entries = 0;
  };
  struct Entry {
    int32_t row;
    float value;
  };
  // Of the loss of a row as a function of its margin, which counts by its cost.
  struct Row {
    float slope, curvature;
  };
  struct Column {
    int32_t feature;
    int64_t begin, end;
    double weight, target;    // target: where the quadratic problem has it
    double slope, curvature;  // at the weights, not at the targets
  };

  void take_rows(const uint8_t* sides);
  void take_features();
  void add_columns(const std::vector<int32_t>& added);
  bool add_those_that_want_a_weight(double enough);
  double look();
  double slope_of(const Column& column) const;
  void step(Column& column, double slope);
  void step_bias();
  void solve_quadratic(double enough);
  bool walk();
  double loss_change(double share) const;
  Separator finish();

  template <class Function>
  void for_each_entry(size_t i, Function function) const {
    work_.check();
    const int64_t row = (*rows_of_)[i];
    for (int64_t e = X_.indptr[row]; e < X_.indptr[row + 1]; ++e) function(X_.indices[e], X_.data[e] * row_scale_[row]);
  }

  const CsrView X_;
  const float* const row_scale_;
  const Work& work_;
  const std::span<const int32_t>* rows_of_ = nullptr;
  SeparatorSettings settings_;
  Random random_{0};

  std::vector<Row> rows_;
  std::vector<float> margin_, margin_change_, cost_;  // cost_: below 0 on the off side
  std::vector<double> loss_;

  std::vector<Pull> pull_;  // by feature, all 0 between nodes
  std::vector<int32_t>
      number_;  // by feature: which of wanted_ it is; place 0 stands for those that never want a weight
  std::vector<int32_t> touched_;  // features of the node's rows
  std::vector<int32_t> wanted_;   // features that may want a weight
  std::vector<int32_t> column_;   // by number: its column, or -1
  std::vector<float> slope_;      // by number

  Column bias_{};
  std::vector<Column> columns_;
  std::vector<Entry> entries_;
  std::vector<int32_t> working_;
};

}  // namespace longleaf

// The rows of one label's problem.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "baselines/baselines.h"

namespace longleaf {

// Near rows are those that any weight has touched, and the positive ones. All others, the far rows, have the margin of
// the bias and count as one.
class L1Rows {
 public:
  struct Row {
    double margin;  // without the bias
    float cost, side;

    double slack(double bias) const { return 1 - double(side) * (margin + bias); }
  };

  explicit L1Rows(const TrainingData& data) : data_(data), place_(size_t(data.X.rows), -1) {
    for (int64_t i = 0; i < data.X.rows; ++i) all_weight_ += weight(i);
  }

  void start(int32_t node) {
    for (int32_t row : number_) place_[size_t(row)] = -1;
    number_.clear();
    near.clear();
    c_negative_ = data_.c_negative[node];
    far_weight_ = all_weight_;
    for (int64_t j = data_.rows.indptr[node]; j < data_.rows.indptr[node + 1]; ++j) {
      const int32_t row = data_.rows.rows[j];
      const double factor = data_.rows.factor ? data_.rows.factor[j] : 1.0;
      Row& positive = near[touch(row)];
      positive.cost = float(data_.c_positive[node] * factor * weight(row));
      positive.side = 1;
    }
  }

  // Makes a row near; returns its place among those.
  size_t touch(int32_t row) {
    int32_t& place = place_[size_t(row)];
    if (place < 0) {
      place = int32_t(near.size());
      number_.push_back(row);
      near.push_back({0.0, float(c_negative_ * weight(row)), -1.0f});
      far_weight_ = std::max(0.0, far_weight_ - weight(row));
    }
    return size_t(place);
  }

  size_t place(int32_t row) const { return size_t(place_[size_t(row)]); }
  int32_t number(size_t place) const { return number_[place]; }
  double far_cost() const { return c_negative_ * far_weight_; }
  double c_negative() const { return c_negative_; }
  double weight(int64_t row) const { return data_.row_weight ? data_.row_weight[row] : 1.0; }

  std::vector<Row> near;

 private:
  const TrainingData& data_;
  double all_weight_ = 0, far_weight_ = 0, c_negative_ = 0;
  std::vector<int32_t> place_;   // per row, where it is among the near ones; -1 for far rows
  std::vector<int32_t> number_;  // per near row, its number in X
};

}  // namespace longleaf

// A quadratic model of the losses around some weights, and the step to the minimum of |w|_1 and the model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "baselines/l1_step.h"

namespace longleaf {

// What a row has of one weight.
struct RowEntry {
  int32_t place;  // of the weight among those of the model
  float value;
};

// The weights have places from 0; at place 0 is the bias, of which every row has the same.
class L1Model {
 public:
  // A model of so many weights with no curvature yet.
  void clear(size_t size, double bias) {
    size_ = size;
    bias_ = bias;
    curvature_.assign(size * size, 0.0);
    slope_.assign(size, 0.0);
    step_.assign(size, 0.0);
  }

  std::vector<double>& slope() { return slope_; }
  const std::vector<double>& step() const { return step_; }

  // A row's share of the curvature. Only what lies below the diagonal is kept up to date.
  void bend(std::span<const RowEntry> entries, double by) {
    curvature_[0] += by * bias_ * bias_;
    for (size_t a = 0; a < entries.size(); ++a) {
      double* line = &curvature_[size_t(entries[a].place) * size_];
      const double share = by * double(entries[a].value);
      line[0] += share * bias_;
      for (size_t b = 0; b <= a; ++b) line[entries[b].place] += share * double(entries[b].value);
    }
  }

  // Coordinate descent from no step, until no slope is off by more than `enough`. Returns by how much the objective
  // would fall if the losses were as steep all the way: slope.step + |w + step|_1 - |w|_1.
  double minimise(const std::vector<double>& weight, double enough) {
    mirror();
    std::fill(step_.begin(), step_.end(), 0.0);
    now_ = slope_;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      double largest = 0;
      for (size_t f = 0; f < size_; ++f) {
        const double at = weight[f] + step_[f], off = violation(at, now_[f]);
        if (off == 0) continue;
        const double* line = &curvature_[f * size_];
        const double by = newton_step(at, now_[f], line[f]);
        largest = std::max(largest, off);
        step_[f] = at + by == 0 ? -weight[f] : step_[f] + by;  // no weight is exactly 0, not nearly
        for (size_t g = 0; g < size_; ++g) now_[g] += by * line[g];
      }
      if (largest <= enough) break;
    }
    double promise = 0;
    for (size_t f = 0; f < size_; ++f)
      promise += slope_[f] * step_[f] + std::fabs(weight[f] + step_[f]) - std::fabs(weight[f]);
    return promise;
  }

 private:
  static constexpr int kMostPasses = 50;  // a step need not be exact: the next model starts where it ended

  void mirror() {
    for (size_t a = 0; a < size_; ++a)
      for (size_t b = 0; b < a; ++b) curvature_[b * size_ + a] = curvature_[a * size_ + b];
  }

  size_t size_ = 0;
  double bias_ = 0;
  std::vector<double> curvature_, slope_, step_, now_;
};

}  // namespace longleaf

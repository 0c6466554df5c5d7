// Maps from probabilities to scores: what the scores below a node can be where each label has a map of its own.
//
// A label's map is f(P) = sigmoid(slope * clip(logit(P), -L, L) + offset), and its score is gain * f(P). Scores and
// probabilities are logs, as everywhere in the search, and L is the log odds of 1 - 1e-6.
//
// Bounds: log f is concave in the log odds, so that between two knots it exceeds its chord by at most an eighth of the
// squared distance times its strongest curvature there. A row of bounds holds, per knot, the best of all labels below a
// node with that excess added; a line from knot to knot is then a bound for each of them, and it never falls.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace longleaf {

inline constexpr float kNever = -std::numeric_limits<float>::infinity();

inline constexpr double kMostLogOdds = 13.815509557963773;  // L
inline constexpr int kKnots = 49;                           // from -L to L
inline constexpr float kMostSlope = 1000, kMostOffset = 1000;

// One label's map; the slope is at least 0.
struct LabelMap {
  float slope, offset;

  // log(gain * f(P)). An exact 0 counts as the least probability.
  float score(float log_gain, float log_probability) const;
  // Above all log probabilities whose score lies below `level`, whatever the rounding.
  float most_log_probability(float log_gain, float level) const;
  // What the label adds to a row of bounds.
  void raise_bounds(float log_gain, float* bounds) const;
};

// The map of every label, and a row of bounds for each node that has children, made by Forest::score_bounds.
struct ScoreMap {
  const float* slope = nullptr;  // per label; null for none, where f(P) = P
  const float* offset = nullptr;
  const float* bounds = nullptr;

  explicit operator bool() const { return slope != nullptr; }
  LabelMap of(int32_t label) const { return {slope[label], offset[label]}; }
};

// What no score of a row of bounds exceeds where the log probability is at most the given one.
float score_bound(const float* bounds, float log_probability);
// A log probability below which score_bound() lies below `level`.
float least_log_probability(const float* bounds, float level);

// The maps of single labels in single rows, which replace those of the labels; labels ascend within a row.
struct RowOverrides {
  const int32_t* label = nullptr;
  const float* slope = nullptr;
  const float* offset = nullptr;
  int64_t size = 0;

  LabelMap at(int64_t i) const { return {slope[i], offset[i]}; }
  // Its place, or -1.
  int64_t find(int32_t wanted) const {
    const int32_t* place = std::lower_bound(label, label + size, wanted);
    return place != label + size && *place == wanted ? place - label : -1;
  }
};
struct Overrides {
  const int64_t* indptr = nullptr;  // null for none
  const int32_t* label = nullptr;
  const float* slope = nullptr;
  const float* offset = nullptr;

  RowOverrides of(int64_t row) const {
    if (indptr == nullptr) return {};
    const int64_t begin = indptr[row];
    return {label + begin, slope + begin, offset + begin, indptr[row + 1] - begin};
  }
};

// More than two ways to compute the same log score or log probability can differ by.
inline float rounding(float log_score) { return 1e-4f + 1e-6f * std::fabs(log_score); }
inline float rounding_of_probability(float log_probability) { return 1e-6f + 1e-6f * std::fabs(log_probability); }

}  // namespace longleaf

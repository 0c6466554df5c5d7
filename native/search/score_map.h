// Maps from probabilities to scores: what the scores below a node can be where each label has a map of its own.
//
// With the trees' probability P of a label and the margin s of its refined classifier, its score is gain * f, where
//
//   log odds of f = result(slope * evidence(log odds of P) + offset - refined * max(0, 1 - s)^2).
//
// `evidence` and `result` are curves that all labels share, piecewise linear and never falling; log odds of P are cut
// off at -L and L, the log odds of 1 - 1e-6. Scores and probabilities are logs, as everywhere in the search. A label's
// refined classifier can only lower its score, so what a label scores without it bounds what it scores.
//
// Bounds: between two breaks of `result`, log f is concave in what `evidence` returns, so that between two knots it
// exceeds its chord by at most an eighth of the squared distance times its strongest curvature there. A row of bounds
// holds, per knot, the best of all labels below a node with that excess added; a line from knot to knot is then a bound
// for each of them, and it never falls.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace longleaf {

inline constexpr float kNever = -std::numeric_limits<float>::infinity();

inline constexpr double kMostLogOdds = 13.815509557963773;  // L
inline constexpr int kKnots = 49;
inline constexpr float kMostSlope = 1000, kMostOffset = 1000;

// A piecewise linear function that never falls, through up to kMostBreaks points; beyond the first and the last it goes
// on as the pieces there do.
inline constexpr int kMostBreaks = 24;
struct Curve {
  std::array<double, kMostBreaks> x{0, 1}, y{0, 1};
  int size = 2;

  double at(double place) const;
  // The largest place where it is at most `value`; infinity if there is none.
  double most_at(double value) const;
  // The least place where it is at least `value`; infinity if there is none.
  double least_at(double value) const;
};

// What the maps of all labels share.
struct ScoreShape {
  Curve evidence, result;
  double first_knot, knot_step;  // of bounds: evenly spaced in what `evidence` returns

  ScoreShape(const Curve& of_evidence, const Curve& of_result)
      : evidence(of_evidence),
        result(of_result),
        first_knot(evidence.at(-kMostLogOdds)),
        knot_step((evidence.at(kMostLogOdds) - first_knot) / (kKnots - 1)) {}
};

// One label's map; the slope is at least 0.
struct LabelMap {
  float slope, offset;
  float refined;  // what log h = -max(0, 1 - s)^2 counts, at least 0
  const ScoreShape* shape;

  // log(gain * f). An exact 0 counts as the least probability; log_h at 0 bounds all others.
  float score(float log_gain, float log_probability, float log_h = 0.0f) const;
  // Above all log probabilities whose score lies below `level` if log h is 0, whatever the rounding.
  float most_log_probability(float log_gain, float level) const;
  // What the label adds to a row of bounds.
  void raise_bounds(float log_gain, float* bounds) const;
};

// The map of every label, and a row of bounds for each node that has children, made by Forest::score_bounds.
struct ScoreMap {
  const float* slope = nullptr;  // per label; null for none, where f(P) = P
  const float* offset = nullptr;
  float refined = 0;
  const ScoreShape* shape = nullptr;
  const float* bounds = nullptr;

  explicit operator bool() const { return slope != nullptr; }
  LabelMap of(int32_t label) const { return {slope[label], offset[label], refined, shape}; }
};

// What no score of a row of bounds exceeds where the log probability is at most the given one.
float score_bound(const ScoreShape& shape, const float* bounds, float log_probability);
// A log probability below which score_bound() lies below `level`.
float least_log_probability(const ScoreShape& shape, const float* bounds, float level);

// The maps of single labels in single rows, which replace those of the labels; labels ascend within a row.
struct RowOverrides {
  const int32_t* label = nullptr;
  const float* slope = nullptr;
  const float* offset = nullptr;
  int64_t size = 0;
  float refined = 0;
  const ScoreShape* shape = nullptr;

  LabelMap at(int64_t i) const { return {slope[i], offset[i], refined, shape}; }
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
  float refined = 0;
  const ScoreShape* shape = nullptr;

  RowOverrides of(int64_t row) const {
    if (indptr == nullptr) return {};
    const int64_t begin = indptr[row];
    return {label + begin, slope + begin, offset + begin, indptr[row + 1] - begin, refined, shape};
  }
};

// More than two ways to compute the same log score or log probability can differ by.
inline float rounding(float log_score) { return 1e-4f + 1e-6f * std::fabs(log_score); }
inline float rounding_of_probability(float log_probability) { return 1e-6f + 1e-6f * std::fabs(log_probability); }

}  // namespace longleaf

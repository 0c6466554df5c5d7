// Utilities: a label is worth a * probability + b, where labels that are not allowed have b = -inf.
//
// Keys are then utilities themselves, not logs. A label's utility is at most a line in its probability, max(a, 0) * f +
// b, and what a node's labels can reach at most is the upper envelope of their lines. Its bound is a row of values at
// the knots of score_map.h. With F, at each knot, at least the largest f whose log odds lie there, the values are those
// of the envelope at F; a convex function lies below its chords, so that a line from knot to knot is a bound again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "search/score_map.h"

namespace longleaf {

struct Utility {
  const float* a = nullptr;       // per label; null where labels are worth gain * probability
  const float* b = nullptr;       // per label
  const float* bounds = nullptr;  // a row per node that has children; of refined labels one row for all labels
  const ScoreShape* shape = nullptr;
  std::span<const int32_t> rest;   // allowed labels that trees may say nothing of, the best b first, then the lowest
  float most_b = kNever;           // of all labels
  const int32_t* group = nullptr;  // per label, -1 for none; null where there are no quotas
  const int32_t* quota = nullptr;  // per group, how many of its labels a row may have

  explicit operator bool() const { return a != nullptr; }

  float key(int32_t label, float log_probability) const {
    if (b[label] == kNever || std::isnan(log_probability)) return kNever;
    return float(double(a[label]) * std::exp(double(log_probability)) + double(b[label]));
  }
  // At least the utility of a label whose probability is at most the given one, however it was computed.
  float most_key(int32_t label, float log_probability) const { return most(label, std::exp(double(log_probability))); }
  float most(int32_t label, double probability) const {
    if (b[label] == kNever || std::isnan(probability)) return kNever;
    const double gained = std::max(double(a[label]), 0.0) * probability, fixed = double(b[label]);
    return float(gained + fixed + kRounding * (gained + std::fabs(fixed)));
  }

  // At most the utility of a label whose probability is at least the given one.
  float least_key(int32_t label, float log_probability) const {
    if (b[label] == kNever || std::isnan(log_probability)) return kNever;
    const double gained = std::max(double(a[label]), 0.0) * std::exp(double(log_probability));
    const double lost = std::max(-double(a[label]), 0.0), fixed = double(b[label]);
    return float(gained - lost + fixed - kRounding * (gained + lost + std::fabs(fixed)));
  }
  // Above the logs of all probabilities that make a utility below `level`; 0 where they can be any.
  float most_log_probability(int32_t label, float level) const {
    const double gain = double(a[label]), missing = double(level) - double(b[label]);
    if (level == kNever || b[label] == kNever || !(gain > 0)) return 0.0f;
    const double most = (missing + kRounding * (std::fabs(double(level)) + std::fabs(double(b[label])))) / gain;
    if (!(most > 0)) return kNever;
    return std::min(0.0f, float(std::log(most)) + 1e-5f);
  }

  static constexpr double kRounding = 4e-6;  // more than 32-bit arithmetic loses on the way
};

// A utility with arrays of its own.
struct UtilityTable {
  std::vector<float> a, b, bounds;
  std::vector<int32_t> rest, group, quota;
  ScoreShape shape{Curve{}, Curve{}};
  float most_b = kNever;

  Utility view() const {
    return {a.data(),
            b.data(),
            bounds.data(),
            &shape,
            rest,
            most_b,
            group.empty() ? nullptr : group.data(),
            quota.empty() ? nullptr : quota.data()};
  }
};

}  // namespace longleaf

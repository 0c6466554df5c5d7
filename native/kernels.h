// The inner loops that are worth vector instructions, as a table of functions: one table per instruction set.
#pragma once

#include <cstdint>

namespace longleaf {

// Classifiers trained together: two vector registers, a whole cache line of weights per feature. Eight measured slower.
inline constexpr int kLanes = 16;

// One row of a training problem, features renumbered to the problem's own.
struct LocalRow {
  const uint32_t* feature;
  const float* value;
  int64_t size;
};

// What coordinate descent keeps for one row and kLanes classifiers, and what it reads.
struct LaneStep {
  const float* margin_wx;  // w.x per lane, without the side
  const float* side;       // +1, -1, or 0 where the row takes no part in that lane
  const float* c_positive; // cost per lane of an error on a positive row
  const float* c_negative;
  float row_weight;
  float q;            // x.x, the bias included
  float* dual;        // state per lane: the margin implied by alpha (logistic) or alpha itself (squared hinge)
  float* delta;       // out: how far w moves along x, per lane
  double* gap;        // accumulated duality gap per lane
  double* loss;       // accumulated primal loss per lane
  const float* settled_gap;  // a row whose gap lies below this in every lane is settled and not moved
};

struct Kernels {
  const char* name;
  // margin[lane] = sum over the row's features of value * weight[feature][lane]; 8-aligned rows of kLanes floats
  void (*lane_margins)(const LocalRow& row, const float* weights, float* margin);
  // weight[feature][lane] += value * delta[lane]
  void (*lane_update)(const LocalRow& row, const float* delta, float* weights);
  // one coordinate-descent step in all lanes; false when the row is settled (then delta is not set)
  bool (*logistic_step)(const LaneStep& step);
  bool (*squared_hinge_step)(const LaneStep& step);
  // margins to log probabilities, in place
  void (*logistic_log_probability)(float* margin, int64_t size);
  void (*squared_hinge_log_probability)(float* margin, int64_t size);
};

const Kernels& kernels();  // the best table that this machine can run

}  // namespace longleaf

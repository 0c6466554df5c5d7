// One weight of an l1-regularised problem, min |w| + losses(w): how far it is from its place, and a step towards it.
#pragma once

#include <algorithm>
#include <cmath>

namespace longleaf {

// How far a slope is from where it must be at the minimum: -1 or 1 with a weight above or below 0, between without one.
inline double violation(double weight, double slope) {
  if (weight > 0) return std::fabs(slope + 1);
  if (weight < 0) return std::fabs(slope - 1);
  return std::max(0.0, std::fabs(slope) - 1);
}

// The Newton step for one weight, halved until the objective falls by a hundredth of what the step promises.
template <class LossChange>
double line_search(double weight, double slope, double curvature, LossChange change_of) {
  curvature = std::max(curvature, 1e-12);
  double step = -weight;
  if (slope + 1 <= curvature * weight)
    step = -(slope + 1) / curvature;
  else if (slope - 1 >= curvature * weight)
    step = -(slope - 1) / curvature;
  if (std::fabs(step) < 1e-12) return 0;
  for (int halvings = 0; halvings < 40; ++halvings, step /= 2) {
    const double norm_change = std::fabs(weight + step) - std::fabs(weight);
    if (norm_change + change_of(step) <= 0.01 * (slope * step + norm_change)) return step;
  }
  return 0;
}

}  // namespace longleaf

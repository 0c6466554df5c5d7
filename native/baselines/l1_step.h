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

// Where the slope would be right if the curvature stayed as it is: the step that leads there.
inline double newton_step(double weight, double slope, double curvature) {
  curvature = std::max(curvature, 1e-12);
  if (slope + 1 <= curvature * weight) return -(slope + 1) / curvature;
  if (slope - 1 >= curvature * weight) return -(slope - 1) / curvature;
  return -weight;
}

}  // namespace longleaf

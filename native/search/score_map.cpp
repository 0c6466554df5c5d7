#include "search/score_map.h"

#include <array>

namespace longleaf {

namespace {

constexpr double kStep = 2 * kMostLogOdds / (kKnots - 1);
// Bounds are multiples of 1 / kGrain and places between knots of 1 / kPlaces, so that lines between them are exact in a
// double: a bound then never falls towards the root, which beams rely on.
constexpr double kGrain = 1024, kPlaces = 65536;

double log_sigmoid(double z) { return z >= 0 ? -std::log1p(std::exp(-z)) : z - std::log1p(std::exp(z)); }

double clipped_log_odds(float log_probability) {
  const double l = std::min(0.0, double(log_probability));
  return std::clamp(l - std::log(-std::expm1(l)), -kMostLogOdds, kMostLogOdds);
}

float log_probability_of(double log_odds) { return float(log_sigmoid(log_odds)); }

}  // namespace

float LabelMap::score(float log_gain, float log_probability) const {
  const double odds = log_probability == kNever ? -kMostLogOdds : clipped_log_odds(log_probability);
  return float(double(log_gain) + log_sigmoid(double(slope) * odds + double(offset)));
}

float LabelMap::most_log_probability(float log_gain, float level) const {
  if (level == kNever || slope == 0) return 0.0f;
  const double target = double(level) + rounding(level) - double(log_gain);
  if (!(target < log_sigmoid(double(slope) * kMostLogOdds + double(offset)))) return 0.0f;
  const double z = target - std::log(-std::expm1(target));
  const double error = 1e-12 * (1 + std::fabs(z) + std::fabs(double(offset)));
  const double odds = std::clamp((z - double(offset) + error) / double(slope), -kMostLogOdds, kMostLogOdds);
  if (odds == kMostLogOdds) return 0.0f;  // all above score the same
  const float most = log_probability_of(odds);
  return std::min(0.0f, most + rounding_of_probability(most));
}

void LabelMap::raise_bounds(float log_gain, float* bounds) const {
  std::array<double, kKnots> score, bend;
  for (int i = 0; i < kKnots; ++i) {
    const double z = double(slope) * (-kMostLogOdds + i * kStep) + double(offset);
    const double small = std::exp(-std::fabs(z));
    score[i] = double(log_gain) + std::min(z, 0.0) - std::log1p(small);
    bend[i] = small / ((1 + small) * (1 + small));
  }
  double before = 0, most = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < kKnots; ++i) {
    double excess = 0;  // over the chord to the next knot
    if (i + 1 < kKnots) {
      const double z = double(slope) * (-kMostLogOdds + i * kStep) + double(offset), next = z + double(slope) * kStep;
      const double strongest = z < 0 && next > 0 ? 0.25 : std::max(bend[i], bend[i + 1]);
      const double moved = double(slope) * kStep;
      excess = std::min(moved * moved * strongest / 8, score[i + 1] - score[i]);
    }
    most = std::max(most, score[i] + std::max(before, excess));
    bounds[i] = std::max(bounds[i], float((std::ceil(most * kGrain) + 1) / kGrain));
    before = excess;
  }
}

float score_bound(const float* bounds, float log_probability) {
  const double place = (clipped_log_odds(log_probability) + kMostLogOdds) / kStep;
  const double higher = std::min(std::ceil(place * kPlaces) / kPlaces, double(kKnots - 1));
  const int knot = std::min(int(higher), kKnots - 2);
  if (bounds[knot] == kNever) return kNever;
  const double low = bounds[knot], high = bounds[knot + 1];
  return float(low + (high - low) * (higher - knot));
}

float least_log_probability(const float* bounds, float level) {
  if (level == kNever) return kNever;
  level -= rounding(level);
  if (bounds[0] >= level) return kNever;
  const float* reached = std::lower_bound(bounds, bounds + kKnots, level);
  if (reached == bounds + kKnots) return std::numeric_limits<float>::infinity();
  const double low = reached[-1], high = reached[0];
  const double place = double(reached - bounds) - (high - level) / (high - low) - 1e-4;  // more than 1 / kPlaces
  const float least = log_probability_of(place * kStep - kMostLogOdds);
  return least - rounding_of_probability(least);
}

}  // namespace longleaf

#include "search/score_map.h"

namespace longleaf {

namespace {

// Bounds are multiples of 1 / kGrain and places between knots of 1 / kPlaces, so that lines between them are exact in a
// double: a bound then never falls towards the root, which beams rely on.
constexpr double kGrain = 1024, kPlaces = 65536;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double log_sigmoid(double z) { return z >= 0 ? -std::log1p(std::exp(-z)) : z - std::log1p(std::exp(z)); }

// The strongest curvature of log_sigmoid between two places.
double strongest_bend(double from, double to) {
  if (from < 0 && to > 0) return 0.25;
  const double small = std::exp(-std::min(std::fabs(from), std::fabs(to)));
  return small / ((1 + small) * (1 + small));
}

double clipped_log_odds(float log_probability) {
  const double l = std::min(0.0, double(log_probability));
  return std::clamp(l - std::log(-std::expm1(l)), -kMostLogOdds, kMostLogOdds);
}

float log_probability_of(double log_odds) { return float(log_sigmoid(log_odds)); }

}  // namespace

double Curve::at(double place) const {
  int piece = 0;
  while (piece + 2 < size && place > x[piece + 1]) ++piece;
  return y[piece] + (place - x[piece]) * ((y[piece + 1] - y[piece]) / (x[piece + 1] - x[piece]));
}

double Curve::most_at(double value) const {
  int piece = 0;
  while (piece + 2 < size && value >= y[piece + 1]) ++piece;
  if (y[piece + 1] == y[piece]) return value >= y[piece] ? kInfinity : x[piece];
  return x[piece] + (value - y[piece]) * ((x[piece + 1] - x[piece]) / (y[piece + 1] - y[piece]));
}

double Curve::least_at(double value) const {
  int piece = 0;
  while (piece + 2 < size && value > y[piece + 1]) ++piece;
  if (y[piece + 1] == y[piece]) return value > y[piece] ? kInfinity : x[piece];
  return x[piece] + (value - y[piece]) * ((x[piece + 1] - x[piece]) / (y[piece + 1] - y[piece]));
}

float LabelMap::score(float log_gain, float log_probability, float log_h) const {
  const double odds = log_probability == kNever ? -kMostLogOdds : clipped_log_odds(log_probability);
  const double z = double(slope) * shape->evidence.at(odds) + double(offset) + double(refined) * double(log_h);
  return float(double(log_gain) + log_sigmoid(shape->result.at(z)));
}

float LabelMap::most_log_probability(float log_gain, float level) const {
  if (level == kNever || slope == 0) return 0.0f;
  const double target = double(level) + rounding(level) - double(log_gain);
  const double most_z = double(slope) * shape->evidence.at(kMostLogOdds) + double(offset);
  if (!(target < log_sigmoid(shape->result.at(most_z)))) return 0.0f;
  const double z = shape->result.most_at(target - std::log(-std::expm1(target)));
  const double error = 1e-12 * (1 + std::fabs(z) + std::fabs(double(offset)));
  const double odds = shape->evidence.most_at((z - double(offset) + error) / double(slope));
  if (!(odds < kMostLogOdds)) return 0.0f;  // all above score the same
  const float most = log_probability_of(std::max(odds, -kMostLogOdds));
  return std::min(0.0f, most + rounding_of_probability(most));
}

void LabelMap::raise_bounds(float log_gain, float* bounds) const {
  const Curve& result = shape->result;
  const double first = shape->first_knot, step = shape->knot_step;
  std::array<double, kKnots> z, score;
  for (int i = 0; i < kKnots; ++i) {
    z[i] = double(slope) * (first + i * step) + double(offset);
    score[i] = double(log_gain) + log_sigmoid(result.at(z[i]));
  }
  double before = 0, most = -kInfinity;
  for (int i = 0, piece = 0; i < kKnots; ++i) {
    double excess = 0;  // over the chord to the next knot
    if (i + 1 < kKnots && z[i + 1] > z[i]) {
      double bend = 0, above = 0;
      const double rise = (score[i + 1] - score[i]) / (z[i + 1] - z[i]);
      while (piece + 2 < result.size && result.x[piece + 1] <= z[i]) ++piece;
      double from = z[i];
      for (int p = piece;; ++p) {
        const bool last = p + 2 >= result.size || result.x[p + 1] >= z[i + 1];
        const double to = last ? z[i + 1] : result.x[p + 1];
        const double low = result.at(from), high = result.at(to);
        bend = std::max(bend, (high - low) * (high - low) * strongest_bend(low, high) / 8);
        if (last) break;
        above = std::max(above, double(log_gain) + log_sigmoid(high) - (score[i] + rise * (to - z[i])));
        from = to;
      }
      excess = std::min(bend + above, score[i + 1] - score[i]);
    }
    most = std::max(most, score[i] + std::max(before, excess));
    bounds[i] = std::max(bounds[i], float((std::ceil(most * kGrain) + 1) / kGrain));
    before = excess;
  }
}

float score_bound(const ScoreShape& shape, const float* bounds, float log_probability) {
  const double place = (shape.evidence.at(clipped_log_odds(log_probability)) - shape.first_knot) / shape.knot_step;
  const double higher = std::clamp(std::ceil(place * kPlaces) / kPlaces, 0.0, double(kKnots - 1));
  const int knot = std::min(int(higher), kKnots - 2);
  if (bounds[knot] == kNever) return kNever;
  const double low = bounds[knot], high = bounds[knot + 1];
  return float(low + (high - low) * (higher - knot));
}

float least_log_probability(const ScoreShape& shape, const float* bounds, float level) {
  if (level == kNever) return kNever;
  level -= rounding(level);
  if (bounds[0] >= level) return kNever;
  const float* reached = std::lower_bound(bounds, bounds + kKnots, level);
  if (reached == bounds + kKnots) return std::numeric_limits<float>::infinity();
  const double low = reached[-1], high = reached[0];
  const double place = double(reached - bounds) - (high - level) / (high - low) - 1e-4;  // more than 1 / kPlaces
  const double odds = shape.evidence.least_at(shape.first_knot + place * shape.knot_step);
  const float least = log_probability_of(std::clamp(odds, -kMostLogOdds, kMostLogOdds));
  return least - rounding_of_probability(least);
}

}  // namespace longleaf

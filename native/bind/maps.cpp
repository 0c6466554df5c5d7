// Checking the score maps and overrides that Python hands over.
#include "bind/maps.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace longleaf::python {

namespace {

void check_maps(const In<float>& slope, const In<float>& offset, bool may_be_level, const std::string& whose) {
  const auto each_is = [](const In<float>& values, auto good) {
    return std::all_of(values.data(), values.data() + values.shape(0), good);
  };
  if (!each_is(slope, [&](float s) { return (may_be_level ? s >= 0 : s > 0) && s <= kMostSlope; }))
    throw std::invalid_argument("every slope of " + whose + " must be " + (may_be_level ? "at least 0" : "above 0") +
                                " and at most 1000");
  if (!each_is(offset, [](float o) { return std::fabs(o) <= kMostOffset; }))
    throw std::invalid_argument("every offset of " + whose + " must be from -1000 to 1000");
}

// points: the places, then the values there.
Curve checked_curve(const Optional<double>& points, const char* name, bool may_be_level) {
  Curve curve;
  if (!points) return curve;
  const auto fail = [&](const std::string& what) { throw std::invalid_argument(std::string(name) + " must " + what); };
  const size_t size = points->shape(0) / 2;
  if (points->shape(0) != 2 * size || size < 2 || size > size_t(kMostBreaks))
    fail("have from 2 to " + std::to_string(kMostBreaks) + " places, and as many values");
  const double *x = points->data(), *y = x + size;
  for (size_t i = 0; i < size; ++i)
    if (!(std::fabs(x[i]) <= 1e6 && std::fabs(y[i]) <= 1e6)) fail("hold numbers from -1e6 to 1e6");
  for (size_t i = 1; i < size; ++i)
    if (!(x[i] > x[i - 1] && (y[i] > y[i - 1] || (may_be_level && y[i] == y[i - 1])))) fail("rise");
  curve.size = int(size);
  std::copy(x, x + size, curve.x.begin());
  std::copy(y, y + size, curve.y.begin());
  return curve;
}

}  // namespace

ScoreShape checked_shape(const Optional<double>& evidence, const Optional<double>& result) {
  const ScoreShape shape(checked_curve(evidence, "map_evidence", true), checked_curve(result, "map_result", false));
  if (!(shape.knot_step > 1e-9)) throw std::invalid_argument("map_evidence must rise");
  return shape;
}

namespace {

float checked_refined(float refined, const char* name) {
  if (!(refined >= 0 && refined <= kMostSlope))
    throw std::invalid_argument(std::string(name) + " must be at least 0 and at most 1000");
  return refined;
}

}  // namespace

ScoreMap checked_score_map(const Forest& forest, const Optional<float>& slope, const Optional<float>& offset,
                           float refined, const ScoreShape& shape, const Optional<float>* bounds) {
  if (!slope && !offset && (bounds == nullptr || !*bounds)) {
    if (forest.refined()) throw std::invalid_argument("a model with refined labels must have a score map");
    return {};
  }
  if (!slope || !offset || (bounds != nullptr && !*bounds))
    throw std::invalid_argument("a score map must have slopes, offsets and bounds");
  check_size(*slope, forest.labels(), "map_slope");
  check_size(*offset, forest.labels(), "map_offset");
  check_maps(*slope, *offset, false, "the score map");
  if (bounds != nullptr) check_size(**bounds, forest.score_bounds_size(), "map_bounds");
  return {slope->data(), offset->data(), checked_refined(refined, "map_refined"), &shape,
          bounds != nullptr ? (*bounds)->data() : nullptr};
}

Overrides checked_overrides(const Forest& forest, int64_t rows, const Optional<int64_t>& indptr,
                            const Optional<int32_t>& labels, const Optional<float>& slope,
                            const Optional<float>& offset, float refined, const ScoreShape& shape) {
  if (!indptr && !labels && !slope && !offset) return {};
  if (!indptr || !labels || !slope || !offset)
    throw std::invalid_argument("overrides must have an indptr, labels, slopes and offsets");
  const auto entries = int64_t(labels->shape(0));
  check_size(*indptr, rows + 1, "override_indptr");
  check_ranges(*indptr, size_t(entries), "override_indptr");
  if (indptr->data()[rows] != entries) throw std::invalid_argument("override_indptr must end at the last override");
  check_size(*slope, entries, "override_slope");
  check_size(*offset, entries, "override_offset");
  check_below(*labels, forest.labels(), "override_labels");
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = indptr->data()[row] + 1; i < indptr->data()[row + 1]; ++i)
      if (labels->data()[i] <= labels->data()[i - 1])
        throw std::invalid_argument("override_labels must ascend within a row; those of row " + std::to_string(row) +
                                    " do not");
  check_maps(*slope, *offset, true, "the overrides");
  return {indptr->data(), labels->data(), slope->data(), offset->data(), checked_refined(refined, "override_refined"),
          &shape};
}

}  // namespace longleaf::python

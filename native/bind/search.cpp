// Searching a model's trees, as Python calls it.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "bind/bind.h"
#include "bind/forest.h"
#include "search/search.h"

using namespace nb::literals;

namespace longleaf::python {

namespace {

template <class T>
using Optional = std::optional<In<T>>;

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

// bounds: null where there is nothing to search.
ScoreMap checked_score_map(const Forest& forest, const Optional<float>& slope, const Optional<float>& offset,
                           const Optional<float>* bounds) {
  if (!slope && !offset && (bounds == nullptr || !*bounds)) return {};
  if (!slope || !offset || (bounds != nullptr && !*bounds))
    throw std::invalid_argument("a score map must have slopes, offsets and bounds");
  check_size(*slope, forest.labels(), "map_slope");
  check_size(*offset, forest.labels(), "map_offset");
  check_maps(*slope, *offset, false, "the score map");
  if (bounds != nullptr) check_size(**bounds, forest.score_bounds_size(), "map_bounds");
  return {slope->data(), offset->data(), bounds != nullptr ? (*bounds)->data() : nullptr};
}

Overrides checked_overrides(const Forest& forest, int64_t rows, const Optional<int64_t>& indptr,
                            const Optional<int32_t>& labels, const Optional<float>& slope,
                            const Optional<float>& offset) {
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
  return {indptr->data(), labels->data(), slope->data(), offset->data()};
}

nb::tuple py_top_k(const PyForest& forest, In<int64_t> indptr, In<int32_t> indices, In<float> data, In<float> row_scale,
                   int k, int beam, bool union_rule, In<float> log_gain, In<float> log_bounds, In<float> log_threshold,
                   float log_floor, int threads, nb::object progress, Optional<float> map_slope,
                   Optional<float> map_offset, Optional<float> map_bounds, Optional<int64_t> override_indptr,
                   Optional<int32_t> override_labels, Optional<float> override_slope, Optional<float> override_offset) {
  const CsrView X = csr(indptr, indices, data, forest.get().features());
  const int64_t rows = X.rows;
  check_size(row_scale, rows, "row_scale");
  if (k < 1) throw std::invalid_argument("k must be at least 1");
  const auto has = [](const In<float>& array, int64_t size) {
    return array.shape(0) == 0 || int64_t(array.shape(0)) >= size;
  };
  if (!has(log_gain, forest.get().labels()) || !has(log_threshold, forest.get().labels()) ||
      !has(log_bounds, forest.get().nodes()))
    throw std::invalid_argument("log_gain and log_threshold must have an element per label, log_bounds one per node");
  std::vector<int32_t> labels(size_t(rows) * k);
  std::vector<float> scores(labels.size()), probabilities(log_gain.shape(0) ? labels.size() : 0);
  std::vector<int64_t> evaluations(static_cast<size_t>(rows));
  auto given = [](const In<float>& a) { return a.shape(0) ? a.data() : nullptr; };
  SearchSettings settings{
      k,
      beam,
      union_rule,
      threads,
      given(log_gain),
      given(log_bounds),
      given(log_threshold),
      log_floor,
      checked_score_map(forest.get(), map_slope, map_offset, &map_bounds),
      checked_overrides(forest.get(), rows, override_indptr, override_labels, override_slope, override_offset)};
  if (settings.map)
    settings.log_floor -= rounding(log_floor);  // a tree's own score may round to less than their mean's
  auto search = [&](Work& work) {
    float* own = log_gain.shape(0) ? probabilities.data() : nullptr;
    top_k(forest.get(), X, row_scale.data(), settings, work, {labels.data(), scores.data(), own, evaluations.data()});
  };
  if (threads == 1 && rows <= 16 && progress.is_none()) {  // a few rows: starting a thread would take longer
    nb::gil_scoped_release release;
    Work work;
    search(work);
  } else {
    PythonWork(std::move(progress)).run(search);
  }
  const std::vector<size_t> shape{size_t(rows), size_t(k)};
  const Out<float> score = to_numpy(std::move(scores), shape);
  const Out<float> probability = log_gain.shape(0) ? to_numpy(std::move(probabilities), shape) : score;
  return nb::make_tuple(to_numpy(std::move(labels), shape), score, probability, to_numpy(std::move(evaluations)));
}

Out<float> py_probabilities(const PyForest& forest, In<int64_t> indptr, In<int32_t> indices, In<float> data,
                            In<float> row_scale, In<int64_t> rows, In<int32_t> labels, int threads,
                            Optional<float> map_slope, Optional<float> map_offset, Optional<int64_t> override_indptr,
                            Optional<int32_t> override_labels, Optional<float> override_slope,
                            Optional<float> override_offset) {
  std::vector<float> out(labels.shape(0));
  const CsrView X = csr(indptr, indices, data, forest.get().features());
  check_size(row_scale, X.rows, "row_scale");
  check_size(rows, int64_t(labels.shape(0)), "rows");
  check_below(labels, forest.get().labels(), "labels");
  if (std::any_of(rows.data(), rows.data() + rows.shape(0), [&](int64_t row) { return row < 0 || row >= X.rows; }))
    throw std::invalid_argument("rows must be at least 0 and below " + std::to_string(X.rows));
  SearchSettings settings;
  settings.threads = threads;
  settings.map = checked_score_map(forest.get(), map_slope, map_offset, nullptr);
  settings.overrides =
      checked_overrides(forest.get(), X.rows, override_indptr, override_labels, override_slope, override_offset);
  PythonWork().run([&](Work& work) {
    probabilities(forest.get(), X, row_scale.data(), settings, rows.data(), labels.data(), int64_t(labels.shape(0)),
                  work, out.data());
  });
  return to_numpy(std::move(out));
}

Out<float> py_score_bounds(const PyForest& forest, In<float> log_gain, In<float> slope, In<float> offset) {
  const int64_t labels = forest.get().labels();
  if (log_gain.shape(0) > 0) check_size(log_gain, labels, "log_gain");
  check_size(slope, labels, "slope");
  check_size(offset, labels, "offset");
  check_maps(slope, offset, false, "the score map");
  std::vector<float> bounds;
  run_watched(size_t(labels) * kKnots, [&](Work& work) {
    work.run([&] {
      bounds =
          forest.get().score_bounds(log_gain.shape(0) ? log_gain.data() : nullptr, slope.data(), offset.data(), work);
    });
  });
  return to_numpy(std::move(bounds));
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::class_<PyForest> forest(m, "Forest");
  bind_forest_weights(forest);
  forest
      .def(nb::init<nb::list, nb::list, nb::list, int64_t, int64_t, int>(), "first_child"_a, "label"_a, "weights"_a,
           "features"_a, "labels"_a, "link"_a)
      .def(
          "log_bounds",
          [](const PyForest& f, In<float> log_gain) {
            if (int64_t(log_gain.shape(0)) < f.get().labels())
              throw std::invalid_argument("log_gain must have an element per label");
            return to_numpy(f.get().log_bounds(log_gain.data()));
          },
          "log_gain"_a.noconvert())
      .def("score_bounds", &py_score_bounds, "log_gain"_a.noconvert(), "slope"_a.noconvert(), "offset"_a.noconvert())
      .def("top_k", &py_top_k, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "row_scale"_a.noconvert(), nb::kw_only(), "k"_a, "beam"_a, "union_rule"_a, "log_gain"_a.noconvert(),
           "log_bounds"_a.noconvert(), "log_threshold"_a.noconvert(), "log_floor"_a, "threads"_a,
           "progress"_a.none() = nb::none(), "map_slope"_a.noconvert() = nb::none(),
           "map_offset"_a.noconvert() = nb::none(), "map_bounds"_a.noconvert() = nb::none(),
           "override_indptr"_a.noconvert() = nb::none(), "override_labels"_a.noconvert() = nb::none(),
           "override_slope"_a.noconvert() = nb::none(), "override_offset"_a.noconvert() = nb::none())
      .def("probabilities", &py_probabilities, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "row_scale"_a.noconvert(), "rows"_a.noconvert(), "labels"_a.noconvert(), "threads"_a, nb::kw_only(),
           "map_slope"_a.noconvert() = nb::none(), "map_offset"_a.noconvert() = nb::none(),
           "override_indptr"_a.noconvert() = nb::none(), "override_labels"_a.noconvert() = nb::none(),
           "override_slope"_a.noconvert() = nb::none(), "override_offset"_a.noconvert() = nb::none());
}

}  // namespace longleaf::python

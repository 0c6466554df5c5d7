// Searching a model's trees, as Python calls it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "bind/bind.h"
#include "bind/forest.h"
#include "bind/maps.h"
#include "bind/utility.h"
#include "search/search.h"

using namespace nb::literals;

namespace longleaf::python {

namespace {

// Labels without refined classifiers are not nominated, so the number does not matter there.
int checked_nominees(const Forest& forest, int nominees) {
  if (nominees < 1) throw std::invalid_argument("nominees must be at least 1");
  return int(std::min(int64_t(nominees), forest.labels()));
}

// seconds: from `begin` on.
Limits checked_limits(double epsilon, int64_t evaluations, std::optional<double> seconds,
                      std::chrono::steady_clock::time_point begin) {
  if (!(epsilon >= 0 && epsilon < 1)) throw std::invalid_argument("epsilon must be at least 0 and below 1");
  if (evaluations < 1) throw std::invalid_argument("max_evaluations must be at least 1");
  Limits limits{epsilon, evaluations, {}};
  if (!seconds) return limits;
  if (!(*seconds > 0 && *seconds <= 1e6)) throw std::invalid_argument("seconds must be above 0 and at most 1e6");
  limits.deadline =
      begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(*seconds));
  return limits;
}

nb::tuple py_top_k(const PyForest& forest, In<int64_t> indptr, In<int32_t> indices, In<float> data, In<float> row_scale,
                   int k, int beam, bool union_rule, In<float> log_gain, In<float> log_bounds, In<float> log_threshold,
                   float log_floor, int threads, nb::object progress, Optional<float> map_slope,
                   Optional<float> map_offset, float map_refined, int map_nominees, Optional<double> map_evidence,
                   Optional<double> map_result, Optional<float> map_bounds, Optional<int64_t> override_indptr,
                   Optional<int32_t> override_labels, Optional<float> override_slope, Optional<float> override_offset,
                   float override_refined, const PyUtility* utility, bool resume, double epsilon,
                   int64_t max_evaluations, std::optional<double> seconds) {
  const auto begin = std::chrono::steady_clock::now();
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
  const bool own_probabilities = log_gain.shape(0) > 0 || utility != nullptr;
  std::vector<float> scores(labels.size()), probabilities(own_probabilities ? labels.size() : 0);
  std::vector<float> missed(size_t(rows), kNever);
  std::vector<int64_t> evaluations(static_cast<size_t>(rows));
  auto given = [](const In<float>& a) { return a.shape(0) ? a.data() : nullptr; };
  const ScoreShape score_shape = checked_shape(map_evidence, map_result);
  SearchSettings settings;
  settings.k = k;
  settings.beam = beam;
  settings.resume = resume;
  settings.union_rule = union_rule;
  settings.threads = threads;
  settings.log_gain = given(log_gain);
  settings.log_bounds = given(log_bounds);
  settings.log_threshold = given(log_threshold);
  settings.log_floor = log_floor;
  const bool needs_bounds = !utility && (map_bounds || !forest.get().refined());
  settings.map = checked_score_map(forest.get(), map_slope, map_offset, map_refined, score_shape,
                                   needs_bounds ? &map_bounds : nullptr);
  settings.overrides = checked_overrides(forest.get(), rows, override_indptr, override_labels, override_slope,
                                         override_offset, override_refined, score_shape);
  settings.nominees = checked_nominees(forest.get(), map_nominees);
  if (utility) settings.utility = utility->of(forest.get());
  settings.limits = checked_limits(epsilon, max_evaluations, seconds, begin);
  if (settings.map)
    settings.log_floor -= rounding(log_floor);  // a tree's own score may round to less than their mean's
  auto search = [&](Work& work) {
    float* own = own_probabilities ? probabilities.data() : nullptr;
    top_k(forest.get(), X, row_scale.data(), settings, work,
          {labels.data(), scores.data(), own, evaluations.data(), missed.data()});
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
  const Out<float> probability = own_probabilities ? to_numpy(std::move(probabilities), shape) : score;
  return nb::make_tuple(to_numpy(std::move(labels), shape), score, probability, to_numpy(std::move(evaluations)),
                        to_numpy(std::move(missed)));
}

void check_pairs(const PyForest& forest, int64_t n_rows, const In<int64_t>& rows, const In<int32_t>& labels) {
  check_size(rows, int64_t(labels.shape(0)), "rows");
  check_below(labels, forest.get().labels(), "labels");
  if (std::any_of(rows.data(), rows.data() + rows.shape(0), [&](int64_t row) { return row < 0 || row >= n_rows; }))
    throw std::invalid_argument("rows must be at least 0 and below " + std::to_string(n_rows));
}

nb::tuple py_nominees(const PyForest& forest, In<int64_t> indptr, In<int32_t> indices, In<float> data,
                      In<float> row_scale, int nominees_per_tree, int threads, Optional<int64_t> override_indptr,
                      Optional<int32_t> override_labels, Optional<float> override_slope,
                      Optional<float> override_offset) {
  if (!forest.get().refined()) throw std::invalid_argument("only refined labels are nominated");
  const CsrView X = csr(indptr, indices, data, forest.get().features());
  check_size(row_scale, X.rows, "row_scale");
  SearchSettings settings;
  const ScoreShape shape = checked_shape({}, {});
  settings.threads = threads;
  settings.nominees = checked_nominees(forest.get(), nominees_per_tree);
  settings.overrides = checked_overrides(forest.get(), X.rows, override_indptr, override_labels, override_slope,
                                         override_offset, 0.0f, shape);
  NomineeLists found;
  PythonWork().run([&](Work& work) { found = nominees(forest.get(), X, row_scale.data(), settings, work); });
  return nb::make_tuple(to_numpy(std::move(found.indptr)), to_numpy(std::move(found.labels)),
                        to_numpy(std::move(found.probabilities)), to_numpy(std::move(found.log_h)));
}

Out<float> py_probabilities(const PyForest& forest, In<int64_t> indptr, In<int32_t> indices, In<float> data,
                            In<float> row_scale, In<int64_t> rows, In<int32_t> labels, int threads,
                            Optional<float> map_slope, Optional<float> map_offset, float map_refined, int map_nominees,
                            Optional<double> map_evidence, Optional<double> map_result,
                            Optional<int64_t> override_indptr, Optional<int32_t> override_labels,
                            Optional<float> override_slope, Optional<float> override_offset, float override_refined) {
  std::vector<float> out(labels.shape(0));
  const CsrView X = csr(indptr, indices, data, forest.get().features());
  check_size(row_scale, X.rows, "row_scale");
  check_pairs(forest, X.rows, rows, labels);
  SearchSettings settings;
  settings.threads = threads;
  const ScoreShape score_shape = checked_shape(map_evidence, map_result);
  settings.map = checked_score_map(forest.get(), map_slope, map_offset, map_refined, score_shape, nullptr);
  settings.overrides = checked_overrides(forest.get(), X.rows, override_indptr, override_labels, override_slope,
                                         override_offset, override_refined, score_shape);
  settings.nominees = checked_nominees(forest.get(), map_nominees);
  PythonWork().run([&](Work& work) {
    probabilities(forest.get(), X, row_scale.data(), settings, rows.data(), labels.data(), int64_t(labels.shape(0)),
                  work, out.data());
  });
  return to_numpy(std::move(out));
}

// What the refined labels of the score map say is not needed: it can only lower a score.
Out<float> py_score_bounds(const PyForest& forest, In<float> log_gain, In<float> slope, In<float> offset,
                           Optional<double> evidence, Optional<double> result) {
  const int64_t labels = forest.get().labels();
  if (log_gain.shape(0) > 0) check_size(log_gain, labels, "log_gain");
  const ScoreShape shape = checked_shape(evidence, result);
  const ScoreMap map = checked_score_map(forest.get(), slope, offset, 0.0f, shape, nullptr);
  std::vector<float> bounds;
  run_watched(size_t(labels) * kKnots, [&](Work& work) {
    work.run([&] { bounds = forest.get().score_bounds(log_gain.shape(0) ? log_gain.data() : nullptr, map, work); });
  });
  return to_numpy(std::move(bounds));
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::class_<PyForest> forest(m, "Forest");
  bind_forest_weights(forest);
  forest
      .def(nb::init<nb::list, nb::list, nb::list, int64_t, int64_t, int, bool>(), "first_child"_a, "label"_a,
           "weights"_a, "features"_a, "labels"_a, "link"_a, "refined"_a = false)
      .def(
          "log_bounds",
          [](const PyForest& f, In<float> log_gain) {
            if (int64_t(log_gain.shape(0)) < f.get().labels())
              throw std::invalid_argument("log_gain must have an element per label");
            return to_numpy(f.get().log_bounds(log_gain.data()));
          },
          "log_gain"_a.noconvert())
      .def("score_bounds", &py_score_bounds, "log_gain"_a.noconvert(), "slope"_a.noconvert(), "offset"_a.noconvert(),
           "evidence"_a.noconvert() = nb::none(), "result"_a.noconvert() = nb::none())
      .def("nominees", &py_nominees, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "row_scale"_a.noconvert(), nb::kw_only(), "nominees"_a, "threads"_a,
           "override_indptr"_a.noconvert() = nb::none(), "override_labels"_a.noconvert() = nb::none(),
           "override_slope"_a.noconvert() = nb::none(), "override_offset"_a.noconvert() = nb::none())
      .def("top_k", &py_top_k, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "row_scale"_a.noconvert(), nb::kw_only(), "k"_a, "beam"_a, "union_rule"_a, "log_gain"_a.noconvert(),
           "log_bounds"_a.noconvert(), "log_threshold"_a.noconvert(), "log_floor"_a, "threads"_a,
           "progress"_a.none() = nb::none(), "map_slope"_a.noconvert() = nb::none(),
           "map_offset"_a.noconvert() = nb::none(), "map_refined"_a = 0.0f, "map_nominees"_a = 100,
           "map_evidence"_a.noconvert() = nb::none(), "map_result"_a.noconvert() = nb::none(),
           "map_bounds"_a.noconvert() = nb::none(), "override_indptr"_a.noconvert() = nb::none(),
           "override_labels"_a.noconvert() = nb::none(), "override_slope"_a.noconvert() = nb::none(),
           "override_offset"_a.noconvert() = nb::none(), "override_refined"_a = 0.0f, "utility"_a = nb::none(),
           "resume"_a = false, "epsilon"_a = 0.0, "max_evaluations"_a = std::numeric_limits<int64_t>::max(),
           "seconds"_a = nb::none())
      .def("probabilities", &py_probabilities, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "row_scale"_a.noconvert(), "rows"_a.noconvert(), "labels"_a.noconvert(), "threads"_a, nb::kw_only(),
           "map_slope"_a.noconvert() = nb::none(), "map_offset"_a.noconvert() = nb::none(), "map_refined"_a = 0.0f,
           "map_nominees"_a = 100, "map_evidence"_a.noconvert() = nb::none(), "map_result"_a.noconvert() = nb::none(),
           "override_indptr"_a.noconvert() = nb::none(), "override_labels"_a.noconvert() = nb::none(),
           "override_slope"_a.noconvert() = nb::none(), "override_offset"_a.noconvert() = nb::none(),
           "override_refined"_a = 0.0f);
}

}  // namespace longleaf::python

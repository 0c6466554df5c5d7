// Searching a model's trees, as Python calls it.
#include <algorithm>
#include <string>
#include <vector>

#include "bind/bind.h"
#include "bind/forest.h"
#include "search/search.h"

using namespace nb::literals;

namespace longleaf::python {

namespace {

nb::tuple py_top_k(const PyForest& forest, In<int64_t> indptr, In<int32_t> indices, In<float> data, In<float> row_scale,
                   int k, int beam, bool union_rule, In<float> log_gain, In<float> log_bounds, In<float> log_threshold,
                   float log_floor, int threads, nb::object progress) {
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
  SearchSettings settings{k,        beam, union_rule, threads, given(log_gain), given(log_bounds), given(log_threshold),
                          log_floor};
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
                            In<float> row_scale, In<int64_t> rows, In<int32_t> labels, int threads) {
  std::vector<float> out(labels.shape(0));
  const CsrView X = csr(indptr, indices, data, forest.get().features());
  check_size(row_scale, X.rows, "row_scale");
  check_size(rows, int64_t(labels.shape(0)), "rows");
  check_below(labels, forest.get().labels(), "labels");
  if (std::any_of(rows.data(), rows.data() + rows.shape(0), [&](int64_t row) { return row < 0 || row >= X.rows; }))
    throw std::invalid_argument("rows must be at least 0 and below " + std::to_string(X.rows));
  PythonWork().run([&](Work& work) {
    probabilities(forest.get(), X, row_scale.data(), rows.data(), labels.data(), int64_t(labels.shape(0)), threads,
                  work, out.data());
  });
  return to_numpy(std::move(out));
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
      .def("top_k", &py_top_k, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "row_scale"_a.noconvert(), nb::kw_only(), "k"_a, "beam"_a, "union_rule"_a, "log_gain"_a.noconvert(),
           "log_bounds"_a.noconvert(), "log_threshold"_a.noconvert(), "log_floor"_a, "threads"_a,
           "progress"_a.none() = nb::none())
      .def("probabilities", &py_probabilities, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "row_scale"_a.noconvert(), "rows"_a.noconvert(), "labels"_a.noconvert(), "threads"_a);
}

}  // namespace longleaf::python

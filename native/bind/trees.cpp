// Rows, label centroids, clusters and the rows of nodes, as Python calls for them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "bind/bind.h"
#include "trees/trees.h"

using namespace nb::literals;

namespace longleaf::python {

void py_check_csr(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t cols, const std::string& name,
                  bool in_order) {
  const int64_t rows = int64_t(indptr.shape(0)) - 1, size = int64_t(indices.shape(0));
  auto fail = [&](const std::string& what) { throw std::invalid_argument(name + " must " + what); };
  if (rows < 0 || indptr.data()[0] != 0 || data.shape(0) != indices.shape(0))
    fail("be a well-formed CSR matrix; its arrays do not fit together.");
  const auto check_row = [&](int64_t row) {
    const int64_t begin = indptr.data()[row], end = indptr.data()[row + 1];
    if (begin > end || end > size)
      fail("be a well-formed CSR matrix; its indptr goes from " + std::to_string(begin) + " to " + std::to_string(end) +
           " at row " + std::to_string(row) + ", with " + std::to_string(size) + " entries.");
    for (int64_t i = begin; i < end; ++i) {
      const int32_t index = indices.data()[i];
      if (index < 0 || index >= cols)
        fail("have features below " + std::to_string(cols) + "; got " + std::to_string(index) + " in row " +
             std::to_string(row) + ".");
      if (in_order && i > begin && index <= indices.data()[i - 1])
        fail("have the features of a row in order and once each; row " + std::to_string(row) + " has not.");
      if (!std::isfinite(data.data()[i]))
        fail("hold finite numbers that fit a 32-bit float; row " + std::to_string(row) + " does not.");
    }
  };
  run_watched(size_t(size + rows), [&](Work& work) {
    work.run([&] {
      for (int64_t row = 0; row < rows; ++row) {
        work.check();
        check_row(row);
      }
    });
  });
}

namespace {

// What scales each row to unit length; 0 for an empty row, and for one so short that its scale does not fit a 32-bit
// float: the caller normalizes those.
Out<float> py_row_scales(In<int64_t> indptr, In<float> data) {
  check_ranges(indptr, data.shape(0), "indptr");
  std::vector<float> scale(indptr.shape(0) - 1, 0.0f);
  run_watched(data.shape(0) + scale.size(), [&](Work& work) {
    work.run([&] {
      for (size_t row = 0; row < scale.size(); ++row) {
        work.check();
        double square = 0;
        for (int64_t i = indptr.data()[row]; i < indptr.data()[row + 1]; ++i)
          square += double(data.data()[i]) * data.data()[i];
        if (std::sqrt(square) >= std::numeric_limits<float>::min()) scale[row] = float(1 / std::sqrt(square));
      }
    });
  });
  return to_numpy(std::move(scale));
}

nb::tuple py_label_centroids(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t features,
                             In<float> row_scale, In<int64_t> label_indptr, In<int32_t> label_rows, int threads) {
  const CsrView X = csr(indptr, indices, data, features), members = csr(label_indptr, label_rows, nullptr, 0);
  check_size(row_scale, X.rows, "row_scale");
  check_below(label_rows, X.rows, "label_rows");
  LabelCentroids out;
  PythonWork().run([&](Work& work) { out = label_centroids(X, row_scale.data(), members, threads, work); });
  return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.indices)),
                        to_numpy(std::move(out.data)));
}

nb::tuple py_cluster_labels(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t features, int arity,
                            int max_leaf, int max_iterations, double tolerance, bool balanced, uint64_t seed,
                            int threads) {
  const CsrView centroids = csr(indptr, indices, data, features);
  check_below(indices, features, "indices");
  Clusters out;
  PythonWork().run([&](Work& work) {
    out = cluster_labels(centroids, {arity, max_leaf, max_iterations, tolerance, balanced, seed, threads}, work);
  });
  return nb::make_tuple(to_numpy(std::move(out.order)), to_numpy(std::move(out.begin)), to_numpy(std::move(out.end)),
                        to_numpy(std::move(out.parent)));
}

nb::tuple py_node_rows(In<int64_t> label_indptr, In<int32_t> label_indices, int64_t labels, In<int32_t> first_child,
                       In<int32_t> label) {
  const CsrView Y = csr(label_indptr, label_indices, nullptr, labels);
  check_below(label_indices, labels, "label_indices");
  const TreeView tree = tree_view(first_child, label);
  NodeRowLists out;
  run_watched(label_indices.shape(0) + size_t(Y.rows),
              [&](Work& work) { work.run([&] { out = assign_rows(Y, tree, work); }); });
  return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.rows)));
}

// ranked: rows * ranks, -1 for none.
nb::tuple py_ranked_rows(In<int64_t> label_indptr, In<int32_t> label_indices, int64_t labels, In<int32_t> ranked,
                         In<int32_t> first_child, In<int32_t> label) {
  const CsrView Y = csr(label_indptr, label_indices, nullptr, labels);
  check_below(label_indices, labels, "label_indices");
  const auto size = int64_t(ranked.shape(0)), ranks = size / std::max(Y.rows, int64_t(1));
  check_size(ranked, ranks * Y.rows, "ranked");
  if (std::any_of(ranked.data(), ranked.data() + size, [&](int32_t one) { return one < -1 || one >= labels; }))
    throw std::invalid_argument("ranked must hold labels below " + std::to_string(labels) + ", or -1");
  const TreeView tree = tree_view(first_child, label);
  NodeRowLists out;
  run_watched(size_t(size) + label_indices.shape(0),
              [&](Work& work) { work.run([&] { out = assign_ranked_rows(Y, ranked.data(), ranks, tree, work); }); });
  return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.rows)));
}

}  // namespace

void bind_trees(nb::module_& m) {
  m.def("check_csr", &py_check_csr, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "cols"_a,
        "name"_a, "in_order"_a = false);
  m.def("row_scales", &py_row_scales, "indptr"_a.noconvert(), "data"_a.noconvert());
  m.def("label_centroids", &py_label_centroids, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
        "features"_a, "row_scale"_a.noconvert(), "label_indptr"_a.noconvert(), "label_rows"_a.noconvert(), "threads"_a);
  m.def("cluster_labels", &py_cluster_labels, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
        "features"_a, nb::kw_only(), "arity"_a, "max_leaf"_a, "max_iterations"_a, "tolerance"_a, "balanced"_a, "seed"_a,
        "threads"_a);
  m.def("ranked_rows", &py_ranked_rows, "label_indptr"_a.noconvert(), "label_indices"_a.noconvert(), "labels"_a,
        "ranked"_a.noconvert(), "first_child"_a.noconvert(), "label"_a.noconvert());
  m.def("node_rows", &py_node_rows, "label_indptr"_a.noconvert(), "label_indices"_a.noconvert(), "labels"_a,
        "first_child"_a.noconvert(), "label"_a.noconvert());
}

}  // namespace longleaf::python

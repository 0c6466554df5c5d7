// Sparse separators and trees that split rows by nDCG, as Python calls them.
#include "bind/bind.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "baselines/baselines.h"

using namespace nb::literals;

namespace longleaf::python {

namespace {

// Labels within their number, each of some gain.
void check_gain(const In<int64_t>& indptr, const In<int32_t>& labels, const In<double>& gain) {
  const int64_t rows = int64_t(indptr.shape(0)) - 1, size = int64_t(labels.shape(0));
  const int64_t* begin = indptr.data();
  if (rows < 0 || begin[0] != 0 || begin[rows] != size || !std::is_sorted(begin, begin + rows + 1))
    throw std::invalid_argument("labels must be a well-formed CSR matrix");
  const auto outside = [&](int32_t label) { return label < 0 || size_t(label) >= gain.shape(0); };
  if (std::any_of(labels.data(), labels.data() + size, outside))
    throw std::invalid_argument("labels must be below the number of labels in gain");
  if (std::any_of(gain.data(), gain.data() + gain.shape(0), [](double g) { return !std::isfinite(g) || g <= 0; }))
    throw std::invalid_argument("gain must be finite and above 0");
}

nb::tuple py_separate(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t features, In<float> row_scale,
                      In<uint8_t> sides, float cost_off, float cost_on, float bias, double tolerance, int max_epochs,
                      uint64_t seed) {
  py_check_csr(indptr, indices, data, features, "X");
  if (sides.shape(0) + 1 != indptr.shape(0) || row_scale.shape(0) != sides.shape(0))
    throw std::invalid_argument("sides and row_scale must have an element per row");
  Separator out;
  const CsrView X = csr(indptr, indices, data.data(), features);
  run_watched(indices.shape(0), [&](Work& work) {
    work.run([&] {
      out = separate(X, row_scale.data(), sides.data(), {cost_off, cost_on, bias, tolerance, max_epochs, seed}, work);
    });
  });
  return nb::make_tuple(to_numpy(std::move(out.feature)), to_numpy(std::move(out.weight)), out.bias);
}

Out<uint8_t> py_ndcg_sides(In<int64_t> label_indptr, In<int32_t> label_indices, In<double> gain, In<uint8_t> sides) {
  check_gain(label_indptr, label_indices, gain);
  if (sides.shape(0) + 1 != label_indptr.shape(0) ||
      std::any_of(sides.data(), sides.data() + sides.shape(0), [](uint8_t side) { return side > 1; }))
    throw std::invalid_argument("sides must have a 0 or 1 per row");
  const CsrView labels = csr(label_indptr, label_indices, nullptr, int64_t(gain.shape(0)));
  std::vector<uint8_t> out;
  run_watched(label_indices.shape(0),
              [&](Work& work) { work.run([&] { out = ndcg_sides(labels, gain.data(), sides.data(), work); }); });
  return to_numpy(std::move(out));
}

nb::dict to_dict(NdcgTreeArrays tree) {
  nb::dict out;
  const size_t nodes = tree.place.size();
  out["children"] = to_numpy(std::move(tree.children), {nodes, 2});
  out["place"] = to_numpy(std::move(tree.place));
  out["weight_indptr"] = to_numpy(std::move(tree.weight_indptr));
  out["weight_indices"] = to_numpy(std::move(tree.weight_indices));
  out["weight_data"] = to_numpy(std::move(tree.weight_data));
  out["bias"] = to_numpy(std::move(tree.bias));
  out["leaf_indptr"] = to_numpy(std::move(tree.leaf_indptr));
  out["leaf_indices"] = to_numpy(std::move(tree.leaf_indices));
  out["leaf_data"] = to_numpy(std::move(tree.leaf_data));
  return out;
}

nb::list py_grow_ndcg_trees(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t features,
                            In<float> row_scale, In<int64_t> label_indptr, In<int32_t> label_indices, In<double> gain,
                            In<uint64_t> seeds, int64_t max_leaf, int64_t max_labels, double C, float bias,
                            double tolerance, int max_epochs, int threads, nb::object progress) {
  py_check_csr(indptr, indices, data, features, "X");
  check_gain(label_indptr, label_indices, gain);
  const size_t rows = indptr.shape(0) - 1;
  if (label_indptr.shape(0) != rows + 1 || row_scale.shape(0) != rows ||
      rows > size_t(std::numeric_limits<int32_t>::max()))
    throw std::invalid_argument("X, row_scale and labels must have the same number of rows, of 32 bits");
  if (max_leaf < 1 || max_labels < 1) throw std::invalid_argument("max_leaf and max_labels must be at least 1");
  std::vector<NdcgTreeArrays> trees;
  PythonWork(std::move(progress)).run([&](Work& work) {
    const CsrView labels = csr(label_indptr, label_indices, nullptr, int64_t(gain.shape(0)));
    const NdcgData task{csr(indptr, indices, data.data(), features), row_scale.data(), labels, gain.data()};
    trees = grow_ndcg_trees(task, {seeds.data(), seeds.shape(0)},
                            {max_leaf, max_labels, C, bias, tolerance, max_epochs, threads}, work);
  });
  nb::list out;
  for (NdcgTreeArrays& tree : trees) out.append(to_dict(std::move(tree)));
  return out;
}

// Keeps the arrays of a model alive, which it has checked.
class PyNdcgForest {
 public:
  PyNdcgForest(nb::list trees, In<int64_t> mean_indptr, In<int32_t> mean_indices, In<float> mean_data, int64_t features)
      : trees_(trees), mean_indptr_(mean_indptr), mean_indices_(mean_indices), mean_data_(mean_data) {
    py_check_csr(mean_indptr, mean_indices, mean_data, features, "means");
    const CsrView means = csr(mean_indptr, mean_indices, mean_data.data(), features);
    std::vector<NdcgTreeView> views;
    for (nb::handle tree : trees) views.push_back(view(nb::cast<nb::dict>(tree), features, means.rows));
    if (views.empty()) throw std::invalid_argument("there must be a tree");
    forest_ = ndcg_forest(std::move(views), means);
  }

  nb::tuple top_k(In<int64_t> indptr, In<int32_t> indices, In<float> data, In<float> row_scale, In<float> unit_scale,
                  int k, double alpha, double gamma, int threads) const {
    py_check_csr(indptr, indices, data, forest_.means.cols, "X");
    const size_t rows = indptr.shape(0) - 1;
    if (row_scale.shape(0) != rows || unit_scale.shape(0) != rows || k < 1)
      throw std::invalid_argument("row_scale and unit_scale must have an element per row; k must be at least 1");
    std::vector<int32_t> labels(rows * size_t(k));
    std::vector<float> scores(labels.size());
    std::vector<int64_t> candidates(rows);
    PythonWork().run([&](Work& work) {
      const CsrView X = csr(indptr, indices, data.data(), forest_.means.cols);
      ndcg_top_k(forest_, {X, row_scale.data(), unit_scale.data()}, {k, alpha, gamma, threads}, work, labels.data(),
                 scores.data(), candidates.data());
    });
    return nb::make_tuple(to_numpy(std::move(labels), {rows, size_t(k)}),
                          to_numpy(std::move(scores), {rows, size_t(k)}), to_numpy(std::move(candidates)));
  }

 private:
  template <class T>
  static In<T> field(const nb::dict& arrays, const char* name) {
    return nb::cast<In<T>>(arrays[name], false);
  }

  static NdcgTreeView view(const nb::dict& tree, int64_t features, int64_t labels) {
    using Children = nb::ndarray<const int32_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
    const auto children = nb::cast<Children>(tree["children"], false);
    const auto place = field<int32_t>(tree, "place");
    const auto bias = field<float>(tree, "bias");
    const auto lines = [&](const std::string& name, int64_t cols) {
      const auto indptr = field<int64_t>(tree, (name + "_indptr").c_str());
      const auto indices = field<int32_t>(tree, (name + "_indices").c_str());
      const auto data = field<float>(tree, (name + "_data").c_str());
      py_check_csr(indptr, indices, data, cols, name);
      return csr(indptr, indices, data.data(), cols);
    };
    const NdcgTreeView out{int64_t(place.shape(0)),   children.data(),       place.data(),
                           lines("weight", features), lines("leaf", labels), bias.data()};
    if (out.nodes == 0 || children.shape(0) != place.shape(0) || int64_t(bias.shape(0)) != out.weights.rows)
      throw std::invalid_argument("the tree's arrays must fit together");
    check_nodes(out);
    return out;
  }

  // Children come after their parents, so that every way down ends.
  static void check_nodes(const NdcgTreeView& tree) {
    for (int64_t v = 0; v < tree.nodes; ++v) {
      const int32_t a = tree.children[2 * v], b = tree.children[2 * v + 1];
      const bool leaf = a == -1 && b == -1;
      if (!leaf && (a <= v || b <= v || a >= tree.nodes || b >= tree.nodes))
        throw std::invalid_argument("children must come after their parents and be nodes of the tree");
      if (tree.place[v] < 0 || tree.place[v] >= (leaf ? tree.leaves.rows : tree.weights.rows))
        throw std::invalid_argument("place must name a line of the tree's matrices");
    }
  }

  nb::list trees_;
  In<int64_t> mean_indptr_;
  In<int32_t> mean_indices_;
  In<float> mean_data_;
  NdcgForest forest_;
};

}  // namespace

void bind_baselines(nb::module_& m) {
  m.def("separate", &py_separate, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "features"_a,
        "row_scale"_a.noconvert(), "sides"_a.noconvert(), nb::kw_only(), "cost_off"_a, "cost_on"_a, "bias"_a,
        "tolerance"_a, "max_epochs"_a, "seed"_a);
  m.def("ndcg_sides", &py_ndcg_sides, "label_indptr"_a.noconvert(), "label_indices"_a.noconvert(), "gain"_a.noconvert(),
        "sides"_a.noconvert());
  m.def("grow_ndcg_trees", &py_grow_ndcg_trees, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
        "features"_a, "row_scale"_a.noconvert(), "label_indptr"_a.noconvert(), "label_indices"_a.noconvert(),
        "gain"_a.noconvert(), "seeds"_a.noconvert(), nb::kw_only(), "max_leaf"_a, "max_labels"_a, "C"_a, "bias"_a,
        "tolerance"_a, "max_epochs"_a, "threads"_a, "progress"_a.none() = nb::none());
  nb::class_<PyNdcgForest>(m, "NdcgForest")
      .def(nb::init<nb::list, In<int64_t>, In<int32_t>, In<float>, int64_t>(), "trees"_a, "mean_indptr"_a.noconvert(),
           "mean_indices"_a.noconvert(), "mean_data"_a.noconvert(), "features"_a)
      .def("top_k", &PyNdcgForest::top_k, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
           "row_scale"_a.noconvert(), "unit_scale"_a.noconvert(), nb::kw_only(), "k"_a, "alpha"_a, "gamma"_a,
           "threads"_a);
}

}  // namespace longleaf::python

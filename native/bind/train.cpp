// Training, as Python calls it.

#include <algorithm>
#include <limits>

#include "baselines/baselines.h"
#include "bind/bind.h"
#include "bind/forest.h"
#include "files/files.h"
#include "train/train.h"

using namespace nb::literals;

namespace longleaf::python {

namespace {

nb::tuple py_training_units(In<int64_t> node_indptr, In<int32_t> first_child, In<int32_t> label) {
  const TreeView tree = tree_view(first_child, label);
  check_size(node_indptr, tree.nodes + 1, "node_indptr");
  check_ranges(node_indptr, std::numeric_limits<int64_t>::max(), "node_indptr");
  TrainingUnits out = training_units(tree, {node_indptr.data()});
  return nb::make_tuple(to_numpy(std::move(out.first_node)), to_numpy(std::move(out.cost)));
}

// The weights that training starts from, of a tree of the same form as the one that is trained.
const ChunkView& initial_chunks(const PyForest& forest, int64_t tree, const TreeView& trained, int64_t features) {
  const TreeView& start = forest.tree(tree, "initial_tree").view;
  if (forest.get().features() != features || start.nodes != trained.nodes ||
      !std::equal(start.first_child, start.first_child + start.nodes + 1, trained.first_child))
    throw std::invalid_argument("initial must have the shape of the tree that is trained");
  return forest.tree(tree, "initial_tree").chunks;
}

nb::tuple py_train_nodes(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t features, In<float> row_scale,
                         In<int64_t> node_indptr, In<int32_t> node_rows, In<float> positive_factor,
                         In<int32_t> first_child, In<int32_t> label, In<float> c_positive, In<float> c_negative,
                         In<float> row_weight, int32_t first_node, int32_t last_node, const PyForest* initial,
                         int64_t initial_tree, In<float> past, int loss, bool l1, double tolerance, int max_epochs,
                         float threshold, float bias, float margin, int weight_bits, uint64_t seed, int threads,
                         nb::object progress) {
  const auto given = [](const In<float>& a) { return a.shape(0) ? a.data() : nullptr; };
  const TreeView tree = tree_view(first_child, label);
  const CsrView X = csr(indptr, indices, data, features);
  check_size(row_scale, X.rows, "row_scale");
  if (row_weight.shape(0)) check_size(row_weight, X.rows, "row_weight");
  check_size(node_indptr, tree.nodes + 1, "node_indptr");
  check_ranges(node_indptr, node_rows.shape(0), "node_indptr");
  check_below(node_rows, X.rows, "node_rows");
  if (positive_factor.shape(0)) check_size(positive_factor, int64_t(node_rows.shape(0)), "positive_factor");
  check_size(c_positive, tree.nodes, "c_positive");
  check_size(c_negative, tree.nodes, "c_negative");
  if (first_node < 0 || first_node > last_node || last_node > tree.nodes)
    throw std::invalid_argument("first_node and last_node must be a range of the tree's nodes");
  if (past.shape(0) && past.shape(0) != size_t(features) + 1)
    throw std::invalid_argument("past must have an element per feature and one for the bias");
  const TrainingData task{X,
                          row_scale.data(),
                          given(row_weight),
                          tree,
                          {node_indptr.data(), node_rows.data(), given(positive_factor)},
                          c_positive.data(),
                          c_negative.data(),
                          initial ? &initial_chunks(*initial, initial_tree, tree, features) : nullptr,
                          given(past)};
  ChunkArrays out;
  TrainReport report;
  PythonWork(std::move(progress)).run([&](Work& work) {
    out = (l1 ? train_l1 : train_nodes)(
        task, first_node, last_node,
        {Loss(loss), tolerance, max_epochs, threshold, bias, margin, weight_bits, seed, threads}, work, report);
  });
  nb::dict facts;
  facts["epochs"] = report.epochs;
  facts["row_visits"] = report.row_visits;
  facts["unfinished"] = report.unfinished;
  return nb::make_tuple(to_dict(std::move(out)), facts);
}

}  // namespace

void bind_train(nb::module_& m) {
  m.attr("LANES") = kLanes;
  m.attr("ROW_BYTES") = kRowBytes;
  m.attr("ROW_LANE_BYTES") = kRowLaneBytes;
  m.def("set_scratch", &set_scratch, "folder"_a, "smallest"_a);
  m.def("training_units", &py_training_units, "node_indptr"_a.noconvert(), "first_child"_a.noconvert(),
        "label"_a.noconvert());
  m.def("train_nodes", &py_train_nodes, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
        "features"_a, "row_scale"_a.noconvert(), "node_indptr"_a.noconvert(), "node_rows"_a.noconvert(),
        "positive_factor"_a.noconvert(), "first_child"_a.noconvert(), "label"_a.noconvert(), "c_positive"_a.noconvert(),
        "c_negative"_a.noconvert(), "row_weight"_a.noconvert(), nb::kw_only(), "first_node"_a, "last_node"_a,
        "initial"_a.none() = nb::none(), "initial_tree"_a = 0, "past"_a.noconvert(), "loss"_a, "l1"_a, "tolerance"_a,
        "max_epochs"_a, "threshold"_a, "bias"_a, "margin"_a, "weight_bits"_a, "seed"_a, "threads"_a,
        "progress"_a.none() = nb::none());
}

}  // namespace longleaf::python

// Training and searching, as Python calls them.
#include "bind/bind.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/kernels.h"
#include "files/scratch.h"
#include "search/forest.h"

using namespace nb::literals;

namespace longleaf::python {

void py_check_csr(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t cols, const std::string& name,
                  bool in_order) {
  const int64_t rows = int64_t(indptr.shape(0)) - 1, size = int64_t(indices.shape(0));
  auto fail = [&](const std::string& what) { throw std::invalid_argument(name + " must " + what); };
  if (rows < 0 || indptr.data()[0] != 0 || data.shape(0) != indices.shape(0))
    fail("be a well-formed CSR matrix; its arrays do not fit together.");
  for (int64_t row = 0; row < rows; ++row) {
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
  }
}

namespace {

// What makes each row one of unit length. A row shorter than the least number that a 32-bit float holds in full counts
// as empty: what its values are is rounded away, and its scale would be no 32-bit float.
Out<float> py_row_scales(In<int64_t> indptr, In<float> data) {
  check_ranges(indptr, data.shape(0), "indptr");
  std::vector<float> scale(indptr.shape(0) - 1, 0.0f);
  for (size_t row = 0; row < scale.size(); ++row) {
    double square = 0;
    for (int64_t i = indptr.data()[row]; i < indptr.data()[row + 1]; ++i)
      square += double(data.data()[i]) * data.data()[i];
    if (std::sqrt(square) >= std::numeric_limits<float>::min()) scale[row] = float(1 / std::sqrt(square));
  }
  return to_numpy(std::move(scale));
}

// NumPy sees a word as three numbers.
constexpr size_t kWordNumbers = sizeof(Word) / sizeof(uint32_t);
static_assert(kWordNumbers == 3 && alignof(Word) == alignof(uint32_t));

Out<uint32_t> words_to_numpy(std::vector<Word> words) {
  const size_t size = kWordNumbers * words.size();
  auto* kept = new std::vector<Word>(std::move(words));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Word>*>(p); });
  return Out<uint32_t>(reinterpret_cast<uint32_t*>(kept->data()), 1, &size, owner);
}

nb::dict to_dict(ChunkArrays arrays) {
  nb::dict out;
  out["node"] = to_numpy(std::move(arrays.node));
  out["dense"] = to_numpy(std::move(arrays.dense));
  out["word"] = to_numpy(std::move(arrays.word));
  out["byte"] = to_numpy(std::move(arrays.byte));
  out["weights"] = to_numpy(std::move(arrays.weights));
  out["page_words"] = to_numpy(std::move(arrays.page_words));
  out["page_first"] = to_numpy(std::move(arrays.page_first));
  out["words"] = words_to_numpy(std::move(arrays.words));
  out["bytes"] = to_numpy(std::move(arrays.bytes));
  out["low"] = to_numpy(std::move(arrays.low));
  out["step"] = to_numpy(std::move(arrays.step));
  out["bias"] = to_numpy(std::move(arrays.bias));
  return out;
}

template <class T>
In<T> array_of(nb::handle array, const char* name) {
  try {
    return nb::cast<In<T>>(array, false);
  } catch (const std::bad_cast&) {
    throw std::invalid_argument(std::string("the model is damaged: its array ") + name + " has another type or shape");
  }
}

template <class T>
In<T> field(const nb::dict& arrays, const char* name) {
  return array_of<T>(arrays[name], name);
}

// Holds the arrays of a model alive as long as the native forest looks at them.
class PyForest {
 public:
  PyForest(nb::list first_child, nb::list label, nb::list weights, int64_t features, int64_t labels, int link) {
    std::vector<TreeView> trees;
    std::vector<ChunkView> chunks;
    std::vector<int64_t> sizes;
    for (size_t t = 0; t < nb::len(first_child); ++t) {
      const auto first = array_of<int32_t>(first_child[t], "first_child"), name = array_of<int32_t>(label[t], "label");
      check_size(first, int64_t(name.shape(0)) + 1, "first_child");
      trees.push_back({int64_t(name.shape(0)), first.data(), name.data()});
      chunks.push_back(view(nb::cast<nb::dict>(weights[t]), int64_t(name.shape(0)), features, sizes));
    }
    kept_ = nb::make_tuple(first_child, label, weights);
    forest_ = std::make_unique<Forest>(std::move(trees), std::move(chunks), std::move(sizes), labels, link);
  }
  const Forest& get() const { return *forest_; }

 private:
  static ChunkView view(const nb::dict& w, int64_t nodes, int64_t features, std::vector<int64_t>& sizes) {
    const auto node = field<int32_t>(w, "node");
    const auto dense = field<uint8_t>(w, "dense"), bytes = field<uint8_t>(w, "bytes");
    const auto word = field<int64_t>(w, "word"), byte = field<int64_t>(w, "byte");
    const auto page_words = field<uint64_t>(w, "page_words");
    const auto page_first = field<uint32_t>(w, "page_first"), words = field<uint32_t>(w, "words");
    const auto weights = field<int64_t>(w, "weights");
    const auto low = field<float>(w, "low"), bias = field<float>(w, "bias");
    const auto step = field<uint32_t>(w, "step");
    const size_t chunks = dense.shape(0), pages = chunks * size_t(page_count(features));
    if (node.shape(0) != chunks + 1 || word.shape(0) != chunks + 1 || byte.shape(0) != chunks + 1 ||
        weights.shape(0) != chunks || page_words.shape(0) != pages || page_first.shape(0) != pages ||
        words.shape(0) % kWordNumbers != 0 || bias.shape(0) != size_t(nodes) ||
        (low.shape(0) != 0 && low.shape(0) != chunks) || step.shape(0) != low.shape(0) || bytes.shape(0) < 8)
      throw std::invalid_argument("the model is damaged: the weight arrays do not fit together");
    sizes.insert(sizes.end(), {int64_t(words.shape(0) / kWordNumbers), int64_t(bytes.shape(0)) - 8});
    return {int64_t(chunks),
            nodes,
            features,
            node.data(),
            dense.data(),
            word.data(),
            byte.data(),
            weights.data(),
            page_words.data(),
            page_first.data(),
            reinterpret_cast<const Word*>(words.data()),
            bytes.data(),
            low.shape(0) ? low.data() : nullptr,
            step.data(),
            bias.data()};
  }
  nb::object kept_;
  std::unique_ptr<Forest> forest_;
};

nb::tuple py_label_centroids(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t features,
                             In<float> row_scale, In<int64_t> label_indptr, In<int32_t> label_rows, int threads) {
  const CsrView X = csr(indptr, indices, data, features), members = csr(label_indptr, label_rows, nullptr, 0);
  check_size(row_scale, X.rows, "row_scale");
  check_below(label_rows, X.rows, "label_rows");
  LabelCentroids out;
  PythonWork(nb::none()).run([&](Work& work) { out = label_centroids(X, row_scale.data(), members, threads, work); });
  return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.indices)),
                        to_numpy(std::move(out.data)));
}

nb::tuple py_cluster_labels(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t features, int arity,
                            int max_leaf, int max_iterations, double tolerance, bool balanced, uint64_t seed,
                            int threads) {
  const CsrView centroids = csr(indptr, indices, data, features);
  check_below(indices, features, "indices");
  Clusters out;
  PythonWork(nb::none()).run([&](Work& work) {
    out = cluster_labels(centroids, {arity, max_leaf, max_iterations, tolerance, balanced, seed, threads}, work);
  });
  return nb::make_tuple(to_numpy(std::move(out.order)), to_numpy(std::move(out.begin)), to_numpy(std::move(out.end)),
                        to_numpy(std::move(out.parent)));
}

nb::tuple py_node_rows(In<int64_t> label_indptr, In<int32_t> label_indices, int64_t labels, In<int32_t> first_child,
                       In<int32_t> label) {
  const CsrView Y = csr(label_indptr, label_indices, nullptr, labels);
  check_below(label_indices, labels, "label_indices");
  NodeRowLists out = assign_rows(Y, tree_view(first_child, label));
  return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.rows)));
}

nb::tuple py_training_units(In<int64_t> node_indptr, In<int32_t> first_child, In<int32_t> label) {
  const TreeView tree = tree_view(first_child, label);
  check_size(node_indptr, tree.nodes + 1, "node_indptr");
  check_ranges(node_indptr, std::numeric_limits<int64_t>::max(), "node_indptr");
  TrainingUnits out = training_units(tree, {node_indptr.data()});
  return nb::make_tuple(to_numpy(std::move(out.first_node)), to_numpy(std::move(out.cost)));
}

// The tree that training goes on from must be the one that is trained.
void check_initial(const Forest& forest, int64_t tree, const TreeView& trained, int64_t features) {
  if (tree < 0 || tree >= int64_t(forest.parts().size()))
    throw std::invalid_argument("initial_tree must name a tree of initial");
  const TreeView& start = forest.parts()[size_t(tree)].tree;
  if (forest.features() != features || start.nodes != trained.nodes ||
      !std::equal(start.first_child, start.first_child + start.nodes + 1, trained.first_child))
    throw std::invalid_argument("initial must have the shape of the tree that is trained");
}

nb::tuple py_train_nodes(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t features, In<float> row_scale,
                         In<int64_t> node_indptr, In<int32_t> node_rows, In<float> positive_factor,
                         In<int32_t> first_child, In<int32_t> label, In<float> c_positive, In<float> c_negative,
                         In<float> row_weight, int32_t first_node, int32_t last_node, const PyForest* initial,
                         int64_t initial_tree, In<float> past, int loss, bool l1, double tolerance, int max_epochs,
                         float threshold, float bias, int weight_bits, uint64_t seed, int threads,
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
  if (initial) check_initial(initial->get(), initial_tree, tree, features);
  const TrainingData task{X,
                          row_scale.data(),
                          given(row_weight),
                          tree,
                          {node_indptr.data(), node_rows.data(), given(positive_factor)},
                          c_positive.data(),
                          c_negative.data(),
                          initial ? &initial->get() : nullptr,
                          initial_tree,
                          given(past)};
  ChunkArrays out;
  TrainReport report;
  PythonWork(std::move(progress)).run([&](Work& work) {
    out = (l1 ? train_l1 : train_nodes)(
        task, first_node, last_node, {Loss(loss), tolerance, max_epochs, threshold, bias, weight_bits, seed, threads},
        work, report);
  });
  nb::dict facts;
  facts["epochs"] = report.epochs;
  facts["row_visits"] = report.row_visits;
  facts["unfinished"] = report.unfinished;
  return nb::make_tuple(to_dict(std::move(out)), facts);
}

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
    float* apart = log_gain.shape(0) ? probabilities.data() : nullptr;
    top_k(forest.get(), X, row_scale.data(), settings, work, {labels.data(), scores.data(), apart, evaluations.data()});
  };
  if (threads == 1 && rows <= 16 && progress.is_none()) {  // a few rows: no thread is worth starting
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
  PythonWork(nb::none()).run([&](Work& work) {
    probabilities(forest.get(), X, row_scale.data(), rows.data(), labels.data(), int64_t(labels.shape(0)), threads,
                  work, out.data());
  });
  return to_numpy(std::move(out));
}

Out<float> py_node_weights(const PyForest& forest, int64_t tree, int32_t node, In<int32_t> features) {
  const auto& parts = forest.get().parts();
  if (tree < 0 || tree >= int64_t(parts.size()) || node < 1 || node >= parts[size_t(tree)].tree.nodes)
    throw std::invalid_argument("tree and node must name a node below a root");
  const int32_t *begin = features.data(), *end = begin + features.shape(0);
  if (std::any_of(begin, end, [&](int32_t f) { return f < 0 || f >= forest.get().features(); }))
    throw std::invalid_argument("features must be below the model's number of them");
  return to_numpy(forest.get().node_weights(tree, node, begin, end - begin));
}

nb::tuple py_chunk_entries(const PyForest& forest, int64_t tree, int64_t chunk) {
  const auto& parts = forest.get().parts();
  if (tree < 0 || tree >= int64_t(parts.size()) || chunk < 0 || chunk >= parts[size_t(tree)].chunks.chunks)
    throw std::invalid_argument("tree and chunk must name a chunk of the model");
  ChunkEntries out = forest.get().chunk_entries(tree, chunk);
  return nb::make_tuple(to_numpy(std::move(out.feature)), to_numpy(std::move(out.child)),
                        to_numpy(std::move(out.value)));
}

nb::dict py_assemble_chunks(In<int32_t> first_child, In<int32_t> label, nb::list features, nb::list children,
                            nb::list values, In<float> bias, int64_t n_features, int weight_bits) {
  const TreeView tree = tree_view(first_child, label);
  std::vector<int32_t> nodes = chunk_nodes(tree);
  check_size(bias, tree.nodes, "bias");
  if (nb::len(features) + 1 != nodes.size() || nb::len(children) + 1 != nodes.size() ||
      nb::len(values) + 1 != nodes.size())
    throw std::invalid_argument("features, children and values must have an array per chunk");
  std::vector<PackedChunk> packed;
  for (size_t c = 0; c < nb::len(features); ++c) {
    const auto f = nb::cast<In<int32_t>>(features[c], false);
    const auto child = nb::cast<In<uint8_t>>(children[c], false);
    const auto value = nb::cast<In<float>>(values[c], false);
    const int width = nodes[c + 1] - nodes[c];
    check_size(child, int64_t(f.shape(0)), "children");
    check_size(value, int64_t(f.shape(0)), "values");
    check_below(f, n_features, "features");
    if (std::any_of(child.data(), child.data() + child.shape(0), [&](uint8_t place) { return place >= width; }))
      throw std::invalid_argument("children must be places in their chunk");
    const ChunkEntries entries{{f.data(), f.data() + f.shape(0)},
                               {child.data(), child.data() + child.shape(0)},
                               {value.data(), value.data() + value.shape(0)}};
    packed.push_back(pack_chunk(entries, width, n_features, weight_bits));
  }
  return to_dict(
      join_chunks(std::move(nodes), std::move(packed), {bias.data(), bias.data() + bias.shape(0)}, weight_bits));
}

nb::dict py_regroup_chunks(const PyForest& forest, int64_t tree, In<int32_t> first_child, In<int32_t> label,
                           In<int64_t> origin, In<float> bias, int threads) {
  const auto& parts = forest.get().parts();
  if (tree < 0 || tree >= int64_t(parts.size())) throw std::invalid_argument("tree must name a tree of the model");
  const ChunkView& old = parts[size_t(tree)].chunks;
  const size_t nodes = label.shape(0);
  const TreeView grown = tree_view(first_child, label);
  if (origin.shape(0) != nodes || bias.shape(0) != nodes ||
      std::any_of(origin.data(), origin.data() + nodes, [&](int64_t v) { return v >= old.nodes; }))
    throw std::invalid_argument("origin and bias must have an element per node; origin must name the model's nodes");
  ChunkArrays out;
  PythonWork(nb::none()).run([&](Work& work) {
    out = regroup_chunks(old, grown, origin.data(), bias.data(), old.low ? 8 : 32, threads, work);
  });
  return to_dict(std::move(out));
}

}  // namespace

void bind_engine(nb::module_& m) {
  m.attr("CHUNK_WIDTH") = kChunkWidth;
  m.def("set_scratch", &set_scratch, "folder"_a, "smallest"_a);
  m.def("simd", [] { return std::string(kernels().name); });
  m.def("check_csr", &py_check_csr, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(), "cols"_a,
        "name"_a, "in_order"_a = false);
  m.def("row_scales", &py_row_scales, "indptr"_a.noconvert(), "data"_a.noconvert());
  m.def("label_centroids", &py_label_centroids, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
        "features"_a, "row_scale"_a.noconvert(), "label_indptr"_a.noconvert(), "label_rows"_a.noconvert(), "threads"_a);
  m.def("cluster_labels", &py_cluster_labels, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
        "features"_a, nb::kw_only(), "arity"_a, "max_leaf"_a, "max_iterations"_a, "tolerance"_a, "balanced"_a, "seed"_a,
        "threads"_a);
  m.def("node_rows", &py_node_rows, "label_indptr"_a.noconvert(), "label_indices"_a.noconvert(), "labels"_a,
        "first_child"_a.noconvert(), "label"_a.noconvert());
  m.def("training_units", &py_training_units, "node_indptr"_a.noconvert(), "first_child"_a.noconvert(),
        "label"_a.noconvert());
  m.def("train_nodes", &py_train_nodes, "indptr"_a.noconvert(), "indices"_a.noconvert(), "data"_a.noconvert(),
        "features"_a, "row_scale"_a.noconvert(), "node_indptr"_a.noconvert(), "node_rows"_a.noconvert(),
        "positive_factor"_a.noconvert(), "first_child"_a.noconvert(), "label"_a.noconvert(), "c_positive"_a.noconvert(),
        "c_negative"_a.noconvert(), "row_weight"_a.noconvert(), nb::kw_only(), "first_node"_a, "last_node"_a,
        "initial"_a.none() = nb::none(), "initial_tree"_a = 0, "past"_a.noconvert(), "loss"_a, "l1"_a, "tolerance"_a,
        "max_epochs"_a, "threshold"_a, "bias"_a, "weight_bits"_a, "seed"_a, "threads"_a,
        "progress"_a.none() = nb::none());
  m.def("assemble_chunks", &py_assemble_chunks, "first_child"_a.noconvert(), "label"_a.noconvert(), "features"_a,
        "children"_a, "values"_a, "bias"_a.noconvert(), "n_features"_a, "weight_bits"_a);
  nb::class_<PyForest>(m, "Forest")
      .def(nb::init<nb::list, nb::list, nb::list, int64_t, int64_t, int>(), "first_child"_a, "label"_a, "weights"_a,
           "features"_a, "labels"_a, "link"_a)
      .def("regroup_chunks", &py_regroup_chunks, "tree"_a, "first_child"_a.noconvert(), "label"_a.noconvert(),
           "origin"_a.noconvert(), "bias"_a.noconvert(), "threads"_a)
      .def(
          "check",
          [](const PyForest& f, int threads) {
            PythonWork(nb::none()).run([&](Work& work) { f.get().check(threads, work); });
          },
          "threads"_a)
      .def("chunk_entries", &py_chunk_entries, "tree"_a, "chunk"_a)
      .def("node_weights", &py_node_weights, "tree"_a, "node"_a, "features"_a.noconvert())
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

// A model's trees and their packed weights, as Python holds them.

#include <algorithm>
#include <vector>

#include "bind/bind.h"
#include "bind/forest.h"

using namespace nb::literals;

namespace longleaf::python {

namespace {

Out<uint32_t> words_to_numpy(std::vector<Word> words) {
  const size_t size = kWordNumbers * words.size();
  auto* kept = new std::vector<Word>(std::move(words));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Word>*>(p); });
  return Out<uint32_t>(reinterpret_cast<uint32_t*>(kept->data()), 1, &size, owner);
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

ChunkView view_of(const nb::dict& w, int64_t nodes, int64_t features, std::vector<int64_t>& sizes) {
  const auto node = field<int32_t>(w, "node");
  const auto bytes = field<uint8_t>(w, "bytes");
  const auto word = field<int64_t>(w, "word"), byte = field<int64_t>(w, "byte");
  const auto page_words = field<uint64_t>(w, "page_words");
  const auto page_first = field<uint32_t>(w, "page_first"), words = field<uint32_t>(w, "words");
  const auto weights = field<int64_t>(w, "weights");
  const auto low = field<float>(w, "low"), bias = field<float>(w, "bias");
  const auto step = field<uint32_t>(w, "step");
  const size_t chunks = weights.shape(0), pages = chunks * size_t(page_count(features));
  if (node.shape(0) != chunks + 1 || word.shape(0) != chunks + 1 || byte.shape(0) != chunks + 1 ||
      page_words.shape(0) != pages || page_first.shape(0) != pages || words.shape(0) % kWordNumbers != 0 ||
      bias.shape(0) != size_t(nodes) || (low.shape(0) != 0 && low.shape(0) != chunks) ||
      step.shape(0) != low.shape(0) || bytes.shape(0) < size_t(kSpareBytes))
    throw std::invalid_argument("the model is damaged: the weight arrays do not fit together");
  sizes.insert(sizes.end(), {int64_t(words.shape(0) / kWordNumbers), int64_t(bytes.shape(0)) - kSpareBytes});
  return {int64_t(chunks),   nodes,
          features,          node.data(),
          word.data(),       byte.data(),
          weights.data(),    page_words.data(),
          page_first.data(), reinterpret_cast<const Word*>(words.data()),
          bytes.data(),      low.shape(0) ? low.data() : nullptr,
          step.data(),       bias.data()};
}

}  // namespace

nb::dict to_dict(ChunkArrays arrays) {
  nb::dict out;
  out["node"] = to_numpy(std::move(arrays.node));
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

PyForest::PyForest(nb::list first_child, nb::list label, nb::list weights, int64_t features, int64_t labels, int link,
                   bool refined) {
  std::vector<TreeView> trees;
  std::vector<ChunkView> chunks;
  std::vector<int64_t> sizes;
  for (size_t t = 0; t < nb::len(first_child); ++t) {
    const auto first = array_of<int32_t>(first_child[t], "first_child"), name = array_of<int32_t>(label[t], "label");
    check_size(first, int64_t(name.shape(0)) + 1, "first_child");
    trees.push_back({int64_t(name.shape(0)), first.data(), name.data()});
    chunks.push_back(view_of(nb::cast<nb::dict>(weights[t]), int64_t(name.shape(0)), features, sizes));
  }
  kept_ = nb::make_tuple(first_child, label, weights);
  forest_ = std::make_unique<Forest>(std::move(trees), std::move(chunks), std::move(sizes), labels, link, refined);
}

const Forest::Tree& PyForest::tree(int64_t t, const char* name) const {
  if (t < 0 || t >= int64_t(forest_->trees().size()) + (forest_->refined() != nullptr))
    throw std::invalid_argument(std::string(name) + " must name a tree of the model");
  return forest_->tree(t);
}

namespace {

nb::tuple py_chunk_entries(const PyForest& forest, int64_t tree, int64_t chunk) {
  if (chunk < 0 || chunk >= forest.tree(tree, "tree").chunks.chunks)
    throw std::invalid_argument("tree and chunk must name a chunk of the model");
  ChunkEntries out = forest.get().chunk_entries(tree, chunk);
  return nb::make_tuple(to_numpy(std::move(out.feature)), to_numpy(std::move(out.child)),
                        to_numpy(std::move(out.value)));
}

// The entries of a chunk as Python passes them.
struct GivenEntries {
  In<int32_t> feature;
  In<uint8_t> child;
  In<float> value;

  ChunkEntries checked(int width, int64_t n_features) const {
    check_size(child, int64_t(feature.shape(0)), "children");
    check_size(value, int64_t(feature.shape(0)), "values");
    check_below(feature, n_features, "features");
    if (std::any_of(child.data(), child.data() + child.shape(0), [&](uint8_t place) { return place >= width; }))
      throw std::invalid_argument("children must be places in their chunk");
    return {{feature.data(), feature.data() + feature.shape(0)},
            {child.data(), child.data() + child.shape(0)},
            {value.data(), value.data() + value.shape(0)}};
  }
};

nb::dict py_assemble_chunks(In<int32_t> first_child, In<int32_t> label, nb::list features, nb::list children,
                            nb::list values, In<float> bias, int64_t n_features, int weight_bits) {
  const TreeView tree = tree_view(first_child, label);
  std::vector<int32_t> nodes = chunk_nodes(tree);
  check_size(bias, tree.nodes, "bias");
  if (nb::len(features) + 1 != nodes.size() || nb::len(children) + 1 != nodes.size() ||
      nb::len(values) + 1 != nodes.size())
    throw std::invalid_argument("features, children and values must have an array per chunk");
  std::vector<GivenEntries> given;
  size_t entries = 0;
  for (size_t c = 0; c + 1 < nodes.size(); ++c) {
    given.push_back({nb::cast<In<int32_t>>(features[c], false), nb::cast<In<uint8_t>>(children[c], false),
                     nb::cast<In<float>>(values[c], false)});
    entries += given.back().feature.shape(0);
  }
  std::vector<PackedChunk> packed(given.size());
  ChunkArrays out;
  run_watched(entries, [&](Work& work) {
    work.for_each(int64_t(given.size()), 1, [&](int64_t c, int) {
      const int width = nodes[size_t(c) + 1] - nodes[size_t(c)];
      packed[size_t(c)] = pack_chunk(given[size_t(c)].checked(width, n_features), width, n_features, weight_bits);
    });
    work.run([&] {
      out = join_chunks(std::move(nodes), std::move(packed), {bias.data(), bias.data() + bias.shape(0)}, weight_bits);
    });
  });
  return to_dict(std::move(out));
}

nb::dict py_regroup_chunks(const PyForest& forest, int64_t tree, In<int32_t> first_child, In<int32_t> label,
                           In<int64_t> origin, In<float> bias, int threads) {
  const ChunkView& old = forest.tree(tree, "tree").chunks;
  const size_t nodes = label.shape(0);
  const TreeView grown = tree_view(first_child, label);
  if (origin.shape(0) != nodes || bias.shape(0) != nodes ||
      std::any_of(origin.data(), origin.data() + nodes, [&](int64_t v) { return v >= old.nodes; }))
    throw std::invalid_argument("origin and bias must have an element per node; origin must name the model's nodes");
  ChunkArrays out;
  PythonWork().run([&](Work& work) {
    out = regroup_chunks(old, grown, origin.data(), bias.data(), old.low ? 8 : 32, threads, work);
  });
  return to_dict(std::move(out));
}

Out<float> py_node_weights(const PyForest& forest, int64_t tree, int32_t node, In<int32_t> features) {
  if (node < 1 || node >= forest.tree(tree, "tree").view.nodes)
    throw std::invalid_argument("tree and node must name a node below a root");
  const int32_t *begin = features.data(), *end = begin + features.shape(0);
  if (std::any_of(begin, end, [&](int32_t f) { return f < 0 || f >= forest.get().features(); }))
    throw std::invalid_argument("features must be below the model's number of them");
  return to_numpy(forest.get().node_weights(tree, node, begin, end - begin));
}

}  // namespace

void bind_forest_weights(nb::class_<PyForest>& forest) {
  forest
      .def("regroup_chunks", &py_regroup_chunks, "tree"_a, "first_child"_a.noconvert(), "label"_a.noconvert(),
           "origin"_a.noconvert(), "bias"_a.noconvert(), "threads"_a)
      .def(
          "check",
          [](const PyForest& f, int threads) { PythonWork().run([&](Work& work) { f.get().check(threads, work); }); },
          "threads"_a)
      .def("chunk_entries", &py_chunk_entries, "tree"_a, "chunk"_a)
      .def("node_weights", &py_node_weights, "tree"_a, "node"_a, "features"_a.noconvert());
}

void bind_weights(nb::module_& m) {
  m.attr("CHUNK_WIDTH") = kChunkWidth;
  m.attr("PAGE_FEATURES") = kPageFeatures;
  m.attr("WORD_FEATURES") = kWordFeatures;
  m.attr("WORD_NUMBERS") = kWordNumbers;
  m.attr("SPARE_BYTES") = kSpareBytes;
  m.attr("DENSE_WORD") = kDenseWord;
  m.attr("CHUNK_BYTES") = kChunkBytes;
  m.attr("LEVEL_BYTES") = kLevelBytes;
  m.attr("PAGE_BYTES") = kPageBytes;
  m.attr("ENTRY_BYTES") = kEntryBytes;
  m.def("assemble_chunks", &py_assemble_chunks, "first_child"_a.noconvert(), "label"_a.noconvert(), "features"_a,
        "children"_a, "values"_a, "bias"_a.noconvert(), "n_features"_a, "weight_bits"_a);
}

}  // namespace longleaf::python

// Checks a model's arrays, and evaluates the classifiers of a family of siblings for one row.
#include "forest.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace longleaf {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("the model is damaged: ") + what);
}

void check_tree(const TreeView& tree, int64_t labels) {
  require(tree.nodes >= 1 && tree.first_child[0] == 1, "a tree must begin with its root");
  require(tree.first_child[tree.nodes] == tree.nodes, "a tree's children must cover all its nodes");
  for (int64_t v = 0; v < tree.nodes; ++v) {
    require(tree.first_child[v] <= tree.first_child[v + 1], "a tree's children must be in order");
    require(tree.is_leaf(v) || tree.first_child[v] > v, "a tree's children must come after their parent");
    require(tree.is_leaf(v) ? tree.label[v] >= 0 && tree.label[v] < labels : tree.label[v] == -1,
            "every leaf, and no other node, must have a label");
  }
}

void check_ranges(const int64_t* range, int64_t chunks, int64_t size, const char* what) {
  require(range[0] == 0 && range[chunks] == size, what);
  for (int64_t c = 0; c < chunks; ++c) require(range[c] <= range[c + 1], what);
}

}  // namespace

// sizes: per tree, the lengths of bucket (in pairs), key and child.
Forest::Forest(std::vector<TreeView> trees, std::vector<ChunkView> chunks, std::vector<int64_t> sizes, int64_t labels,
               Loss loss)
    : labels_(labels), features_(chunks.empty() ? 0 : chunks[0].features), loss_(loss) {
  require(!trees.empty(), "it must have at least one tree");
  int64_t first_node = 0;
  for (size_t t = 0; t < trees.size(); ++t) {
    check_tree(trees[t], labels);
    Part part{trees[t], chunks[t], {}, {}, {}, first_node, nullptr};
    const TreeView& tree = part.tree;
    first_node += tree.nodes;
    require(part.chunks.features == features_, "the trees must have the same number of features");
    const std::vector<int32_t> nodes = chunk_nodes(tree);
    require(int64_t(nodes.size()) == part.chunks.chunks + 1 && std::equal(nodes.begin(), nodes.end(), part.chunks.node),
            "the weight chunks must follow the tree");
    check_ranges(part.chunks.bucket_range, part.chunks.chunks, sizes[3 * t], "the weights' buckets are out of order");
    check_ranges(part.chunks.slot, part.chunks.chunks, sizes[3 * t + 1], "the weights' slots are out of order");
    check_ranges(part.chunks.entry, part.chunks.chunks, sizes[3 * t + 2], "the weights' entries are out of order");
    part.parent.assign(tree.nodes, -1);
    part.leaf.assign(labels, -1);
    part.family_chunk.assign(tree.nodes, -1);
    int32_t chunk = 0;
    for (int64_t v = 0; v < tree.nodes; ++v) {
      if (tree.is_leaf(v)) {
        require(part.leaf[tree.label[v]] < 0, "a label must have one leaf");
        part.leaf[tree.label[v]] = int32_t(v);
        continue;
      }
      part.family_chunk[v] = chunk;
      std::fill(part.parent.begin() + tree.first_child[v], part.parent.begin() + tree.first_child[v + 1], int32_t(v));
      chunk += (tree.first_child[v + 1] - tree.first_child[v] + kChunkWidth - 1) / kChunkWidth;
    }
    part.checked = std::make_unique<std::atomic<bool>[]>(size_t(part.chunks.chunks));
    parts_.push_back(std::move(part));
  }
}

Forest::~Forest() = default;

std::vector<float> Forest::log_bounds(const float* log_gain) const {
  std::vector<float> bounds;
  for (const Part& part : parts_) {
    const TreeView& tree = part.tree;
    const size_t first = bounds.size();
    bounds.resize(first + size_t(tree.nodes), -INFINITY);
    float* bound = bounds.data() + first;
    for (int64_t v = tree.nodes - 1; v >= 0; --v) {  // children come after their parents
      if (tree.is_leaf(v)) bound[v] = log_gain ? log_gain[tree.label[v]] : 0.0f;
      if (v > 0) bound[part.parent[v]] = std::max(bound[part.parent[v]], bound[v]);
    }
  }
  return bounds;
}

namespace {

// Adds value * weight of every entry of the query's features. Decode turns an entry's number into its weight.
template <class Decode>
void add_products(const ChunkView& w, int64_t c, const Query& query, float* margin, Decode decode) {
  const int shift = w.shift[c];
  const uint32_t low_bits = (1u << shift) - 1;
  const uint32_t* bucket = w.bucket + 2 * w.bucket_range[c];
  const uint16_t* key = w.key + w.slot[c];
  const uint8_t* count = w.count + w.slot[c];
  for (int64_t i = 0; i < query.size; ++i) {
    const uint32_t feature = uint32_t(query.feature[i]);
    const uint32_t* b = bucket + 2 * (feature >> shift);
    const uint16_t wanted = uint16_t(feature & low_bits);
    int64_t entry = w.entry[c] + b[1];
    for (uint32_t s = b[0]; s < b[2]; ++s) {
      const int entries = count[s] + 1;
      if (key[s] == wanted) {
        const float value = query.value[i] * query.scale;
        for (int64_t e = entry; e < entry + entries; ++e) margin[w.child[e]] += value * decode(e);
        break;
      }
      entry += entries;
    }
  }
}

}  // namespace

void family_margins(const Forest::Part& part, int32_t node, const Query& query, float* margin) {
  const TreeView& tree = part.tree;
  const ChunkView& w = part.chunks;
  const int32_t begin = tree.first_child[node], end = tree.first_child[node + 1];
  std::copy(w.bias + begin, w.bias + end, margin);
  int64_t c = part.family_chunk[node];
  for (int32_t first = begin; first < end; first += kChunkWidth, ++c) {
    if (!part.checked[c].load(std::memory_order_acquire)) {
      check_chunk(w, c);
      part.checked[c].store(true, std::memory_order_release);
    }
    if (w.codes)
      add_products(w, c, query, margin + (first - begin), [&w](int64_t e) { return w.codebook[w.codes[e]]; });
    else
      add_products(w, c, query, margin + (first - begin), [&w](int64_t e) { return w.values[e]; });
  }
}

}  // namespace longleaf

// Checks a model's arrays, and evaluates the classifiers of a family of siblings for one row.
#include "search/forest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

namespace longleaf {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// A chunk's bytes are only looked at when something first needs them: most of a large model may stay on disk.
void check_once(const Forest::Tree& tree, int64_t chunk) {
  if (tree.checked[chunk].load(std::memory_order_acquire)) return;
  check_chunk(tree.chunks, chunk);
  tree.checked[chunk].store(true, std::memory_order_release);
}

void check_ranges(const int64_t* range, int64_t chunks, int64_t size, const char* what) {
  require(range[0] == 0 && range[chunks] == size, what);
  for (int64_t c = 0; c < chunks; ++c) require(range[c] <= range[c + 1], what);
}

// sizes: the lengths of words and bytes.
void check_weights(const ChunkView& chunks, const TreeView& tree, const int64_t* sizes) {
  const std::vector<int32_t> nodes = chunk_nodes(tree);
  require(int64_t(nodes.size()) == chunks.chunks + 1 && std::equal(nodes.begin(), nodes.end(), chunks.node),
          "the weight chunks must follow the tree");
  check_ranges(chunks.word, chunks.chunks, sizes[0], "the weights' words must be in order");
  check_ranges(chunks.byte, chunks.chunks, sizes[1], "the weights' bytes must be in order");
  for (int64_t c = 0; c < chunks.chunks; ++c)
    require(has_sound_numbers(chunks, c), "a weight chunk's low, step and number of weights must be possible");
  for (int64_t v = 0; v < tree.nodes; ++v)
    require(std::fabs(chunks.bias[v]) <= kMostWeight, "every bias must be a number from -1e15 to 1e15");
}

// first_node, first_chunk: how many the trees before have; sizes: the lengths of words and bytes.
Forest::Tree checked_tree(const TreeView& view, const ChunkView& chunks, const int64_t* sizes, int64_t labels,
                          int64_t first_node, int64_t first_chunk) {
  check_tree(view, labels);
  check_weights(chunks, view, sizes);
  Forest::Tree tree{view, chunks, {}, {}, {}, first_node, first_chunk, 0, 0, nullptr};
  tree.parent.assign(view.nodes, -1);
  tree.leaf.assign(labels, -1);
  tree.family_chunk.assign(view.nodes, -1);
  int32_t chunk = 0;
  for (int64_t v = 0; v < view.nodes; ++v) {
    if (view.is_leaf(v)) {
      require(tree.leaf[view.label[v]] < 0, "a label must have one leaf");
      tree.leaf[view.label[v]] = int32_t(v);
      ++tree.leaves;
      continue;
    }
    if (tree.has_only_leaves(int32_t(v))) ++tree.leaf_families;
    tree.family_chunk[v] = chunk;
    std::fill(tree.parent.begin() + view.first_child[v], tree.parent.begin() + view.first_child[v + 1], int32_t(v));
    chunk += (view.first_child[v + 1] - view.first_child[v] + kChunkWidth - 1) / kChunkWidth;
  }
  tree.checked = std::make_unique<std::atomic<bool>[]>(size_t(chunks.chunks));
  return tree;
}

}  // namespace

Forest::Forest(std::vector<TreeView> trees, std::vector<ChunkView> chunks, std::vector<int64_t> sizes, int64_t labels,
               int link, bool refined)
    : labels_(labels), features_(chunks.empty() ? 0 : chunks[0].features), link_(link) {
  if (trees.empty()) throw std::invalid_argument("the model is damaged: it must have at least one tree");
  int64_t first_node = 0, first_chunk = 0;
  for (size_t t = 0; t < trees.size(); ++t) {
    try {
      require(chunks[t].features == features_, "the trees must have the same number of features");
      trees_.push_back(checked_tree(trees[t], chunks[t], &sizes[2 * t], labels, first_node, first_chunk));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("the model is damaged: in " +
                                  (refined && t + 1 == trees.size() ? "refined" : "tree" + std::to_string(t)) + ", " +
                                  error.what() + ".");
    }
    first_node += trees[t].nodes;
    first_chunk += chunks[t].chunks;
  }
  if (!refined) return;
  if (trees_.size() < 2) throw std::invalid_argument("the model is damaged: it must have at least one tree");
  refined_ = std::make_unique<Tree>(std::move(trees_.back()));
  trees_.pop_back();
  for (size_t t = 0; t < trees_.size(); ++t)
    singles_.push_back(std::make_unique<Forest>(std::vector{trees[t]}, std::vector{chunks[t]},
                                                std::vector{sizes[2 * t], sizes[2 * t + 1]}, labels, link, false));
}

Forest::~Forest() = default;

const Forest::Tree& Forest::tree(int64_t t) const {
  return size_t(t) < trees_.size() || !refined_ ? trees_.at(size_t(t)) : *refined_;
}

int64_t Forest::nodes() const { return trees_.back().first_node + trees_.back().view.nodes; }

void Forest::check(int threads, Work& work) const {
  const auto check_all = [&](const Tree& tree) {
    work.for_each(tree.chunks.chunks, threads, [&](int64_t chunk, int) { check_once(tree, chunk); });
  };
  std::for_each(trees_.begin(), trees_.end(), check_all);
  if (refined_) check_all(*refined_);
}

ChunkEntries Forest::chunk_entries(int64_t t, int64_t chunk) const {
  const ChunkView& chunks = tree(t).chunks;
  check_chunk(chunks, chunk);
  return unpack_chunk(chunks, chunk);
}

std::vector<float> Forest::node_weights(int64_t t, int32_t node, const int32_t* features, int64_t size) const {
  const Tree& tree = this->tree(t);
  const int32_t* chunk = std::upper_bound(tree.chunks.node, tree.chunks.node + tree.chunks.chunks, node) - 1;
  const int64_t c = chunk - tree.chunks.node;
  check_once(tree, c);
  std::vector<float> weights(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    float margin[kChunkWidth] = {};
    const float one = 1;
    kernels().add_products(chunk_at(tree.chunks, c), {features + i, &one, 1, 1.0f}, margin);
    weights[size_t(i)] = margin[node - *chunk];
  }
  return weights;
}

std::vector<float> Forest::log_bounds(const float* log_gain) const {
  std::vector<float> bounds;
  for (const Tree& tree : trees_) {
    const size_t first = bounds.size();
    bounds.resize(first + size_t(tree.view.nodes), -INFINITY);
    float* bound = bounds.data() + first;
    for (int64_t v = tree.view.nodes - 1; v >= 0; --v) {  // children come after their parents
      if (tree.view.is_leaf(v)) bound[v] = log_gain ? log_gain[tree.view.label[v]] : 0.0f;
      if (v > 0) bound[tree.parent[v]] = std::max(bound[tree.parent[v]], bound[v]);
    }
  }
  return bounds;
}

int64_t Forest::score_bounds_size() const {
  return (refined_ ? 1 : trees_.back().first_chunk + trees_.back().chunks.chunks) * kKnots;
}

std::vector<float> Forest::score_bounds(const float* log_gain, const ScoreMap& map, const Work& work) const {
  std::vector<float> bounds(size_t(score_bounds_size()), kNever);
  const auto row_of = [&](const Tree& tree, int32_t inner) {
    return bounds.data() + (tree.first_chunk + tree.family_chunk[inner]) * kKnots;
  };
  const auto raise = [](float* row, const float* by) {
    for (int i = 0; i < kKnots; ++i) row[i] = std::max(row[i], by[i]);
  };
  std::array<float, kKnots> own;
  for (int32_t label = 0; label < labels_; ++label) {
    work.check();
    const float gain = log_gain ? log_gain[label] : 0.0f;
    if (gain == kNever) continue;
    own.fill(kNever);
    map.of(label).raise_bounds(gain, own.data());
    if (refined_) raise(bounds.data(), own.data());
    if (refined_) continue;
    for (const Tree& tree : trees_)
      if (tree.leaf[label] > 0) raise(row_of(tree, tree.parent[tree.leaf[label]]), own.data());
  }
  for (size_t t = 0; t < trees_.size() && !refined_; ++t) {
    const Tree& tree = trees_[t];
    for (auto v = int32_t(tree.view.nodes - 1); v > 0; --v)  // children come after their parents
      if (!tree.view.is_leaf(v)) raise(row_of(tree, tree.parent[v]), row_of(tree, v));
  }
  return bounds;
}

namespace {

// Bounds of utilities: what a label's probability is at most at each knot, shared by labels of the same map.
class KnotProbabilities {
 public:
  explicit KnotProbabilities(const ScoreMap& map) : map_(map) {}

  const std::array<float, kKnots>& of(int32_t label, const ScoreShape& shape) {
    const LabelMap map = map_ ? map_.of(label) : LabelMap{1.0f, 0.0f, 0.0f, &shape};
    if (known_ && map.slope == slope_ && map.offset == offset_) return most_;
    slope_ = map.slope, offset_ = map.offset, known_ = true;
    most_.fill(kNever);
    map.raise_bounds(0.0f, most_.data());
    for (float& most : most_) most = std::exp(most);  // of a line it lies below the line to the next knot
    return most_;
  }

 private:
  const ScoreMap& map_;
  std::array<float, kKnots> most_{};
  float slope_ = 0, offset_ = 0;
  bool known_ = false;
};

// Rounds up to multiples of a number that is so large that lines between them are exact in a double: a bound then never
// falls towards the root.
class Grain {
 public:
  explicit Grain(const UtilityTable& utility) {
    double largest = 0;
    for (size_t j = 0; j < utility.a.size(); ++j)
      if (utility.b[j] != kNever)
        largest = std::max(largest, 2 * std::fabs(double(utility.a[j])) + std::fabs(double(utility.b[j])));
    grain_ = std::ldexp(1.0, std::max(-120, std::ilogb(std::max(largest, 1e-30)) - 20));
  }
  float up(float value) const {
    return value == kNever ? kNever : float((std::ceil(double(value) / grain_) + 1) * grain_);
  }

 private:
  double grain_;
};

}  // namespace

void Forest::bound_utility(UtilityTable& utility, const ScoreMap& map, const Work& work) const {
  utility.bounds.assign(size_t(score_bounds_size()), kNever);
  std::vector<int32_t> all(static_cast<size_t>(labels_));
  std::iota(all.begin(), all.end(), 0);
  bound_utility(utility, map, all, work);
}

// A row of bounds is computed from the children of its node, below before above.
void Forest::bound_utility(UtilityTable& utility, const ScoreMap& map, std::span<const int32_t> labels,
                           const Work& work) const {
  const Utility lines = utility.view();
  KnotProbabilities probabilities(map);
  const Grain grain(utility);
  const auto raise_by_label = [&](float* row, int32_t label) {
    if (lines.b[label] == kNever) return;
    const std::array<float, kKnots>& most = probabilities.of(label, utility.shape);
    for (int i = 0; i < kKnots; ++i) row[i] = std::max(row[i], grain.up(lines.most(label, double(most[i]))));
  };
  if (refined_) {  // what replaced labels were worth before may stay in the bound of all
    for (const int32_t label : labels) {
      work.check();
      raise_by_label(utility.bounds.data(), label);
    }
    return;
  }
  for (const Tree& tree : trees_) {
    const auto row_of = [&](int32_t inner) {
      return utility.bounds.data() + (tree.first_chunk + tree.family_chunk[inner]) * kKnots;
    };
    std::vector<bool> changed(size_t(tree.view.nodes));
    for (const int32_t label : labels)
      if (tree.leaf[label] >= 0)
        for (int32_t v = tree.parent[tree.leaf[label]]; v >= 0 && !changed[size_t(v)]; v = tree.parent[v])
          changed[size_t(v)] = true;
    for (auto v = int32_t(tree.view.nodes - 1); v >= 0; --v) {  // children come after their parents
      if (!changed[size_t(v)]) continue;
      work.check();
      float* row = row_of(v);
      std::fill_n(row, kKnots, kNever);
      for (int32_t child = tree.view.first_child[v]; child < tree.view.first_child[v + 1]; ++child) {
        if (tree.view.is_leaf(child)) {
          raise_by_label(row, tree.view.label[child]);
        } else {
          const float* below = row_of(child);
          for (int i = 0; i < kKnots; ++i) row[i] = std::max(row[i], below[i]);
        }
      }
    }
  }
}

void family_log_probabilities(const Forest::Tree& tree, int link, int32_t node, const Query& query, float above,
                              float* value) {
  const ChunkView& w = tree.chunks;
  const int32_t begin = tree.view.first_child[node], end = tree.view.first_child[node + 1];
  const Kernels& k = kernels();
  std::copy(w.bias + begin, w.bias + end, value);  // first the margins
  int64_t c = tree.family_chunk[node];
  for (int32_t first = begin; first < end; first += kChunkWidth, ++c) {
    check_once(tree, c);
    k.add_products(chunk_at(w, c), query, value + (first - begin));
  }
  if (link == kLogisticLink)
    k.logistic_log_probability(value, end - begin);
  else
    k.hinge_log_probability(value, end - begin, link);
  for (int32_t i = 0; i < end - begin; ++i) value[i] += above;
}

}  // namespace longleaf

// What a search knows of its row: the log probabilities, from the root down, of the nodes evaluated so far.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/kernels.h"
#include "search/forest.h"
#include "search/small_map.h"

namespace longleaf {

// The children of a node.
struct Family {
  int32_t tree, node;
};

class KnownNodes {
 public:
  void start(const Forest& forest, const Query& query) {
    forest_ = &forest;
    query_ = query;
    place_.clear();
    path_.clear();
  }

  // Evaluates the children of a node that is known itself; returns how many there are.
  int32_t evaluate(size_t t, int32_t node) {
    const Forest::Tree& tree = forest_->trees()[t];
    const int32_t begin = tree.view.first_child[node], size = tree.view.first_child[node + 1] - begin;
    const float above = log_probability(t, node);
    bool fresh;
    int32_t& place = place_.find(tree.first_node + node, fresh);
    place = int32_t(path_.size());
    path_.resize(path_.size() + size_t(size));
    family_log_probabilities(tree, forest_->link(), node, query_, above, &path_[size_t(place)]);
    return size;
  }

  bool has_children(size_t t, int32_t node) const {
    return place_.get(forest_->trees()[t].first_node + node) != nullptr;
  }

  // log eta of the children of a node, one after the other.
  const float* children(size_t t, int32_t node) const {
    return &path_[size_t(*place_.get(forest_->trees()[t].first_node + node))];
  }

  // log eta_v of a node whose family has been evaluated
  float log_probability(size_t t, int32_t node) const {
    if (node == 0) return 0.0f;
    const Forest::Tree& tree = forest_->trees()[t];
    const int32_t parent = tree.parent[node];
    return children(t, parent)[node - tree.view.first_child[parent]];
  }

  // The uppermost node on the path to `leaf` whose children are not evaluated; -1 if all are.
  int32_t first_unknown(size_t t, int32_t leaf) const {
    const Forest::Tree& tree = forest_->trees()[t];
    int32_t unknown = -1;
    for (int32_t v = tree.parent[leaf]; v >= 0; v = tree.parent[v]) {
      if (has_children(t, v)) break;
      unknown = v;
    }
    return unknown;
  }

  // log eta of a label in each tree, or that of its deepest evaluated ancestor; -inf where it has no leaf. Returns what
  // must be evaluated next to know more, its node -1 if everything is known.
  Family look_up(int32_t label, float* value) const {
    Family missing{0, -1};
    for (size_t t = 0; t < forest_->trees().size(); ++t) {
      const int32_t leaf = forest_->trees()[t].leaf[label];
      if (leaf < 0) {
        value[t] = -std::numeric_limits<float>::infinity();
        continue;
      }
      const int32_t unknown = first_unknown(t, leaf);
      value[t] = log_probability(t, unknown < 0 ? leaf : unknown);
      if (unknown >= 0 && missing.node < 0) missing = {int32_t(t), unknown};
    }
    return missing;
  }

  // log eta of a label in a tree, every family on its path evaluated on demand; -inf where it has no leaf.
  float label_log_probability(size_t t, int32_t label, int64_t& evaluations) {
    const int32_t leaf = forest_->trees()[t].leaf[label];
    if (leaf < 0) return -std::numeric_limits<float>::infinity();
    for (int32_t missing; (missing = first_unknown(t, leaf)) >= 0;) evaluations += evaluate(t, missing);
    return log_probability(t, leaf);
  }

 private:
  const Forest* forest_ = nullptr;
  Query query_{};
  SmallMap place_;           // node (through all trees) -> where its children begin in path_
  std::vector<float> path_;  // log eta_v
};

}  // namespace longleaf

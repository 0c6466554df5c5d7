// The search for the best k labels of one row.
//
// Problem: the k labels j with the largest score q_j * mean over the trees of eta_j(x), where eta_j is the product of
// the node probabilities on the path to j's leaf (Algorithm 1 of "Propensity-scored Probabilistic Label Trees").
// Given: the trees, a log gain per label and, per node, the log of the best gain below (the A* heuristic).
// Out: labels and scores, best first, provably the top k of the model's own scores.
//
// One tree: best-first search. A node's key is log eta_v + log max gain below v, which never grows towards the leaves,
// so once the best key left in the queue lies below the k-th score found, nothing better can follow. With all gains
// 1 this is uniform-cost search. A node is expanded only if its key reaches the k-th score: no search that knows the
// same bounds can do with fewer.
//
// Several trees: their searches are interleaved, always advancing the tree with the best key. A leaf that comes out of
// one tree is looked up in the others (whatever was evaluated is remembered), unless its bound, from its deepest
// evaluated ancestors, already lies below the k-th score. A label seen in no tree scores at most the mean of the trees'
// best keys; when that lies below the k-th score the search ends (the threshold algorithm of Fagin et al. 2003).
//
// With a score map (score_map.h) a label's score is not the mean of its scores in the trees, but it is at most the
// largest of them: a label seen in no tree scores at most the largest of the trees' best keys.
//
// Beam search (Algorithm 2) replaces the queue by the best `beam` inner nodes of each level. Leaves met on the way,
// also of unbalanced trees, and those nodes of the beam that have only leaves below are then searched best-first as
// above: the beam's own answer, without evaluating the families that cannot change it.
//
// Labels that the row has maps of its own for are left out by all of these and judged in the end.
//
// This is the search of a row by itself. Rows that come together are searched level by level (level_search.cpp), with
// the same answers. Where they cannot be, rows are searched a block at a time, each requesting the family it needs
// next, and the requests are served in the order of the weights in memory (search.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "search/beam.h"
#include "search/best_labels.h"
#include "search/forest.h"
#include "search/keys.h"
#include "search/known_nodes.h"
#include "search/overridden_labels.h"
#include "search/small_map.h"

namespace longleaf {

// A family of siblings that a row's search needs evaluated: the children of `node`.
struct NodeRequest {
  int32_t row, tree, node;
};

// One row's search. `advance` continues until it needs families evaluated, or is done.
class RowSearch {
 public:
  void start(const Forest& forest, const SearchSettings& settings, const Query& query, const RowOverrides& overrides) {
    forest_ = &forest;
    settings_ = &settings;
    known_.start(forest, query);
    const size_t trees = forest.trees().size();
    frontier_.resize(trees);
    beam_.resize(trees);
    popped_.assign(trees, 0);
    key_.resize(trees);
    for (auto& queue : frontier_) queue.clear();
    seen_.clear();
    best_.start(settings);
    overridden_.start(forest, settings, overrides);
    searched_ = false;
    requested_.clear();
    pending_ = -1;
    evaluations_ = 0;
    searching_beam_ = settings.beam > 0;
    for (size_t t = 0; t < trees; ++t) {
      const Forest::Tree& tree = forest.trees()[t];
      const float key = node_key(tree, settings, 0, 0.0f);
      beam_[t].clear();
      if (key == kNever) continue;
      if (searching_beam_ && !tree.view.is_leaf(0))
        beam_[t].begin({key, 0});
      else
        frontier_[t].push_back({key, 0});
    }
  }

  // Appends the families needed next; false when the search is over.
  bool advance(int32_t row, std::vector<NodeRequest>& requests) {
    requested_.clear();
    if (searching_beam_ && advance_beam()) {
      for (const NodeRequest& request : requested_) requests.push_back({row, request.tree, request.node});
      return true;
    }
    while (requested_.empty()) {
      if (pending_ >= 0) {
        look_up(pending_);
        continue;
      }
      const int tree = searched_ ? -1 : choose_tree();
      if (tree >= 0) {
        pop(tree);
        continue;
      }
      searched_ = true;
      const Family missing = overridden_.advance(known_, best_);
      if (missing.node < 0) return false;
      requested_.push_back({0, missing.tree, missing.node});
    }
    requests.push_back({row, requested_[0].tree, requested_[0].node});
    return true;
  }

  void evaluate(int32_t tree, int32_t node) {
    evaluations_ += known_.evaluate(size_t(tree), node);
    if (searching_beam_ || (!requested_.empty() && pending_ < 0 && !searched_)) open(tree, node);
  }

  void write(const Answers& answers, int64_t row) {
    best_.write(answers, row);
    answers.evaluations[row] += evaluations_;
  }

 private:
  // The tree to advance, or -1 when nothing unseen can enter any more.
  int choose_tree() {
    const size_t trees = frontier_.size();
    if (settings_->union_rule && trees > 1) {  // one tree's top k need no union
      for (size_t t = 0; t < trees; ++t)
        if (popped_[t] < settings_->k && !frontier_[t].empty()) return int(t);
      return -1;
    }
    size_t best = 0;
    for (size_t t = 0; t < trees; ++t) {
      key_[t] = frontier_[t].empty() ? kNever : frontier_[t].front().key;
      if (key_[t] > key_[best]) best = t;
    }
    const float bound = settings_->map ? key_[best] : log_mean(key_.data(), trees);
    return bound != kNever && bound + allowance(bound) >= best_.bar() ? int(best) : -1;
  }

  // Scores of several trees are sums in another order than their bounds; those of one tree are their bounds.
  float allowance(float log_score) const { return frontier_.size() > 1 ? rounding(log_score) : 0.0f; }

  // What a key of this tree must reach to matter: a label below it that has come out of no other tree scores at most
  // the mean of it and the others' best keys, or with a score map the largest of them. The bar only rises and those
  // only fall, so what is dropped would never matter.
  float entry_bar(int32_t t) const {
    const float bar = best_.bar();
    if (frontier_.size() == 1) return bar;
    if (settings_->union_rule || settings_->beam > 0 || bar == kNever) return kNever;
    if (settings_->map) return bar - rounding(bar);
    double rest = double(frontier_.size()) * std::exp(-double(rounding(bar)));  // in units of the bar
    for (size_t other = 0; other < frontier_.size(); ++other)
      if (int32_t(other) != t && !frontier_[other].empty())
        rest -= std::exp(double(frontier_[other].front().key) - double(bar));
    return rest > 0 ? bar + float(std::log(rest)) : kNever;
  }

  void pop(int t) {
    auto& queue = frontier_[t];
    std::pop_heap(queue.begin(), queue.end());
    const int32_t node = queue.back().node;
    queue.pop_back();
    const Forest::Tree& tree = forest_->trees()[t];
    if (!tree.view.is_leaf(node)) {
      if (known_.has_children(size_t(t), node))
        open(t, node);
      else
        requested_.push_back({0, int32_t(t), node});
      return;
    }
    const int32_t label = tree.view.label[node];
    if (overridden_.has(label)) return;
    ++popped_[t];
    bool fresh;
    seen_.find(label, fresh);
    if (fresh) pending_ = label;
  }

  // Queues the children of an evaluated node. With one tree a leaf's score is known at once.
  void open(int32_t t, int32_t node) {
    const Forest::Tree& tree = forest_->trees()[t];
    const int32_t begin = tree.view.first_child[node], end = tree.view.first_child[node + 1];
    const float* value = known_.children(size_t(t), node);
    const bool alone = frontier_.size() == 1;
    const float enters = entry_bar(t);
    const float least = searching_beam_ ? kNever : least_of_children(tree, *settings_, node, enters);
    for (int32_t v = begin; v < end; ++v) {
      if (value[v - begin] < least) continue;
      const float key = node_key(tree, *settings_, v, value[v - begin]);
      if (key == kNever || std::isnan(key)) continue;
      const bool leaf = tree.view.is_leaf(v);
      if (alone && leaf) {
        if (key >= enters && !overridden_.has(tree.view.label[v])) best_.offer(tree.view.label[v], key);
      } else if (searching_beam_ && !leaf) {
        beam_[t].keep({key, v}, size_t(settings_->beam));
      } else if (key >= enters) {
        frontier_[t].push_back({key, v});
        std::push_heap(frontier_[t].begin(), frontier_[t].end());
      }
    }
  }

  // Continues with the label that came out of one tree: requests what is missing in the others, or offers its score.
  void look_up(int32_t label) {
    const Family missing = known_.look_up(label, key_.data());
    const float mean = log_mean(key_.data(), key_.size());
    if (missing.node >= 0 && most_label_key(*settings_, label, mean) >= best_.bar()) {
      requested_.push_back({0, missing.tree, missing.node});
      return;
    }
    if (missing.node < 0) best_.offer(label, label_key(*settings_, label, mean));
    pending_ = -1;
  }

  // Continues in every tree's level; false when all have reached their leaves.
  bool advance_beam() {
    for (size_t t = 0; t < beam_.size(); ++t) {
      const auto put_aside = [&](const Candidate& candidate) {
        if (!forest_->trees()[t].has_only_leaves(candidate.node)) return false;
        frontier_[t].push_back(candidate);
        std::push_heap(frontier_[t].begin(), frontier_[t].end());
        return true;
      };
      const auto has_leaves = [&](const Candidate& candidate) {
        return forest_->trees()[t].has_a_leaf(candidate.node);
      };
      const int32_t node = beam_[t].pop(size_t(settings_->beam), put_aside, has_leaves);
      if (node >= 0) requested_.push_back({0, int32_t(t), node});
    }
    searching_beam_ = !requested_.empty();
    return searching_beam_;
  }

  const Forest* forest_ = nullptr;
  const SearchSettings* settings_ = nullptr;
  KnownNodes known_;
  std::vector<std::vector<Candidate>> frontier_;  // per tree: heap of what is open
  std::vector<BeamLevels> beam_;                  // per tree
  std::vector<int32_t> popped_;                   // leaves that came out of each tree
  std::vector<float> key_;
  SmallMap seen_;  // labels that came out of some tree
  BestLabels best_;
  OverriddenLabels overridden_;
  std::vector<NodeRequest> requested_;
  int32_t pending_ = -1;
  bool searching_beam_ = false, searched_ = false;
  int64_t evaluations_ = 0;
};

}  // namespace longleaf

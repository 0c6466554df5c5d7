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
// With a utility keys are no logs, and the mean of the trees' best keys is a plain one. A label that no tree has a leaf
// for has probability 0, and its utility is known beforehand.
//
// Beam search (Algorithm 2) replaces the queue by the best `beam` inner nodes of each level. Leaves met on the way,
// also of unbalanced trees, and those nodes of the beam that have only leaves below are then searched best-first as
// above: the beam's own answer, without evaluating the families that cannot change it. If the search is to go on to
// the exact answer, what falls out of the beam joins the queue, else the best key that fell out is remembered.
//
// A search that ends early, by its limits or because of its beam, knows what it may have missed: a label seen in no
// tree is bounded as above, by the best key of each tree that is still open or fell out. If that lies below the k-th
// score, the answer is exact all the same.
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
    dropped_.assign(trees, kNever);
    most_pending_ = kNever;
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
    for (const int32_t label : settings.utility.rest) {
      const float worth = settings.utility.b[label];
      if (!best_.admits(label, worth)) break;
      if (!overridden_.has(label)) best_.offer(label, worth);
    }
  }

  // Ends the search, so that it only has to be written; what is open is missed.
  void stop() {
    for (size_t t = 0; t < beam_.size() && searching_beam_; ++t)
      dropped_[t] = std::max(dropped_[t], beam_[t].best_key());
    searching_beam_ = false;
    if (pending_ >= 0) {
      known_.look_up(pending_, key_.data());
      most_pending_ = most_label_key(*settings_, pending_, log_mean(key_.data(), key_.size()));
      pending_ = -1;
    }
    searched_ = true;
  }

  // Appends the families needed next; false when the search is over.
  bool advance(int32_t row, std::vector<NodeRequest>& requests) {
    requested_.clear();
    if (!searched_ && evaluations_ >= settings_->limits.evaluations) stop();
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
    if (answers.missed != nullptr) answers.missed[row] = most_missed();
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
    return matters(bound_of_unseen()) ? int(best) : -1;
  }

  // What a label can score at most that has come out of no tree, with the trees' best keys in key_.
  float bound_of_unseen() const {
    const size_t trees = key_.size();
    if (!settings_->map && !settings_->utility) return log_mean(key_.data(), trees);
    const float most = *std::max_element(key_.begin(), key_.end());
    if (settings_->map || trees == 1 || most == kNever) return most;
    double sum = 0;
    for (const float key : key_) sum += double(key == kNever ? settings_->utility.most_b : key);
    return float(sum / double(trees));
  }

  // Whether labels of such a bound are to be searched.
  bool matters(float bound) const {
    if (bound == kNever) return false;
    bound += allowance(bound);
    const double epsilon = settings_->limits.epsilon;
    if (epsilon > 0)
      bound = float(settings_->utility ? bound - epsilon * std::fabs(bound) : bound + std::log1p(-epsilon));
    return bound >= best_.bar();
  }

  // The most that a label can score that was missed; kNever if it could not be among the best.
  float most_missed() {
    const size_t trees = frontier_.size();
    if (settings_->ends_exact() && !(settings_->union_rule && trees > 1)) return kNever;
    for (size_t t = 0; t < trees; ++t)
      key_[t] = frontier_[t].empty() ? dropped_[t] : std::max(dropped_[t], frontier_[t].front().key);
    float most = std::max(bound_of_unseen(), most_pending_);
    if (most != kNever) most += allowance(most);
    return most >= best_.bar() ? most : kNever;
  }

  // Scores of several trees are sums in another order than their bounds; those of one tree are their bounds.
  // Bounds of utilities allow for it themselves.
  float allowance(float log_score) const {
    return frontier_.size() > 1 && !settings_->utility ? rounding(log_score) : 0.0f;
  }

  // What a key of this tree must reach to matter: a label below it that has come out of no other tree scores at most
  // the mean of it and the others' best keys, or with a score map the largest of them. The bar only rises and those
  // only fall, so what is dropped would never matter.
  float entry_bar(int32_t t) const {
    const float bar = best_.bar();
    if (frontier_.size() == 1) return bar;
    if (settings_->union_rule || bar == kNever) return kNever;
    if (settings_->beam > 0 && (searching_beam_ || !settings_->resume)) return kNever;
    if (settings_->utility) {
      if (settings_->map) return bar;
      double rest = double(frontier_.size()) * double(bar), size = std::fabs(rest);
      for (size_t other = 0; other < frontier_.size(); ++other) {
        if (int32_t(other) == t) continue;
        const bool open = !frontier_[other].empty();
        const double key = open ? double(frontier_[other].front().key) : double(settings_->utility.most_b);
        rest -= key;
        size += std::fabs(key);
      }
      return float(rest - Utility::kRounding * size);
    }
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
        const int32_t label = tree.view.label[v];
        if (key >= enters && !overridden_.has(label))
          best_.offer(label, key, label_probability(*settings_, label, value[v - begin]));
      } else if (searching_beam_ && !leaf) {
        if (const auto dropped = beam_[t].keep({key, v}, size_t(settings_->beam))) drop(t, *dropped);
      } else if (leaf && settings_->utility) {  // it is a bound here, and allows for rounding
        put_in(t, {most_label_key(*settings_, tree.view.label[v], value[v - begin]), v}, enters);
      } else {
        put_in(t, {key, v}, enters);
      }
    }
  }

  void put_in(int32_t t, Candidate candidate, float enters) {
    if (!(candidate.key >= enters)) return;
    frontier_[t].push_back(candidate);
    std::push_heap(frontier_[t].begin(), frontier_[t].end());
  }

  // Takes what falls out of a beam.
  void drop(int32_t t, Candidate candidate) {
    if (settings_->resume)
      put_in(t, candidate, kNever);
    else
      dropped_[size_t(t)] = std::max(dropped_[size_t(t)], candidate.key);
  }

  // Continues with the label that came out of one tree: requests what is missing in the others, or offers its score.
  void look_up(int32_t label) {
    const Family missing = known_.look_up(label, key_.data());
    const float mean = log_mean(key_.data(), key_.size());
    if (missing.node >= 0 && most_label_key(*settings_, label, mean) >= best_.bar()) {
      requested_.push_back({0, missing.tree, missing.node});
      return;
    }
    if (missing.node < 0)
      best_.offer(label, label_key(*settings_, label, mean), label_probability(*settings_, label, mean));
    pending_ = -1;
  }

  // Continues in every tree's level; false when all have reached their leaves.
  bool advance_beam() {
    for (size_t t = 0; t < beam_.size(); ++t) {
      const auto put_aside = [&](const Candidate& candidate) {
        if (!forest_->trees()[t].has_only_leaves(candidate.node)) return false;
        put_in(int32_t(t), candidate, kNever);
        return true;
      };
      const auto has_leaves = [&](const Candidate& candidate) {
        return forest_->trees()[t].has_a_leaf(candidate.node);
      };
      const auto drops = [&](const Candidate& candidate) { drop(int32_t(t), candidate); };
      const int32_t node = beam_[t].pop(size_t(settings_->beam), put_aside, has_leaves, drops);
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
  std::vector<float> dropped_;                    // per tree: the best key that fell out of the beam, or was left open
  std::vector<float> key_;
  SmallMap seen_;  // labels that came out of some tree
  BestLabels best_;
  OverriddenLabels overridden_;
  std::vector<NodeRequest> requested_;
  int32_t pending_ = -1;
  float most_pending_ = kNever;  // of the label that was being looked up when the search was stopped
  bool searching_beam_ = false, searched_ = false;
  int64_t evaluations_ = 0;
};

}  // namespace longleaf

// Finding the best k labels of many rows together, level by level: see level_search.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/beam.h"
#include "search/best_labels.h"
#include "search/forest.h"
#include "search/keys.h"
#include "search/known_nodes.h"
#include "search/overridden_labels.h"

namespace longleaf {

class LevelSearch {
 public:
  LevelSearch(const Forest& forest, const SearchSettings& settings, const Work& work);

  // A union of trees, or a beam through several, ends by what one row has found: those are searched row by row. So is
  // who wants every label: there is no bar.
  static bool serves(const Forest& forest, const SearchSettings& settings) {
    if (forest.trees()[0].leaves <= settings.k || settings.limits.cut_short() || settings.utility.group) return false;
    return forest.trees().size() == 1 || (settings.beam == 0 && !settings.union_rule);
  }

  // Returns the rows that remain to be searched one by one.
  std::span<const int64_t> run(const CsrView& X, const float* row_scale, std::span<const int64_t> rows,
                               const Answers& answers);

 private:
  struct Visit {
    int32_t node, row;
    float value;  // log eta of the node
  };
  class ByDepth {
   public:
    void clear() {
      for (auto& level : levels_) level.clear();
    }
    std::vector<Visit>& at(size_t depth) {
      if (levels_.size() <= depth) levels_.resize(depth + 1);
      return levels_[depth];
    }
    size_t depths() const { return levels_.size(); }

   private:
    std::vector<std::vector<Visit>> levels_;
  };
  struct Open : Candidate {
    float value;
  };
  struct Ranked {
    Open open;
    int32_t row;
    bool expanded;
  };
  struct Value {
    int32_t label, tree;
    float value;
  };
  struct Incomplete {
    float most;  // log of what it can score
    int32_t label;
    bool operator<(const Incomplete& other) const { return most > other.most; }
  };
  struct Row {
    Query query;
    RowOverrides overrides;
    BestLabels best;
    std::vector<Open> kept;         // the best of the next level, the worst in front
    std::vector<Value> values;      // several trees: what may matter of the leaves seen
    std::vector<int64_t> families;  // several trees: the nodes whose leaves were seen
    int64_t evaluations;
    float missed;  // the best key that fell out of the beam, or that epsilon made too small
  };

  bool several() const { return forest_.trees().size() > 1; }
  // What the key of a node must reach to be looked at: the bar, unless a little may be missed.
  float needed(size_t row) const {
    const double bar = double(bar_[row]), epsilon = settings_.limits.epsilon;
    if (epsilon == 0) return bar_[row];
    if (!settings_.utility) return float(bar - std::log1p(-epsilon));
    return float(bar < 0 ? bar / (1 + epsilon) : bar / (1 - epsilon));
  }
  bool matters(size_t row, float key) {
    if (key >= needed(row)) return true;
    if (settings_.limits.epsilon > 0) rows_[row].missed = std::max(rows_[row].missed, key);
    return false;
  }
  float key_of(size_t t, const Visit& visit) const {
    return node_key(forest_.trees()[t], settings_, visit.node, visit.value);
  }

  void look_around(size_t t);
  void take_the_best(size_t depth);
  void look_further(size_t t);
  void keep_the_beam(size_t t, size_t depth);
  template <class Take>
  void expand_level(size_t t, Take take_inner);
  template <class Take>
  void expand(size_t t, const Visit& visit, Take take_inner);
  void offer_the_rest(const Row& row, BestLabels& best) const;
  void see_leaf(size_t t, const Visit& leaf, float key);
  template <class Judge>
  void each_label(Row& row, Judge judge);
  float share_of(const Visit& leaf, int32_t label, float key) const;
  float log_mean_of_trees() const { return log_mean(eta_.data(), eta_.size()); }
  void add_up(size_t row);
  void leave(size_t row);
  void settle(size_t row);
  void offer(Row& row, int32_t label) const;
  void judge_overridden(size_t row);
  bool assume_the_most(size_t row, int32_t label);

  const Forest& forest_;
  const SearchSettings& settings_;
  const Work& work_;
  const size_t first_;  // nodes of a level that a row expands before it knows better
  const float margin_;  // a leaf this far below the bar is not kept
  const float log_trees_;
  std::vector<Row> rows_;
  std::vector<float> bar_;  // per row: what a score must reach
  std::vector<int64_t> left_;
  std::vector<ByDepth> waiting_;  // per tree: what was left aside
  ByDepth expanded_;              // of a beam: what was not
  std::vector<Visit> level_, next_;
  std::vector<Ranked> ranked_;
  std::vector<float> value_;  // log eta of a family
  std::vector<float> eta_;    // log eta of a label in each tree
  std::vector<Incomplete> incomplete_;
  BestLabels lower_;
  KnownNodes known_;
  OverriddenLabels overridden_;
};

}  // namespace longleaf

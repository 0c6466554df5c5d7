// Finding the best k labels of many rows together, level by level: see level_search.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "beam.h"
#include "best_labels.h"
#include "forest.h"
#include "known_nodes.h"

namespace longleaf {

class LevelSearch {
 public:
  LevelSearch(const Forest& forest, const SearchSettings& settings, const Work& work);

  // A union of trees, or a beam through several, ends by what one row has found: those are searched row by row.
  static bool serves(const Forest& forest, const SearchSettings& settings) {
    return forest.parts().size() == 1 || (settings.beam == 0 && !settings.union_rule);
  }

  void run(const CsrView& X, const float* row_scale, int64_t begin, int64_t end, int32_t* labels, float* scores,
           int64_t* evaluations);

 private:
  struct Visit {
    int32_t node, row;
    float value;  // log eta of the node
  };
  struct Open : Candidate {
    float value;
  };
  struct Value {
    int32_t label, tree;
    float value;
  };
  struct Row {
    Query query;
    BestLabels best;
    std::vector<Open> kept;          // the best of the next level, the worst in front
    std::vector<Value> values;       // several trees: what may matter of the leaves seen
    std::vector<int64_t> families;   // several trees: the nodes whose leaves were seen
    int64_t evaluations;
  };

  bool several() const { return forest_.parts().size() > 1; }
  float log_bound(size_t tree, int32_t node) const {
    return settings_.log_bounds ? settings_.log_bounds[forest_.parts()[tree].first_node + node] : 0.0f;
  }
  float key_of(size_t tree, const Visit& visit) const { return visit.value + log_bound(tree, visit.node); }
  float gain(int32_t label) const { return settings_.log_gain ? settings_.log_gain[label] : 0.0f; }

  void look_around(size_t tree);
  void take_the_best();
  void take_the_rest(size_t tree, size_t depth);
  void wait(size_t tree, size_t depth, const Visit& visit);
  void look_further(size_t tree);
  template <class Take>
  void expand_level(size_t tree, Take take_inner);
  template <class Take>
  void expand(size_t tree, const Visit& visit, Take take_inner);
  void see_leaf(size_t tree, int32_t row, int32_t node, float value);
  template <class Judge>
  void each_label(Row& row, Judge judge);
  void add_up(int32_t row);
  void settle(int32_t row);
  float exact_key(Row& row, int32_t label);

  const Forest& forest_;
  const SearchSettings& settings_;
  const Work& work_;
  float margin_ = 0, share_ = 0, slack_ = 0;  // several trees: see see_leaf
  std::vector<Row> rows_;
  std::vector<float> bar_;            // per row
  std::vector<std::vector<std::vector<Visit>>> waiting_;  // per tree and depth: what was left aside
  std::vector<Visit> level_, rest_, next_;
  std::vector<float> value_;          // log eta of a family
  std::vector<float> eta_;            // log eta of a label in each tree
  std::vector<Candidate> incomplete_;
  BestLabels lower_;
  KnownNodes known_;
};

}  // namespace longleaf

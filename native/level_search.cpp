// Finding the best k labels of many rows together, level by level.
//
// Problem, keys and bounds are those of search.cpp, and so are the answers; the order differs. Which nodes an exact
// search must evaluate does not hang on the order: those whose key reaches the k-th score. With a good guess of that
// score from below, the row's bar, they can be evaluated level by level, all rows together and sorted by node, so that
// hundreds of rows in turn read the same weights while they are in the cache.
//
//   look around:   each row takes the best few nodes of each level along; the others wait. This gives it a bar.
//   look further:  what waits, and all that is below it, is evaluated where its key reaches the bar.
//
// Several trees: any label among the best k reaches the bar in one of them at least. The leaves seen are kept if they
// come near the bar; a label's score is complete when it was kept in every tree. Where it was not, it is known to be
// small, or not to reach the bar there, which mostly rules it out; if not, it is looked up.
//
// Beam search through one tree (Algorithm 2) looks around with the whole beam, but first expands the best few of a
// level: many of the others can then no longer change the next level, or as families of leaves the answer.
#include "level_search.h"

#include <algorithm>
#include <cmath>

namespace longleaf {

namespace {

constexpr size_t kFirst = 3;      // nodes of a level that a row expands before it knows better
constexpr float kMargin = 1.5f;   // a leaf this far (as a log) below the bar is not kept

}  // namespace

LevelSearch::LevelSearch(const Forest& forest, const SearchSettings& settings, const Work& work)
    : forest_(forest), settings_(settings), work_(work) {
  waiting_.resize(forest.parts().size());
  eta_.resize(forest.parts().size());
  if (several()) {
    margin_ = kMargin;
    share_ = std::log(float(forest.parts().size()));
    slack_ = kRounding;
  }
}

void LevelSearch::run(const CsrView& X, const float* row_scale, int64_t begin, int64_t end, int32_t* labels,
                      float* scores, int64_t* evaluations) {
  const auto size = int32_t(end - begin);
  if (rows_.size() < size_t(size)) rows_.resize(size_t(size));
  bar_.assign(size_t(size), settings_.log_floor);
  for (int32_t r = 0; r < size; ++r) {
    Row& row = rows_[size_t(r)];
    row.query = query_of(X, row_scale, begin + r);
    row.values.clear();
    row.families.clear();
    row.evaluations = 0;
  }
  const size_t trees = forest_.parts().size();
  for (size_t t = 0; t < trees; ++t) look_around(t);
  if (several())
    for (int32_t r = 0; r < size; ++r) add_up(r);
  for (size_t t = 0; t < trees; ++t) look_further(t);
  for (int32_t r = 0; r < size; ++r) {
    Row& row = rows_[size_t(r)];
    if (several()) settle(r);
    row.best.write(labels + r * int64_t(settings_.k), scores + r * int64_t(settings_.k));
    evaluations[r] = row.evaluations;
  }
}

void LevelSearch::look_around(size_t tree) {
  for (auto& level : waiting_[tree]) level.clear();
  for (size_t r = 0; r < bar_.size(); ++r) {
    rows_[r].best.start(settings_);
    rows_[r].kept.assign(1, Open{{log_bound(tree, 0), 0}, 0.0f});
  }
  const size_t width = settings_.beam > 0 ? size_t(settings_.beam) : kFirst;
  for (size_t depth = 0;; ++depth) {
    take_the_best();
    if (level_.empty()) return;
    const auto keep = [&](const Visit& child, float key) {
      const auto dropped = keep_best(rows_[size_t(child.row)].kept, Open{{key, child.node}, child.value}, width);
      if (dropped && settings_.beam == 0) wait(tree, depth + 1, {dropped->node, child.row, dropped->value});
    };
    expand_level(tree, keep);
    take_the_rest(tree, depth);
    expand_level(tree, keep);
  }
}

// Into level_ the best few that each row has kept, into rest_ the others.
void LevelSearch::take_the_best() {
  level_.clear();
  rest_.clear();
  for (size_t r = 0; r < bar_.size(); ++r) {
    std::vector<Open>& kept = rows_[r].kept;
    const size_t first = std::min(kFirst, kept.size());
    std::partial_sort(kept.begin(), kept.begin() + int64_t(first), kept.end(), [](const Open& a, const Open& b) { return b < a; });
    for (size_t i = 0; i < kept.size(); ++i)
      (i < first ? level_ : rest_).push_back({kept[i].node, int32_t(r), kept[i].value});
    kept.clear();
  }
}

// Into level_ what of rest_ can still change the next level; families of leaves wait.
void LevelSearch::take_the_rest(size_t tree, size_t depth) {
  level_.clear();
  const Forest::Part& part = forest_.parts()[tree];
  for (const Visit& visit : rest_) {
    const std::vector<Open>& kept = rows_[size_t(visit.row)].kept;
    if (part.has_only_leaves(visit.node))
      wait(tree, depth, visit);
    else if (kept.size() < size_t(settings_.beam) || key_of(tree, visit) >= kept.front().key || part.has_a_leaf(visit.node))
      level_.push_back(visit);
  }
}

void LevelSearch::wait(size_t tree, size_t depth, const Visit& visit) {
  if (waiting_[tree].size() <= depth) waiting_[tree].resize(depth + 1);
  waiting_[tree][depth].push_back(visit);
}

void LevelSearch::look_further(size_t tree) {
  next_.clear();
  if (several())  // a label must not count twice
    for (size_t r = 0; r < bar_.size(); ++r) rows_[r].best.start(settings_);
  for (size_t depth = 0; depth < waiting_[tree].size() || !next_.empty(); ++depth) {
    level_.swap(next_);
    next_.clear();
    if (depth < waiting_[tree].size())
      level_.insert(level_.end(), waiting_[tree][depth].begin(), waiting_[tree][depth].end());
    std::erase_if(level_, [&](const Visit& visit) { return key_of(tree, visit) < bar_[size_t(visit.row)]; });
    expand_level(tree, [&](const Visit& child, float) { next_.push_back(child); });
  }
}

// Evaluates the families of level_, those of the same node one after the other.
template <class Take>
void LevelSearch::expand_level(size_t tree, Take take_inner) {
  std::sort(level_.begin(), level_.end(),
            [](const Visit& a, const Visit& b) { return a.node != b.node ? a.node < b.node : a.row < b.row; });
  const TreeView& shape = forest_.parts()[tree].tree;
  for (const Visit& visit : level_) {
    if (work_.stopped()) return;
    const float key = key_of(tree, visit);
    if (!(key >= bar_[size_t(visit.row)]) || key == kNever) continue;
    if (shape.is_leaf(visit.node))  // a tree of nothing but its root
      see_leaf(tree, visit.row, visit.node, visit.value);
    else
      expand(tree, visit, take_inner);
  }
}

template <class Take>
void LevelSearch::expand(size_t tree, const Visit& visit, Take take_inner) {
  const Forest::Part& part = forest_.parts()[tree];
  Row& row = rows_[size_t(visit.row)];
  const int32_t begin = part.tree.first_child[visit.node], end = part.tree.first_child[visit.node + 1];
  value_.resize(size_t(end - begin));
  family_log_probabilities(forest_, tree, visit.node, row.query, visit.value, value_.data());
  row.evaluations += end - begin;
  if (several() && part.has_a_leaf(visit.node)) row.families.push_back(part.first_node + visit.node);
  for (int32_t v = begin; v < end; ++v) {
    const Visit child{v, visit.row, value_[size_t(v - begin)]};
    const float key = key_of(tree, child);
    if (part.tree.is_leaf(v))
      see_leaf(tree, visit.row, v, child.value);
    else if (key >= bar_[size_t(visit.row)] && key != kNever)
      take_inner(child, key);
  }
}

// A leaf of one tree alone is an answer. One of several is kept, and raises the bar by what it is sure to score, a
// tree's share, together with the others of its tree.
void LevelSearch::see_leaf(size_t tree, int32_t row, int32_t node, float value) {
  const float key = value + log_bound(tree, node);
  float& bar = bar_[size_t(row)];
  if (!(key >= bar - margin_) || key == kNever) return;
  Row& seer = rows_[size_t(row)];
  const int32_t label = forest_.parts()[tree].tree.label[node];
  if (several()) seer.values.push_back({label, int32_t(tree), value});
  const float sure = key - share_;
  if (sure < bar) return;
  seer.best.offer(label, sure);
  bar = std::max(bar, seer.best.bar() - slack_);
}

// Calls judge(label) for each label of which something was kept, with its log eta in each tree in eta_; kNever where
// nothing was kept.
template <class Judge>
void LevelSearch::each_label(Row& row, Judge judge) {
  std::sort(row.values.begin(), row.values.end(), [](const Value& a, const Value& b) { return a.label < b.label; });
  for (size_t i = 0; i < row.values.size();) {
    const int32_t label = row.values[i].label;
    std::fill(eta_.begin(), eta_.end(), kNever);
    for (; i < row.values.size() && row.values[i].label == label; ++i) eta_[size_t(row.values[i].tree)] = row.values[i].value;
    judge(label);
  }
}

// The bar after looking around: what a label was not seen to have may be nothing.
void LevelSearch::add_up(int32_t r) {
  lower_.start(settings_);
  each_label(rows_[size_t(r)], [&](int32_t label) { lower_.offer(label, gain(label) + log_mean(eta_.data(), eta_.size())); });
  bar_[size_t(r)] = std::max(bar_[size_t(r)], lower_.bar() - kRounding);
}

// Judges the labels seen: first those whose scores are complete, then the others by the most that they can be.
void LevelSearch::settle(int32_t r) {
  Row& row = rows_[size_t(r)];
  const float bar = bar_[size_t(r)];
  row.best.start(settings_);
  std::sort(row.families.begin(), row.families.end());
  incomplete_.clear();
  each_label(row, [&](int32_t label) {
    const float gain_of_label = gain(label);
    bool complete = true;
    for (size_t t = 0; t < eta_.size(); ++t) {
      const Forest::Part& part = forest_.parts()[t];
      if (eta_[t] != kNever || part.leaf[label] < 0) continue;
      complete = false;
      const int64_t family = part.first_node + part.parent[part.leaf[label]];
      const bool seen = std::binary_search(row.families.begin(), row.families.end(), family);
      eta_[t] = bar - (seen ? kMargin : 0.0f) - gain_of_label;
    }
    const float key = gain_of_label + log_mean(eta_.data(), eta_.size());
    if (complete)
      row.best.offer(label, key);
    else if (key + kRounding >= bar)
      incomplete_.push_back({key, label});
  });
  known_.start(forest_, row.query);
  for (const Candidate& most : incomplete_)
    if (most.key + kRounding >= row.best.bar()) row.best.offer(most.node, exact_key(row, most.node));
}

float LevelSearch::exact_key(Row& row, int32_t label) {
  for (size_t t = 0; t < eta_.size(); ++t) {
    const int32_t leaf = forest_.parts()[t].leaf[label];
    eta_[t] = kNever;
    if (leaf < 0) continue;
    for (int32_t missing; (missing = known_.first_unknown(t, leaf)) >= 0;) row.evaluations += known_.evaluate(t, missing);
    eta_[t] = known_.log_probability(t, leaf);
  }
  return gain(label) + log_mean(eta_.data(), eta_.size());
}

}  // namespace longleaf

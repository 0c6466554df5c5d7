// Finding the best k labels of many rows together, level by level.
//
// Problem, keys and bounds are those of search.cpp, and so are the answers; the order differs. Which nodes an exact
// search must evaluate does not depend on the order: those whose key reaches the k-th score. With a good guess of that
// score from below, the row's bar, they can be evaluated level by level, all rows together and sorted by node, so that
// hundreds of rows in turn read the same weights while they are in the cache.
//
//   look around:   each row takes the best few nodes of each level along; the others wait. From these it has a bar.
//   look further:  what waits, and all that is below it, is evaluated where its key reaches the bar.
//
// A row that sees fewer than k labels on looking around has no bar, and is left to the search of search.cpp.
//
// Several trees: any label among the best k reaches the bar in one of them at least. The leaves seen are kept if they
// come near the bar; a label's score is complete when it was kept in every tree. Where it was not, it is known to be
// small, or not to reach the bar there, which mostly rules it out; if not, it is looked up.
//
// Where a little may be missed, nodes must exceed the bar by as much, and the best key that did not is remembered.
//
// Labels that a row has maps of its own for are left out, and judged when the others are known.
//
// Beam search through one tree (Algorithm 2): looking further stops at the best `beam` nodes of each level, those
// already expanded among them. Nodes below the bar may be dropped, since no label below them is an answer. If a node
// that was expanded on looking around turns out not to be in the beam, which is rare, the row is left to search.cpp as
// well.
#include "search/level_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace longleaf {

namespace {

constexpr size_t kFirst = 3;  // nodes of a level that a row expands before it knows better, at least
constexpr float kLeft = std::numeric_limits<float>::infinity();  // a bar that nothing reaches
constexpr float kMargin = 1.5f;        // with several trees, a leaf this far (as a log) below the bar is not kept
constexpr float kMappedMargin = 0.3f;  // the same of mapped probabilities, which fall more slowly

// As many as have families of leaves with twice k labels below, as a rule; no more than a beam.
size_t nodes_to_begin_with(const Forest& forest, const SearchSettings& settings) {
  int64_t families = 0, leaves = 0;
  for (const Forest::Tree& tree : forest.trees()) {
    families += tree.leaf_families;
    leaves += tree.leaves;
  }
  const size_t first = std::max(kFirst, size_t(2 * int64_t(settings.k) * families / leaves + 1));
  return settings.beam > 0 ? std::min(first, size_t(settings.beam)) : first;
}

}  // namespace

LevelSearch::LevelSearch(const Forest& forest, const SearchSettings& settings, const Work& work)
    : forest_(forest),
      settings_(settings),
      work_(work),
      first_(nodes_to_begin_with(forest, settings)),
      margin_(!several() || settings.utility ? 0.0f
              : settings.map                 ? kMappedMargin
                                             : kMargin),
      log_trees_(std::log(float(forest.trees().size()))),
      waiting_(forest.trees().size()),
      eta_(forest.trees().size()) {}

std::span<const int64_t> LevelSearch::run(const CsrView& X, const float* row_scale, std::span<const int64_t> rows,
                                          const Answers& answers) {
  if (rows_.size() < rows.size()) rows_.resize(rows.size());
  bar_.assign(rows.size(), settings_.log_floor);
  left_.clear();
  for (size_t r = 0; r < rows.size(); ++r) {
    rows_[r].query = query_of(X, row_scale, rows[r]);
    rows_[r].overrides = settings_.overrides.of(rows[r]);
    rows_[r].values.clear();
    rows_[r].families.clear();
    rows_[r].evaluations = 0;
    rows_[r].missed = kNever;
  }
  const size_t trees = forest_.trees().size();
  for (size_t t = 0; t < trees; ++t) look_around(t);
  for (size_t r = 0; r < rows.size(); ++r) {
    work_.check();
    if (several()) add_up(r);
    if (bar_[r] == kNever && settings_.beam == 0) leave(r);
  }
  for (size_t t = 0; t < trees; ++t) look_further(t);
  for (size_t r = 0; r < rows.size(); ++r) {
    work_.check();
    if (bar_[r] == kLeft) {
      left_.push_back(rows[r]);
    } else {
      if (several()) settle(r);
      if (rows_[r].overrides.size > 0) judge_overridden(r);
      if (answers.missed != nullptr)
        answers.missed[rows[r]] = rows_[r].missed >= rows_[r].best.bar() ? rows_[r].missed : kNever;
      rows_[r].best.write(answers, rows[r]);
    }
    answers.evaluations[rows[r]] += rows_[r].evaluations;
  }
  return left_;
}

void LevelSearch::leave(size_t r) {
  bar_[r] = kLeft;
  rows_[r].values.clear();
}

void LevelSearch::look_around(size_t t) {
  waiting_[t].clear();
  expanded_.clear();
  for (size_t r = 0; r < bar_.size(); ++r) {
    rows_[r].best.start(settings_);
    if (!several()) offer_the_rest(rows_[r], rows_[r].best);
    bar_[r] = std::max(bar_[r], rows_[r].best.bar());
    rows_[r].kept.assign(1, Open{{key_of(t, {0, int32_t(r), 0.0f}), 0}, 0.0f});
  }
  for (size_t depth = 0;; ++depth) {
    take_the_best(depth);
    if (level_.empty()) return;
    expand_level(t, [&](const Visit& child, float key) {
      const auto dropped = keep_best(rows_[size_t(child.row)].kept, Open{{key, child.node}, child.value}, first_);
      if (dropped) waiting_[t].at(depth + 1).push_back({dropped->node, child.row, dropped->value});
    });
  }
}

// Into level_ what the rows have kept.
void LevelSearch::take_the_best(size_t depth) {
  level_.clear();
  for (size_t r = 0; r < bar_.size(); ++r) {
    for (const Open& open : rows_[r].kept) level_.push_back({open.node, int32_t(r), open.value});
    rows_[r].kept.clear();
  }
  if (settings_.beam > 0) expanded_.at(depth) = level_;
}

void LevelSearch::look_further(size_t t) {
  next_.clear();
  if (several())  // a label must not count twice
    for (size_t r = 0; r < bar_.size(); ++r) rows_[r].best.start(settings_);
  for (size_t depth = 0; depth < waiting_[t].depths() || !next_.empty(); ++depth) {
    level_.swap(next_);
    next_.clear();
    const std::vector<Visit>& waiting = waiting_[t].at(depth);
    level_.insert(level_.end(), waiting.begin(), waiting.end());
    std::erase_if(level_, [&](const Visit& visit) { return !matters(size_t(visit.row), key_of(t, visit)); });
    if (settings_.beam > 0) keep_the_beam(t, depth);
    expand_level(t, [&](const Visit& child, float) { next_.push_back(child); });
  }
}

// Leaves in level_ what is in the beam, with what was expanded at this depth.
void LevelSearch::keep_the_beam(size_t t, size_t depth) {
  ranked_.clear();
  const auto rank = [&](const std::vector<Visit>& visits, bool expanded) {
    for (const Visit& visit : visits)
      if (const float key = key_of(t, visit); key >= bar_[size_t(visit.row)])
        ranked_.push_back({Open{{key, visit.node}, visit.value}, visit.row, expanded});
  };
  rank(level_, false);
  rank(expanded_.at(depth), true);
  std::sort(ranked_.begin(), ranked_.end(),
            [](const Ranked& a, const Ranked& b) { return a.row != b.row ? a.row < b.row : b.open < a.open; });
  level_.clear();
  int place = 0;
  for (size_t i = 0; i < ranked_.size(); ++i) {
    const Ranked& one = ranked_[i];
    place = i > 0 && one.row == ranked_[i - 1].row ? place + 1 : 0;
    if (place >= settings_.beam && one.expanded) leave(size_t(one.row));
    if (place >= settings_.beam && !one.expanded) {
      float& missed = rows_[size_t(one.row)].missed;
      missed = std::max(missed, one.open.key);
    }
    if (place < settings_.beam && !one.expanded) level_.push_back({one.open.node, one.row, one.open.value});
  }
}

// Evaluates the families of level_, those of the same node one after the other.
template <class Take>
void LevelSearch::expand_level(size_t t, Take take_inner) {
  std::sort(level_.begin(), level_.end(),
            [](const Visit& a, const Visit& b) { return a.node != b.node ? a.node < b.node : a.row < b.row; });
  const TreeView& shape = forest_.trees()[t].view;
  for (const Visit& visit : level_) {
    work_.check();
    const float key = key_of(t, visit);
    if (key == kNever || !matters(size_t(visit.row), key)) continue;
    if (shape.is_leaf(visit.node))  // a tree of nothing but its root
      see_leaf(t, visit, key);
    else
      expand(t, visit, take_inner);
  }
}

template <class Take>
void LevelSearch::expand(size_t t, const Visit& visit, Take take_inner) {
  const Forest::Tree& tree = forest_.trees()[t];
  Row& row = rows_[size_t(visit.row)];
  const int32_t begin = tree.view.first_child[visit.node], end = tree.view.first_child[visit.node + 1];
  value_.resize(size_t(end - begin));
  family_log_probabilities(tree, forest_.link(), visit.node, row.query, visit.value, value_.data());
  row.evaluations += end - begin;
  if (several() && tree.has_a_leaf(visit.node)) row.families.push_back(tree.first_node + visit.node);
  const float& bar = bar_[size_t(visit.row)];
  const bool mapped = settings_.map || settings_.utility;
  float least = kNever, seen = kNever;
  for (int32_t v = begin; v < end; ++v) {
    if (mapped && bar > seen) {  // it rises with the leaves
      seen = bar;
      least = least_of_children(tree, settings_, visit.node, bar - margin_);
    }
    if (value_[size_t(v - begin)] < least) continue;
    const Visit child{v, visit.row, value_[size_t(v - begin)]};
    float key = key_of(t, child);
    if (settings_.utility && several() && tree.view.is_leaf(v))  // it is a bound then, and allows for rounding
      key = most_label_key(settings_, tree.view.label[v], child.value);
    if (tree.view.is_leaf(v))
      see_leaf(t, child, key);
    else if (key != kNever && matters(size_t(visit.row), key))
      take_inner(child, key);
  }
}

// A leaf of one tree alone is an answer. One of several is kept. It also raises the bar: its label scores at least this
// tree's share of the mean, so the k-th best share of one tree bounds the k-th score from below.
void LevelSearch::see_leaf(size_t t, const Visit& leaf, float key) {
  float& bar = bar_[size_t(leaf.row)];
  if (!(key >= bar - margin_) || key == kNever) return;
  Row& row = rows_[size_t(leaf.row)];
  const int32_t label = forest_.trees()[t].view.label[leaf.node];
  if (row.overrides.find(label) >= 0) return;
  if (several()) row.values.push_back({label, int32_t(t), leaf.value});
  const float share = several() ? share_of(leaf, label, key) : key;
  if (share < bar) return;
  row.best.offer(label, share, label_probability(settings_, label, leaf.value));
  bar = std::max(bar, row.best.bar());
}

// The labels that no tree has a leaf for, where they have utilities.
void LevelSearch::offer_the_rest(const Row& row, BestLabels& best) const {
  for (const int32_t label : settings_.utility.rest) {
    if (!best.admits(label, settings_.utility.b[label])) return;
    if (row.overrides.find(label) < 0) best.offer(label, settings_.utility.b[label]);
  }
}

// Calls judge(label) for each label of which something was kept, with its log eta in each tree in eta_; kNever where
// nothing was kept.
template <class Judge>
void LevelSearch::each_label(Row& row, Judge judge) {
  std::sort(row.values.begin(), row.values.end(), [](const Value& a, const Value& b) { return a.label < b.label; });
  for (size_t i = 0; i < row.values.size();) {
    const int32_t label = row.values[i].label;
    std::fill(eta_.begin(), eta_.end(), kNever);
    for (; i < row.values.size() && row.values[i].label == label; ++i)
      eta_[size_t(row.values[i].tree)] = row.values[i].value;
    judge(label);
  }
}

// What a leaf's label scores at least, if the other trees have nothing for it.
float LevelSearch::share_of(const Visit& leaf, int32_t label, float key) const {
  if (!settings_.map && !settings_.utility) return key - log_trees_ - rounding(key);
  if (key < bar_[size_t(leaf.row)]) return kNever;  // the share is no more
  return least_label_key(settings_, label, leaf.value - log_trees_);
}

// The bar after looking around: what a label was not seen to have may be nothing.
void LevelSearch::add_up(size_t r) {
  lower_.start(settings_);
  offer_the_rest(rows_[r], lower_);
  each_label(rows_[r],
             [&](int32_t label) { lower_.offer(label, least_label_key(settings_, label, log_mean_of_trees())); });
  bar_[r] = std::max(bar_[r], lower_.bar());
}

// Judges the labels seen: first those whose scores are complete, then the others by the most that they can be.
void LevelSearch::settle(size_t r) {
  Row& row = rows_[r];
  row.best.start(settings_);
  offer_the_rest(row, row.best);
  std::sort(row.families.begin(), row.families.end());
  incomplete_.clear();
  const bool may_miss = settings_.limits.epsilon > 0;
  each_label(row, [&](int32_t label) {
    // What made the bar must be found, also where a little may be missed.
    const bool certain = may_miss && most_label_key(settings_, label, log_mean_of_trees()) >= bar_[r];
    if (assume_the_most(r, label))
      offer(row, label);
    else if (const float most = most_label_key(settings_, label, log_mean_of_trees()); certain || matters(r, most))
      incomplete_.push_back({most, label});
  });
  std::sort(incomplete_.begin(), incomplete_.end());
  known_.start(forest_, row.query);
  for (const Incomplete& one : incomplete_) {
    if (one.most < row.best.bar()) return;
    for (size_t t = 0; t < eta_.size(); ++t) eta_[t] = known_.label_log_probability(t, one.label, row.evaluations);
    offer(row, one.label);
  }
}

// With the label's log eta in each tree in eta_.
void LevelSearch::offer(Row& row, int32_t label) const {
  const float mean = log_mean_of_trees();
  row.best.offer(label, label_key(settings_, label, mean), label_probability(settings_, label, mean));
}

void LevelSearch::judge_overridden(size_t r) {
  Row& row = rows_[r];
  if (!several()) known_.start(forest_, row.query);  // else settle() did
  overridden_.start(forest_, settings_, row.overrides);
  for (Family missing; (missing = overridden_.advance(known_, row.best)).node >= 0;)
    row.evaluations += known_.evaluate(size_t(missing.tree), missing.node);
}

// Fills the gaps of a label in eta_: below the bar by the margin where its family was seen, else below the bar. Says
// whether there were none.
bool LevelSearch::assume_the_most(size_t r, int32_t label) {
  const std::vector<int64_t>& families = rows_[r].families;
  bool complete = true;
  for (size_t t = 0; t < eta_.size(); ++t) {
    const Forest::Tree& tree = forest_.trees()[t];
    if (eta_[t] != kNever || tree.leaf[label] < 0) continue;
    complete = false;
    const int64_t family = tree.first_node + tree.parent[tree.leaf[label]];
    const bool seen = std::binary_search(families.begin(), families.end(), family);
    eta_[t] = most_log_probability(settings_, label, seen ? bar_[r] - margin_ : needed(r));
  }
  return complete;
}

}  // namespace longleaf

// Finding the best k labels of a row.
//
// Problem: the k labels j with the largest score q_j * mean over the trees of eta_j(x), where eta_j is the product of
// the node probabilities on the path to j's leaf (Algorithm 1 of "Propensity-scored Probabilistic Label Trees").
// Given: the trees, a log gain per label and, per node, the log of the best gain below (the A* heuristic).
// Out: labels and scores, best first, provably the top k of the model's own scores.
//
// One tree: best-first search. A node's key is log eta_v + log max gain below v, which never grows towards the leaves,
// so once the best key left in the queue is not above the k-th score found, nothing better can follow. With all gains
// 1 this is uniform-cost search. A node is expanded only if its key lies above the k-th score: no search that knows the
// same bounds can do with fewer.
//
// Several trees: their searches are interleaved, always advancing the tree with the best key. A leaf that comes out of
// one tree is looked up in the others (whatever was evaluated is remembered), unless its bound, from its deepest
// evaluated ancestors, already lies below the k-th score. A label seen in no tree scores at most the mean of the trees'
// best keys; when that is not above the k-th score the search ends (the threshold algorithm of Fagin et al. 2003).
//
// Beam search (Algorithm 2) replaces the queue by the best `beam` inner nodes of each level. Leaves met on the way, also
// of unbalanced trees, and those nodes of the beam that have only leaves below are then searched best-first as above:
// the beam's own answer, without evaluating the families that cannot change it.
//
// Rows are searched a block at a time, each giving the family it wants next; the wishes are served in the order of the
// weights in memory, so that rows that want the same weights share them in the cache.
#include <algorithm>
#include <cmath>
#include <limits>

#include "beam.h"
#include "forest.h"
#include "known_nodes.h"
#include "small_map.h"

namespace longleaf {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr float kRounding = 1e-4f;  // more than the logs of two sums of the same numbers can differ by

struct Found {
  float key;  // log score
  int32_t label;
  float score;
  bool operator<(const Found& other) const { return key != other.key ? key > other.key : label < other.label; }
};

struct Wish {
  int32_t row, tree, node;
};

// One row's search. `advance` goes on until it needs families evaluated, or is done.
class RowSearch {
 public:
  void start(const Forest& forest, const SearchSettings& settings, const Query& query) {
    forest_ = &forest;
    settings_ = &settings;
    known_.start(forest, query);
    const size_t trees = forest.parts().size();
    frontier_.resize(trees);
    beam_.resize(trees);
    popped_.assign(trees, 0);
    key_.resize(trees);
    for (auto& queue : frontier_) queue.clear();
    seen_.clear();
    found_.clear();
    asked_.clear();
    pending_ = -1;
    evaluations_ = 0;
    searching_beam_ = settings.beam > 0;
    for (size_t t = 0; t < trees; ++t) {
      const float bound = log_bound(t, 0);
      beam_[t].clear();
      if (bound == kNever) continue;
      if (searching_beam_ && !is_leaf(t, 0))
        beam_[t].begin({bound, 0});
      else
        frontier_[t].push_back({bound, 0});
    }
  }

  // Appends the families needed next; false when the search is over.
  bool advance(int32_t row, std::vector<Wish>& wishes) {
    asked_.clear();
    if (searching_beam_ && advance_beam()) {
      for (const Wish& wish : asked_) wishes.push_back({row, wish.tree, wish.node});
      return true;
    }
    while (asked_.empty()) {
      if (pending_ >= 0) {
        look_up(pending_);
        continue;
      }
      const int tree = choose_tree();
      if (tree < 0) return false;
      pop(tree);
    }
    wishes.push_back({row, asked_[0].tree, asked_[0].node});
    return true;
  }

  void evaluate(int32_t tree, int32_t node) {
    evaluations_ += known_.evaluate(size_t(tree), node);
    if (searching_beam_ || (!asked_.empty() && pending_ < 0)) open(tree, node);
  }

  int64_t evaluations() const { return evaluations_; }

  void write(int32_t* labels, float* scores) {
    std::sort(found_.begin(), found_.end());
    for (int i = 0; i < settings_->k; ++i) {
      const bool have = size_t(i) < found_.size();
      labels[i] = have ? found_[i].label : -1;
      scores[i] = have ? found_[i].score : 0.0f;
    }
  }

  // The mean probability of a label, every family on its paths evaluated on demand.
  float probability(int32_t label) {
    double sum = 0;
    const size_t trees = forest_->parts().size();
    for (size_t t = 0; t < trees; ++t) {
      const int32_t leaf = forest_->parts()[t].leaf[label];
      if (leaf < 0) continue;
      for (int32_t missing; (missing = known_.first_unknown(t, leaf)) >= 0;) evaluate(int32_t(t), missing);
      sum += std::exp(double(known_.log_probability(t, leaf)));
    }
    return float(sum / double(trees));
  }

 private:
  float log_bound(size_t tree, int32_t node) const {
    return settings_->log_bounds ? settings_->log_bounds[forest_->parts()[tree].first_node + node] : 0.0f;
  }
  bool is_leaf(size_t tree, int32_t node) const { return forest_->parts()[tree].tree.is_leaf(node); }
  // Leaves have no children of their own, and the nodes stand in breadth-first order.
  bool has_only_leaves(size_t tree, int32_t node) const {
    const int32_t* first_child = forest_->parts()[tree].tree.first_child;
    return first_child[first_child[node]] == first_child[first_child[node + 1]];
  }
  bool has_a_leaf(size_t tree, int32_t node) const {
    const TreeView& shape = forest_->parts()[tree].tree;
    for (int32_t v = shape.first_child[node]; v < shape.first_child[node + 1]; ++v)
      if (shape.is_leaf(v)) return true;
    return false;
  }

  bool full() const { return found_.size() >= size_t(settings_->k); }
  // What a score must exceed to matter. The heap's front is the worst of the found.
  float bar() const { return full() ? found_.front().key : settings_->log_floor; }

  // log of the mean of exp(values)
  static float log_mean(const float* values, size_t size) {
    if (size == 1) return values[0];
    const float top = *std::max_element(values, values + size);
    if (top == kNever) return kNever;
    double sum = 0;
    for (size_t i = 0; i < size; ++i) sum += std::exp(double(values[i] - top));
    return float(top + std::log(sum / double(size)));
  }

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
      // every label has a leaf in every tree: one tree exhausted has shown them all
      if (frontier_[t].empty() && settings_->beam == 0) return -1;
    }
    const float bound = log_mean(key_.data(), trees);
    return bound > bar() ? int(best) : -1;
  }

  // What a key of this tree must exceed to matter: a label below it that has come out of no other tree scores at most
  // the mean of it and the others' best keys. The bar only rises and those only fall, so what is left out stays out.
  float entry_bar(int32_t tree) const {
    const size_t trees = frontier_.size();
    if (trees == 1) return bar();
    if (settings_->union_rule || settings_->beam > 0) return kNever;
    double rest = double(trees) * std::exp(double(bar()));
    for (size_t t = 0; t < trees; ++t)
      if (int32_t(t) != tree && !frontier_[t].empty()) rest -= std::exp(double(frontier_[t].front().key));
    return rest > 0 ? float(std::log(rest)) - kRounding : kNever;
  }

  void pop(int tree) {
    auto& queue = frontier_[tree];
    std::pop_heap(queue.begin(), queue.end());
    const int32_t node = queue.back().node;
    queue.pop_back();
    const Forest::Part& part = forest_->parts()[tree];
    if (!part.tree.is_leaf(node)) {
      if (known_.has_children(size_t(tree), node))
        open(tree, node);
      else
        asked_.push_back({0, int32_t(tree), node});
      return;
    }
    ++popped_[tree];
    const int32_t label = part.tree.label[node];
    bool fresh;
    seen_.find(label, fresh);
    if (fresh) pending_ = label;
  }

  // Queues the children of an evaluated node. With one tree a leaf's score is known at once.
  void open(int32_t tree, int32_t node) {
    const Forest::Part& part = forest_->parts()[tree];
    const int32_t begin = part.tree.first_child[node], end = part.tree.first_child[node + 1];
    const float* value = known_.children(size_t(tree), node);
    const bool alone = frontier_.size() == 1;
    const float enters = entry_bar(tree);
    for (int32_t v = begin; v < end; ++v) {
      const float key = value[v - begin] + log_bound(tree, v);
      if (key == kNever || std::isnan(key)) continue;
      const bool leaf = part.tree.is_leaf(v);
      if (alone && leaf) {
        offer(part.tree.label[v], key);
      } else if (searching_beam_ && !leaf) {
        beam_[tree].keep({key, v}, size_t(settings_->beam));
      } else if (key > enters) {
        frontier_[tree].push_back({key, v});
        std::push_heap(frontier_[tree].begin(), frontier_[tree].end());
      }
    }
  }

  // Goes on with the label that came out of one tree: asks for what is missing in the others, or judges it.
  void look_up(int32_t label) {
    const size_t trees = frontier_.size();
    const float gain = settings_->log_gain ? settings_->log_gain[label] : 0.0f;
    int32_t missing = -1, in_tree = -1;
    for (size_t t = 0; t < trees; ++t) {
      const Forest::Part& part = forest_->parts()[t];
      const int32_t leaf = part.leaf[label];
      if (leaf < 0) {
        key_[t] = kNever;
        continue;
      }
      const int32_t unknown = known_.first_unknown(t, leaf);
      key_[t] = known_.log_probability(t, unknown < 0 ? leaf : unknown);
      if (unknown >= 0 && missing < 0) {
        missing = unknown;
        in_tree = int32_t(t);
      }
    }
    const float key = gain + log_mean(key_.data(), trees);
    if (missing >= 0 && key > bar()) {
      asked_.push_back({0, in_tree, missing});
      return;
    }
    if (missing < 0) offer(label, key);
    pending_ = -1;
  }

  void offer(int32_t label, float key) {
    if (!(key > bar())) return;  // also refuses what is not a number
    if (settings_->log_threshold && key < settings_->log_threshold[label]) return;
    if (full()) {
      std::pop_heap(found_.begin(), found_.end());
      found_.pop_back();
    }
    found_.push_back({key, label, float(std::exp(double(key)))});
    std::push_heap(found_.begin(), found_.end());
  }

  // Goes on in every tree's level; false when all have come to their leaves.
  bool advance_beam() {
    for (size_t t = 0; t < beam_.size(); ++t) {
      const auto put_aside = [&](const Candidate& candidate) {
        if (!has_only_leaves(t, candidate.node)) return false;
        frontier_[t].push_back(candidate);
        std::push_heap(frontier_[t].begin(), frontier_[t].end());
        return true;
      };
      const auto has_leaves = [&](const Candidate& candidate) { return has_a_leaf(t, candidate.node); };
      const int32_t node = beam_[t].pop(size_t(settings_->beam), put_aside, has_leaves);
      if (node >= 0) asked_.push_back({0, int32_t(t), node});
    }
    searching_beam_ = !asked_.empty();
    return searching_beam_;
  }

  const Forest* forest_ = nullptr;
  const SearchSettings* settings_ = nullptr;
  KnownNodes known_;
  std::vector<std::vector<Candidate>> frontier_;  // per tree: heap of what is open
  std::vector<BeamLevels> beam_;                  // per tree
  std::vector<int32_t> popped_;                           // leaves that came out of each tree
  std::vector<float> key_;
  SmallMap seen_;  // labels that came out of some tree
  std::vector<Found> found_;
  std::vector<Wish> asked_;
  int32_t pending_ = -1;
  bool searching_beam_ = false;
  int64_t evaluations_ = 0;
};

constexpr int64_t kBlock = 512;  // rows searched side by side

Query query_of(const CsrView& X, const float* row_scale, int64_t row) {
  return {X.indices + X.indptr[row], X.data + X.indptr[row], X.row_size(row), row_scale[row]};
}

// A thread's searches and what they ask for.
struct Desk {
  std::vector<RowSearch> searches;
  std::vector<Wish> wishes;
  std::vector<int32_t> active;

  void run_block(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
                 int64_t begin, int64_t end) {
    if (searches.size() < size_t(end - begin)) searches.resize(size_t(end - begin));
    active.clear();
    for (int64_t row = begin; row < end; ++row) {
      searches[row - begin].start(forest, settings, query_of(X, row_scale, row));
      active.push_back(int32_t(row - begin));
    }
    while (!active.empty()) {
      wishes.clear();
      std::erase_if(active, [&](int32_t row) { return !searches[row].advance(row, wishes); });
      std::sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
        return a.tree != b.tree ? a.tree < b.tree : a.node != b.node ? a.node < b.node : a.row < b.row;
      });
      for (const Wish& wish : wishes) searches[wish.row].evaluate(wish.tree, wish.node);
    }
  }
};

}  // namespace

void top_k(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings, Work& work,
           int32_t* labels, float* scores, int64_t* evaluations) {
  const int64_t blocks = (X.rows + kBlock - 1) / kBlock;
  std::vector<Desk> desks(size_t(std::max(1, settings.threads)));
  work.for_each(blocks, settings.threads, [&](int64_t block, int thread) {
    const int64_t begin = block * kBlock, end = std::min(X.rows, begin + kBlock);
    Desk& desk = desks[thread];
    desk.run_block(forest, X, row_scale, settings, begin, end);
    for (int64_t row = begin; row < end; ++row) {
      desk.searches[row - begin].write(labels + row * settings.k, scores + row * settings.k);
      evaluations[row] = desk.searches[row - begin].evaluations();
    }
    work.add(double(end - begin) / double(X.rows));
  });
}

void probabilities(const Forest& forest, const CsrView& X, const float* row_scale, const int64_t* rows,
                   const int32_t* labels, int64_t pairs, int threads, Work& work, float* out) {
  const SearchSettings settings;
  // runs of the same row share what was evaluated
  std::vector<int64_t> run{0};
  for (int64_t i = 1; i < pairs; ++i)
    if (rows[i] != rows[i - 1]) run.push_back(i);
  if (pairs > 0) run.push_back(pairs);
  std::vector<RowSearch> searches(size_t(std::max(1, threads)));
  work.for_each(int64_t(run.size()) - 1, threads, [&](int64_t r, int thread) {
    RowSearch& search = searches[thread];
    search.start(forest, settings, query_of(X, row_scale, rows[run[r]]));
    for (int64_t i = run[r]; i < run[r + 1]; ++i) out[i] = search.probability(labels[i]);
  });
}

}  // namespace longleaf

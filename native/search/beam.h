// One tree's levels in beam search (Algorithm 2): the nodes of a level that wait, and the best of the next one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/keep_best.h"
#include "search/score_map.h"

namespace longleaf {

// A node that may be expanded: the higher its key, the sooner.
struct Candidate {
  float key;
  int32_t node;
  bool operator<(const Candidate& other) const { return key != other.key ? key < other.key : node > other.node; }
};

class BeamLevels {
 public:
  void clear() {
    level_.clear();
    next_.clear();
  }
  void begin(Candidate root) { level_.push_back(root); }

  // Returns the candidate that has no place, if any.
  std::optional<Candidate> keep(Candidate candidate, size_t beam) { return keep_best(next_, candidate, beam); }

  // The best key of all that waits.
  float best_key() const {
    float best = kNever;
    for (const auto* candidates : {&level_, &next_})
      for (const Candidate& one : *candidates) best = std::max(best, one.key);
    return best;
  }

  // The node to expand next, or -1 when the tree has come to its leaves. A level's nodes are expanded best first. From
  // where their inner children, whose keys are no higher, cannot enter the next level any more, only those that have
  // leaves among their children are; `drop` takes the others. `put_aside` takes a node of a new level if it need not be
  // expanded yet, and says so.
  template <class PutAside, class HasLeaves, class Drop>
  int32_t pop(size_t beam, PutAside put_aside, HasLeaves has_leaves, Drop drop) {
    if (!level_.empty() && next_.size() == beam && level_.front().key < next_.front().key) {
      std::erase_if(level_, [&](const Candidate& candidate) {
        if (has_leaves(candidate)) return false;
        drop(candidate);
        return true;
      });
      std::make_heap(level_.begin(), level_.end());
    }
    if (level_.empty()) descend(put_aside);
    if (level_.empty()) return -1;
    std::pop_heap(level_.begin(), level_.end());
    const int32_t node = level_.back().node;
    level_.pop_back();
    return node;
  }

 private:
  template <class PutAside>
  void descend(PutAside put_aside) {
    for (const Candidate& candidate : next_)
      if (!put_aside(candidate)) level_.push_back(candidate);
    std::make_heap(level_.begin(), level_.end());
    next_.clear();
  }

  std::vector<Candidate> level_, next_;
};

}  // namespace longleaf

// One tree's levels in beam search (Algorithm 2): the nodes of a level that wait, and the best of the next one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/keep_best.h"

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

  void keep(Candidate candidate, size_t beam) { keep_best(next_, candidate, beam); }

  // The node to expand next, or -1 when the tree has come to its leaves. A level's nodes are expanded best first. From
  // where their inner children, whose keys are no higher, cannot enter the next level any more, only those that have
  // leaves among their children are. `put_aside` takes a node of a new level if it need not be expanded yet, and says
  // so.
  template <class PutAside, class HasLeaves>
  int32_t pop(size_t beam, PutAside put_aside, HasLeaves has_leaves) {
    if (!level_.empty() && next_.size() == beam && level_.front().key < next_.front().key) {
      std::erase_if(level_, [&](const Candidate& candidate) { return !has_leaves(candidate); });
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

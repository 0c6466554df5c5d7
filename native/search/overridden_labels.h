// The labels of a row that have maps of their own, judged once all others have been searched.
//
// Each can score at most what its deepest evaluated ancestors allow. The one that could score most is looked at first:
// a family on its path is evaluated, or its score offered when all are. Whatever cannot reach the k-th score is
// dropped.
#pragma once

#include <algorithm>
#include <vector>

#include "search/best_labels.h"
#include "search/keys.h"
#include "search/known_nodes.h"

namespace longleaf {

class OverriddenLabels {
 public:
  void start(const Forest& forest, const SearchSettings& settings, const RowOverrides& row) {
    settings_ = &settings;
    row_ = row;
    value_.resize(forest.trees().size());
    begun_ = false;
  }

  bool has(int32_t label) const { return row_.find(label) >= 0; }

  // Offers scores until a family must be evaluated first, which it returns; its node is -1 when nothing is left.
  Family advance(const KnownNodes& known, BestLabels& best) {
    if (!begun_) begin(known);
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end());
      const int32_t place = open_.back().place;
      open_.pop_back();
      const Family missing = known.look_up(row_.label[place], value_.data());
      const float most = known_key(place, missing.node >= 0);
      if (missing.node < 0) {
        best.offer(row_.label[place], most, probability_);
      } else if (most >= best.bar()) {
        open_.push_back({most, place});
        std::push_heap(open_.begin(), open_.end());
        if (open_.front().place == place) return missing;  // with what is known by now it still comes first
      }
    }
    return {0, -1};
  }

 private:
  struct Open {
    float most;
    int32_t place;
    bool operator<(const Open& other) const { return most != other.most ? most < other.most : place > other.place; }
  };

  void begin(const KnownNodes& known) {
    begun_ = true;
    open_.clear();
    for (int32_t i = 0; i < row_.size; ++i) {
      const bool is_bound = known.look_up(row_.label[i], value_.data()).node >= 0;
      if (const float most = known_key(i, is_bound); most > kNever) open_.push_back({most, i});
    }
    std::make_heap(open_.begin(), open_.end());
  }

  float key_at(int64_t place, float log_probability) const {
    const float gain = settings_->gain(row_.label[place]);
    return gain == kNever || std::isnan(log_probability) ? kNever : row_.at(place).score(gain, log_probability);
  }

  // By what is in value_: the label's own key, or no less than it.
  float known_key(int64_t place, bool is_bound) {
    float mean = log_mean(value_.data(), value_.size());
    if (settings_->utility && !std::isnan(mean)) {
      if (is_bound && mean > kNever) mean += rounding_of_probability(mean);
      const float log_probability = row_.at(place).score(0.0f, mean);
      probability_ = std::exp(log_probability);
      return is_bound ? settings_->utility.most_key(row_.label[place], log_probability)
                      : settings_->utility.key(row_.label[place], log_probability);
    }
    if (!is_bound) return key_at(place, mean);
    if (mean > kNever) mean += rounding_of_probability(mean);
    const float most = key_at(place, mean);
    return most == kNever ? kNever : most + rounding(most);
  }

  const SearchSettings* settings_ = nullptr;
  RowOverrides row_;
  std::vector<float> value_;  // per tree
  std::vector<Open> open_;    // heap of the labels that may still matter
  float probability_ = 0;     // of the label looked at last, where labels have utilities
  bool begun_ = false;
};

}  // namespace longleaf

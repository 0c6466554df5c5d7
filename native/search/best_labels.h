// The best k labels of a row found so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/keep_best.h"
#include "search/search.h"

namespace longleaf {

// log of the mean of exp(values)
inline float log_mean(const float* values, size_t size) {
  if (size == 1) return values[0];
  const float top = *std::max_element(values, values + size);
  if (top == kNever) return kNever;
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += std::exp(double(values[i] - top));
  return float(top + std::log(sum / double(size)));
}

// Of equal scores the lower label is the better, so that the answer does not depend on the order of the search.
//
// Quotas: a row has at most so many labels of a group. Sets of labels that keep to them are the independent sets of a
// matroid, so that what leaves for a better label is the worst of the labels that it could replace: the worst of its
// group where that is full, else the worst of all.
class BestLabels {
 public:
  void start(const SearchSettings& settings) {
    settings_ = &settings;
    found_.clear();
    probabilities_.clear();
  }

  // What a score must reach to matter. The heap's front is the worst of the found.
  float bar() const { return full() ? found_.front().key : settings_->log_floor; }

  // Whether a label could enter, whatever its group.
  bool admits(int32_t label, float key) const {
    return full() ? found_.front() < Found{key, label} : key >= settings_->log_floor;
  }

  // probability: only where labels have utilities; else the score tells it.
  void offer(int32_t label, float key, float probability = 0.0f) {
    if (!(key >= bar()) || key == kNever) return;  // also refuses what is not a number
    if (settings_->log_threshold && key < settings_->log_threshold[label]) return;
    const Found found{key, label};
    if (settings_->utility) {
      if (settings_->utility.group != nullptr && !make_way(found)) return;
      probabilities_.push_back({label, probability});
    }
    keep_best(found_, found, size_t(settings_->k));
  }

  // Best first, padded with -1 and 0; nothing can be offered afterwards.
  void write(const Answers& answers, int64_t row) {
    std::sort(probabilities_.begin(), probabilities_.end());
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return b < a; });
    for (int64_t i = 0; i < settings_->k; ++i) {
      const bool have = size_t(i) < found_.size();
      answers.labels[row * settings_->k + i] = have ? found_[i].label : -1;
      if (settings_->utility) {
        answers.scores[row * settings_->k + i] = have ? found_[i].key : 0.0f;
        answers.probabilities[row * settings_->k + i] = have ? probability_of(found_[i].label) : 0.0f;
        continue;
      }
      answers.scores[row * settings_->k + i] = have ? float(std::exp(double(found_[i].key))) : 0.0f;
      if (!answers.probabilities) continue;
      // Not score / gain: a score may be too small for a float where a gain is extreme.
      const double log_probability =
          have ? std::min(0.0, double(found_[i].key) - settings_->gain(found_[i].label)) : kNever;
      answers.probabilities[row * settings_->k + i] = float(std::exp(log_probability));
    }
  }

 private:
  struct Found {
    float key;  // log score, or utility
    int32_t label;
    bool operator<(const Found& other) const { return key != other.key ? key < other.key : label > other.label; }
  };

  struct Probability {
    int32_t label;
    float value;
    bool operator<(const Probability& other) const { return label < other.label; }
  };

  float probability_of(int32_t label) const {
    return std::lower_bound(probabilities_.begin(), probabilities_.end(), Probability{label, 0.0f})->value;
  }

  bool full() const { return found_.size() >= size_t(settings_->k); }

  // Removes the worst label of a full group for a better one of it; false if there is no place for that.
  bool make_way(const Found& found) {
    const Utility& utility = settings_->utility;
    const int32_t group = utility.group[found.label];
    if (group < 0) return true;
    if (utility.quota[group] == 0) return false;
    int32_t members = 0;
    auto worst = found_.end();
    for (auto one = found_.begin(); one != found_.end(); ++one) {
      if (utility.group[one->label] != group) continue;
      ++members;
      if (worst == found_.end() || *one < *worst) worst = one;
    }
    if (members < utility.quota[group]) return true;
    if (found < *worst) return false;
    found_.erase(worst);
    std::make_heap(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return b < a; });
    return true;
  }

  const SearchSettings* settings_ = nullptr;
  std::vector<Found> found_;
  std::vector<Probability> probabilities_;  // of all labels that came in, where labels have utilities
};

}  // namespace longleaf

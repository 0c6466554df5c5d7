// Keys: the logs of what labels score and of what the labels below a node can score at most, for one row.
//
// Without a score map a key is log gain + log probability; with one, score_map.h.
#pragma once

#include "search/forest.h"

namespace longleaf {

// log_h: what its refined classifier says; at 0 the most that it can say.
inline float label_key(const SearchSettings& settings, int32_t label, float log_probability, float log_h = 0.0f) {
  if (!settings.map) return settings.gain(label) + log_probability;
  const float gain = settings.gain(label);
  // Also what is not a number: an impossible label stays impossible.
  if (gain == kNever || !(log_probability > kNever)) return kNever;
  return settings.map.of(label).score(gain, log_probability, log_h);
}

// At most, and at least, what a label scores whose log probability was computed in another way.
inline float least_label_key(const SearchSettings& settings, int32_t label, float log_probability) {
  if (settings.map) log_probability -= rounding_of_probability(log_probability);
  const float key = label_key(settings, label, log_probability);
  return key - rounding(key);
}
inline float most_label_key(const SearchSettings& settings, int32_t label, float log_probability) {
  if (settings.map) log_probability += rounding_of_probability(log_probability);
  const float key = label_key(settings, label, log_probability);
  return key + rounding(key);
}

inline const float* bounds_of(const Forest::Tree& tree, const SearchSettings& settings, int32_t inner) {
  return settings.map.bounds + (tree.first_chunk + tree.family_chunk[inner]) * kKnots;
}

inline float node_key(const Forest::Tree& tree, const SearchSettings& settings, int32_t node, float log_probability) {
  if (!settings.map) return log_probability + settings.bound(tree.first_node + node);
  if (tree.view.is_leaf(node)) return label_key(settings, tree.view.label[node], log_probability);
  if (!(log_probability > kNever)) return kNever;
  return score_bound(*settings.map.shape, bounds_of(tree, settings, node), log_probability);
}

// A child of `inner` whose log probability lies below this has a key below `level`: spares the keys of most.
inline float least_of_children(const Forest::Tree& tree, const SearchSettings& settings, int32_t inner, float level) {
  return settings.map ? least_log_probability(*settings.map.shape, bounds_of(tree, settings, inner), level) : kNever;
}

// The most that the log probability of a label can be whose key lies below `level`.
inline float most_log_probability(const SearchSettings& settings, int32_t label, float level) {
  if (!settings.map) return level - settings.gain(label);
  return settings.map.of(label).most_log_probability(settings.gain(label), level);
}

}  // namespace longleaf

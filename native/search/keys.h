// Keys: the logs of what labels score and of what the labels below a node can score at most, for one row.
//
// Without a score map a key is log gain + log probability; with one, score_map.h; with a utility, utility.h.
#pragma once

#include "search/forest.h"

namespace longleaf {

// What the trees' probability of a label becomes, as a log. log_h: what its refined classifier says; at 0 the most that
// it can say.
inline float mapped(const SearchSettings& settings, int32_t label, float log_probability, float log_h = 0.0f) {
  if (!settings.map || !(log_probability > kNever)) return log_probability;
  return settings.map.of(label).score(0.0f, log_probability, log_h);
}

// What a utility multiplies; scores tell it where there is none.
inline float label_probability(const SearchSettings& settings, int32_t label, float log_probability) {
  return settings.utility ? std::exp(mapped(settings, label, log_probability)) : 0.0f;
}

inline float label_key(const SearchSettings& settings, int32_t label, float log_probability, float log_h = 0.0f) {
  if (settings.utility) return settings.utility.key(label, mapped(settings, label, log_probability, log_h));
  if (!settings.map) return settings.gain(label) + log_probability;
  const float gain = settings.gain(label);
  // Also what is not a number: an impossible label stays impossible.
  if (gain == kNever || !(log_probability > kNever)) return kNever;
  return settings.map.of(label).score(gain, log_probability, log_h);
}

// At most, and at least, what a label scores whose log probability was computed in another way.
inline float least_label_key(const SearchSettings& settings, int32_t label, float log_probability) {
  if (settings.utility) {
    log_probability -= rounding_of_probability(log_probability);
    return settings.utility.least_key(label, mapped(settings, label, log_probability));
  }
  if (settings.map) log_probability -= rounding_of_probability(log_probability);
  const float key = label_key(settings, label, log_probability);
  return key - rounding(key);
}
inline float most_label_key(const SearchSettings& settings, int32_t label, float log_probability) {
  if (settings.utility) {
    log_probability += rounding_of_probability(log_probability);
    return settings.utility.most_key(label, mapped(settings, label, log_probability));
  }
  if (settings.map) log_probability += rounding_of_probability(log_probability);
  const float key = label_key(settings, label, log_probability);
  return key + rounding(key);
}

inline const float* bounds_of(const Forest::Tree& tree, const SearchSettings& settings, int32_t inner) {
  const float* bounds = settings.utility ? settings.utility.bounds : settings.map.bounds;
  return bounds + (tree.first_chunk + tree.family_chunk[inner]) * kKnots;
}
inline const ScoreShape& shape_of(const SearchSettings& settings) {
  return settings.utility ? *settings.utility.shape : *settings.map.shape;
}

inline float node_key(const Forest::Tree& tree, const SearchSettings& settings, int32_t node, float log_probability) {
  if (!settings.map && !settings.utility) return log_probability + settings.bound(tree.first_node + node);
  if (tree.view.is_leaf(node)) return label_key(settings, tree.view.label[node], log_probability);
  if (std::isnan(log_probability) || (log_probability == kNever && !settings.utility)) return kNever;
  return score_bound(shape_of(settings), bounds_of(tree, settings, node), log_probability);
}

// A child of `inner` whose log probability lies below this has a key below `level`: spares the keys of most.
inline float least_of_children(const Forest::Tree& tree, const SearchSettings& settings, int32_t inner, float level) {
  if (!settings.map && !settings.utility) return kNever;
  return least_log_probability(shape_of(settings), bounds_of(tree, settings, inner), level);
}

// The most that the log probability of a label can be whose key lies below `level`.
inline float most_log_probability(const SearchSettings& settings, int32_t label, float level) {
  if (settings.utility) {
    const float most = settings.utility.most_log_probability(label, level);
    return settings.map && most < 0 && most > kNever ? settings.map.of(label).most_log_probability(0.0f, most) : most;
  }
  if (!settings.map) return level - settings.gain(label);
  return settings.map.of(label).most_log_probability(settings.gain(label), level);
}

}  // namespace longleaf

// How the weights of one feature are laid out in a chunk: see ChunkView in core.h.
#pragma once

#include <algorithm>
#include <cstdint>

namespace longleaf {

inline int mask_bytes(int width) { return (width + 7) / 8; }

// What a slot of n weights takes, without its `end`.
inline int64_t slot_bytes(int64_t n, int width, int weight_size) {
  return n * weight_size + std::min<int64_t>(n, mask_bytes(width));
}
// How many weights a slot of so many bytes has.
inline int64_t slot_weights(int64_t bytes, int width, int weight_size) {
  const int64_t mask = mask_bytes(width);
  return bytes <= mask * (weight_size + 1) ? bytes / (weight_size + 1) : (bytes - mask) / weight_size;
}

}  // namespace longleaf

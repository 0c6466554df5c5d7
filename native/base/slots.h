// How the weights of one feature are laid out in a chunk: see ChunkView in weights/weights.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace longleaf {

inline constexpr int64_t kEndBytes = 2;  // what says where a slot ends
// always inlined: a copy made for one instruction set must not serve another
[[gnu::always_inline]] inline uint32_t slot_end(const uint8_t* ends, int64_t slot) {
  uint16_t end;
  std::memcpy(&end, ends + kEndBytes * slot, sizeof end);
  return end;
}

inline int mask_bytes(int width) { return (width + 7) / 8; }

// What a slot of n weights takes, without its end.
inline int64_t slot_bytes(int64_t n, int width, int weight_size) {
  return n * weight_size + std::min<int64_t>(n, mask_bytes(width));
}
// How many weights a slot of so many bytes has.
inline int64_t slot_weights(int64_t bytes, int width, int weight_size) {
  const int64_t mask = mask_bytes(width);
  return bytes <= mask * (weight_size + 1) ? bytes / (weight_size + 1) : (bytes - mask) / weight_size;
}

}  // namespace longleaf

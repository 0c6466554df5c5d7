// Eight floats at a time, in the compiler's own vector notation.
//
// The same source is compiled once for any x86-64 (or other) machine and once for AVX2; `kernels()` picks at run
// time. Nothing here may use a standard-library template: the linker keeps only one copy of those, and it could be
// the AVX2 one.
#pragma once

#include <cstdint>
#include <cstring>
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace longleaf {

using f32x8 = float __attribute__((vector_size(32)));
using i32x8 = int32_t __attribute__((vector_size(32)));

using u8x8 = uint8_t __attribute__((vector_size(8)));

#define LONGLEAF_INLINE static inline __attribute__((always_inline))

LONGLEAF_INLINE f32x8 splat(float v) { return f32x8{v, v, v, v, v, v, v, v}; }
LONGLEAF_INLINE f32x8 load8(const float* p) {
  f32x8 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
LONGLEAF_INLINE void store8(float* p, f32x8 v) { std::memcpy(p, &v, sizeof v); }
LONGLEAF_INLINE f32x8 select(i32x8 mask, f32x8 a, f32x8 b) { return (f32x8)((mask & (i32x8)a) | (~mask & (i32x8)b)); }
LONGLEAF_INLINE f32x8 max8(f32x8 a, f32x8 b) { return select(a > b, a, b); }
LONGLEAF_INLINE f32x8 min8(f32x8 a, f32x8 b) { return select(a < b, a, b); }
LONGLEAF_INLINE f32x8 abs8(f32x8 a) { return (f32x8)((i32x8)a & 0x7fffffff); }
// Eight bytes as integers; the compiler's own conversion converts them one by one.
LONGLEAF_INLINE i32x8 widen8(const uint8_t* bytes) {
#ifdef __AVX2__
  return (i32x8)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)bytes));
#else
  u8x8 raw;
  std::memcpy(&raw, bytes, sizeof raw);
  return __builtin_convertvector(raw, i32x8);
#endif
}
// x where `which` is above 0, and 0 where it is 0.
LONGLEAF_INLINE i32x8 keep8(i32x8 x, i32x8 which) {
#ifdef __AVX2__
  return (i32x8)_mm256_sign_epi32((__m256i)x, (__m256i)which);
#else
  return (which > 0) & x;
#endif
}
// The lanes of a mask as bits.
LONGLEAF_INLINE uint32_t bits8(i32x8 mask) {
#ifdef __AVX2__
  return uint32_t(_mm256_movemask_ps((__m256)mask));
#else
  uint32_t bits = 0;
  for (int lane = 0; lane < 8; ++lane) bits |= uint32_t(mask[lane] & 1) << lane;
  return bits;
#endif
}
LONGLEAF_INLINE bool any8(i32x8 mask) {
  int64_t words[4];
  std::memcpy(words, &mask, sizeof words);
  return (words[0] | words[1] | words[2] | words[3]) != 0;
}

// exp(x) for x <= 0, relative error below 2e-7; 0 below -87. Cody-Waite reduction by ln 2 and a degree-6 polynomial.
LONGLEAF_INLINE f32x8 exp_nonpositive(f32x8 x) {
  const f32x8 low = splat(-87.0f);
  const i32x8 alive = x > low;
  x = max8(x, low);
  const f32x8 magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const f32x8 shifted = x * splat(1.44269504088896341f) + magic;
  const i32x8 exponent = (i32x8)shifted - (i32x8)magic;
  const f32x8 n = shifted - magic;
  f32x8 r = x - n * splat(0.693359375f);
  r = r - n * splat(-2.12194440e-4f);
  f32x8 p = splat(1.9875691500e-4f);
  p = p * r + splat(1.3981999507e-3f);
  p = p * r + splat(8.3334519073e-3f);
  p = p * r + splat(4.1665795894e-2f);
  p = p * r + splat(1.6666665459e-1f);
  p = p * r + splat(5.0000001201e-1f);
  p = p * r * r + r + splat(1.0f);
  const f32x8 scale = (f32x8)((exponent + 127) << 23);
  return select(alive, p * scale, splat(0.0f));
}

// log(1 + z) for 0 <= z <= 1, by 2 atanh(z / (2 + z)): absolute error below 1e-7, relative below 2e-7.
LONGLEAF_INLINE f32x8 log1p_unit(f32x8 z) {
  const f32x8 s = z / (z + splat(2.0f));  // at most 1/3
  const f32x8 s2 = s * s;
  f32x8 p = splat(2.0f / 13);
  p = p * s2 + splat(2.0f / 11);
  p = p * s2 + splat(2.0f / 9);
  p = p * s2 + splat(2.0f / 7);
  p = p * s2 + splat(2.0f / 5);
  p = p * s2 + splat(2.0f / 3);
  p = p * s2 + splat(2.0f);
  return p * s;
}

}  // namespace longleaf

// Picks the kernel table once, by what the processor says it can do. LONGLEAF_SIMD=baseline forces the portable one.
#include <cstdlib>
#include <cstring>

#include "kernels.h"

namespace longleaf {

extern const Kernels kernels_baseline;
#ifdef LONGLEAF_HAVE_AVX2
extern const Kernels kernels_avx2;
#endif

namespace {

const Kernels* pick() {
#ifdef LONGLEAF_HAVE_AVX2
  const char* wish = std::getenv("LONGLEAF_SIMD");
  const bool baseline = wish != nullptr && std::strcmp(wish, "baseline") == 0;
  if (!baseline && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt")) return &kernels_avx2;
#endif
  return &kernels_baseline;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels* const picked = pick();
  return *picked;
}

}  // namespace longleaf

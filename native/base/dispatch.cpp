// Picks the kernel table once, by what the processor says it can do. LONGLEAF_SIMD=baseline forces the portable one,
// LONGLEAF_SIMD=avx2 fails where there is no AVX2.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/kernels.h"

namespace longleaf {

extern const Kernels kernels_baseline;
#ifdef LONGLEAF_HAVE_AVX2
extern const Kernels kernels_avx2;
#endif

namespace {

bool has_avx2() {
#ifdef LONGLEAF_HAVE_AVX2
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}

const Kernels* pick() {
  const char* request = std::getenv("LONGLEAF_SIMD");
  const std::string_view name = request == nullptr ? "" : request;
  const bool best = name.empty();
  if (best ? !has_avx2() : name == "baseline") return &kernels_baseline;
#ifdef LONGLEAF_HAVE_AVX2
  if (has_avx2() && (best || name == "avx2")) return &kernels_avx2;
#endif
  throw std::invalid_argument(std::string("LONGLEAF_SIMD must be baseline") +
                              (has_avx2() ? " or avx2" : ", all that this processor has") + ", or not set; got '" +
                              std::string(name) + "'.");
}

}  // namespace

const Kernels& kernels() {
  static const Kernels* const picked = pick();
  return *picked;
}

}  // namespace longleaf

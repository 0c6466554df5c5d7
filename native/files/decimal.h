// Decimal text to the nearest float32.
//
// Given a token such as 0.07181, -3, +1.5e-3; out comes the float32 nearest to the written number (ties to even),
// always, not merely almost always. Three roads, each exact:
//  1. at most 24 bits of digits and at most 10 decimals: both operands of one float division are exact, so the
//     division's own rounding is the only one (Clinger, "How to read floating point numbers accurately", 1990);
//  2. at most 53 bits and 22 decimals: the same in double, then rounded once more to float. Two roundings differ from
//     one only if the double lies exactly halfway between two floats, which is seen in its low 29 bits;
//  3. anything else: std::from_chars.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace longleaf {

enum class DecimalStatus { ok, not_a_number, too_large };

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The power of ten just above the number written in [begin, end), which from_chars has already accepted.
inline int64_t decimal_magnitude(const char* begin, const char* end) {
  int64_t magnitude = 0;
  bool seen_point = false, seen_nonzero = false;
  const char* p = begin;
  for (; p != end && *p != 'e' && *p != 'E'; ++p) {
    if (*p == '.') seen_point = true;
    if (!is_digit(*p)) continue;
    seen_nonzero |= *p != '0';
    if (seen_nonzero && !seen_point) ++magnitude;
    if (!seen_nonzero && seen_point) --magnitude;
  }
  if (p == end) return magnitude;
  ++p;
  const bool negative = *p == '-';
  int64_t exponent = 0;
  constexpr int64_t far_away = int64_t{1} << 60;
  for (; p != end; ++p)
    if (is_digit(*p) && exponent < far_away / 16) exponent = exponent * 10 + (*p - '0');
  return negative ? magnitude - exponent : magnitude + exponent;
}

inline DecimalStatus parse_float32_slowly(const char* begin, const char* end, float& value) {
  if (begin != end && *begin == '+') {
    ++begin;
    if (begin != end && *begin == '-') return DecimalStatus::not_a_number;
  }
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (stop != end || error == std::errc::invalid_argument) return DecimalStatus::not_a_number;
  if (error == std::errc::result_out_of_range) {  // from_chars says the same of too large and too small
    if (decimal_magnitude(begin, end) > 0) return DecimalStatus::too_large;
    value = *begin == '-' ? -0.0f : 0.0f;
    return DecimalStatus::ok;
  }
  return std::isfinite(value) ? DecimalStatus::ok : DecimalStatus::not_a_number;
}

// Reads a number that starts at p by roads 1 and 2 and returns where it stops, or null where they do not lead. Stops at
// the first byte that cannot belong to it, so the text must end in one such byte (a line break does).
inline const char* parse_float32_fast(const char* p, float& value) {
  static constexpr float float_powers[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
  static constexpr double double_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const bool negative = *p == '-';
  if (negative || *p == '+') ++p;
  uint64_t digits = 0;
  const char* start = p;
  for (; is_digit(*p); ++p) digits = digits * 10 + static_cast<uint64_t>(*p - '0');
  auto n_digits = p - start, n_decimals = decltype(p - start){0};
  if (*p == '.') {
    start = ++p;
    for (; is_digit(*p); ++p) digits = digits * 10 + static_cast<uint64_t>(*p - '0');
    n_decimals = p - start;
    n_digits += n_decimals;
  }
  if (n_digits == 0 || n_digits > 19) return nullptr;  // 19 digits cannot overflow 64 bits
  float magnitude;
  if (digits <= (uint64_t{1} << 24) && n_decimals <= 10) {
    magnitude = static_cast<float>(static_cast<int32_t>(digits)) / float_powers[n_decimals];
  } else {
    if (digits > (uint64_t{1} << 53)) return nullptr;
    const double wide = static_cast<double>(digits) / double_powers[n_decimals];
    constexpr uint64_t below_float = (uint64_t{1} << 29) - 1, halfway = uint64_t{1} << 28;
    if ((std::bit_cast<uint64_t>(wide) & below_float) == halfway) return nullptr;
    if (wide < std::numeric_limits<float>::min()) return nullptr;  // subnormal floats have fewer bits
    magnitude = static_cast<float>(wide);
  }
  value = negative ? -magnitude : magnitude;
  return p;
}

}  // namespace longleaf

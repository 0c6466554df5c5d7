// The labels whose names mean most nearly what a row means.
//
// Problem: given rows and names as vectors of `columns` 8-bit codes, find for each row the `most` labels whose best
// name has the largest inner product with it. Of equal labels the one with the smaller number is nearer.
//
// Every product is computed, in whole numbers: the answer is exact, and the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"

namespace longleaf {

inline constexpr int64_t kCodesAtOnce = 16;        // columns are a multiple of this
inline constexpr int64_t kMostCodeColumns = 4096;  // so that a product fits 32 bits

struct NameCodes {
  std::span<const int8_t> codes;    // [names * columns]
  std::span<const int32_t> labels;  // [names], ascending
  int64_t columns;
};
struct NearLabels {
  std::vector<int64_t> indptr;  // [rows + 1]
  std::vector<int32_t> labels;  // ascending in each row
  std::vector<int32_t> products;
};

NearLabels nearest_labels(const NameCodes& names, std::span<const int8_t> rows, int64_t most, int threads, Work& work);

}  // namespace longleaf

// The inner loops that are worth vector instructions, as a table of functions: one table per instruction set.
#pragma once

#include <cstdint>

namespace longleaf {

// Classifiers trained together: two vector registers, a whole cache line of weights per feature. Eight measured slower.
inline constexpr int kLanes = 16;

// One row of a training problem, features renumbered to the problem's own.
struct LocalRow {
  const uint32_t* feature;
  const float* value;
  int64_t size;
};

// What coordinate descent keeps for one row and kLanes classifiers, and what it reads.
struct LaneStep {
  const float* margin_wx;  // w.x per lane, without the side
  const float* side;  // above 0, below 0, or 0 where the row does not belong to that lane; its size weighs the cost
  const float* c_positive;  // cost per lane of an error on a positive row
  const float* c_negative;
  float row_weight;
  float q;                   // x.x, the bias included
  float* moved;              // state per lane: how far w has moved along x, the side times alpha
  float* dual;               // and, for logistic only, the margin that alpha implies
  float* delta;              // out: how far w moves along x, per lane
  double* gap;               // accumulated duality gap per lane
  double* loss;              // accumulated primal loss per lane
  const float* settled_gap;  // a row whose gap lies below this in every lane is settled and not moved
};

// How a tree's weights are divided: see ChunkView in weights/weights.h.
inline constexpr int kChunkWidth = 192;  // siblings of a chunk; 64 slots of 192 32-bit weights end below 65536
inline constexpr int64_t kPageFeatures = 4096, kWordFeatures = 64;
inline constexpr int64_t kSpareBytes = 8;  // after the last chunk's bytes: the kernels read eight codes at a time

// One chunk of weights, and the features of a row that is looked up in it.
inline constexpr uint32_t kDenseWord = uint32_t(1) << 31;
struct Word {
  uint32_t low, high;  // the bitmap of its 64 features
  uint32_t block;      // where its block of bytes begins, and kDenseWord if that has a weight for every child

  [[gnu::always_inline]] uint64_t bits() const { return uint64_t(high) << 32 | low; }
  [[gnu::always_inline]] uint32_t first_byte() const { return block & ~kDenseWord; }
  [[gnu::always_inline]] bool dense() const { return (block & kDenseWord) != 0; }
};
struct Chunk {
  const uint64_t* page_words;
  const uint32_t* page_first;
  const Word* words;
  const uint8_t* bytes;
  int width;
  bool coded;
  uint32_t low, step;  // what a code stands for, as bits of a float
};
struct Query {
  const int32_t* feature;
  const float* value;
  int64_t size;
  float scale;
};

struct Kernels {
  const char* name;
  // margin[lane] = sum over the row's features of value * weight[feature][lane]; 8-aligned rows of kLanes floats
  void (*lane_margins)(const LocalRow& row, const float* weights, float* margin);
  // weight[feature][lane] += value * delta[lane]
  void (*lane_update)(const LocalRow& row, const float* delta, float* weights);
  // sum[lane] += scale * rows[row][lane]^2 over all rows; scale: one per row, or null for 1
  void (*lane_squares)(const float* rows, const float* scale, int64_t size, double* sum);
  // which lanes of a row of weights have at least that magnitude, a bit each
  uint32_t (*lanes_above)(const float* row, float least);
  // one coordinate-descent step in all lanes; false when the row is settled (then delta is not set)
  bool (*logistic_step)(const LaneStep& step);
  bool (*squared_hinge_step)(const LaneStep& step);
  // margin[child] += scale * value * weight, over the query's features and the chunk's children
  void (*add_products)(const Chunk& chunk, const Query& query, float* margin);
  // margins to log probabilities, in place
  void (*logistic_log_probability)(float* margin, int64_t size);
  void (*hinge_log_probability)(float* margin, int64_t size, int power);
  // products[i] = query . codes[i], each of `columns` numbers, a multiple of 16
  void (*code_products)(const int16_t* query, const int8_t* codes, int64_t size, int64_t columns, int32_t* products);
};

const Kernels& kernels();  // the best table that this machine can run

}  // namespace longleaf

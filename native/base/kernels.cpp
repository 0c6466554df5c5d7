// Compiled once per instruction set, with LONGLEAF_KERNELS naming the table it defines. See simd.h for what is
// allowed in here.
#include "base/kernels.h"

#include "base/products.h"
#include "base/simd.h"

namespace longleaf {
namespace {

constexpr int kVectors = kLanes / 8;

void lane_margins(const LocalRow& row, const float* weights, float* margin) {
  f32x8 even[kVectors] = {}, odd[kVectors] = {};  // separate chains hide the latency of the multiply-add
  int64_t i = 0;
  for (; i + 2 <= row.size; i += 2) {
    const float* w = weights + kLanes * size_t(row.feature[i]);
    const float* u = weights + kLanes * size_t(row.feature[i + 1]);
    for (int v = 0; v < kVectors; ++v) even[v] += splat(row.value[i]) * load8(w + 8 * v);
    for (int v = 0; v < kVectors; ++v) odd[v] += splat(row.value[i + 1]) * load8(u + 8 * v);
  }
  if (i < row.size)
    for (int v = 0; v < kVectors; ++v)
      even[v] += splat(row.value[i]) * load8(weights + kLanes * size_t(row.feature[i]) + 8 * v);
  for (int v = 0; v < kVectors; ++v) store8(margin + 8 * v, even[v] + odd[v]);
}

void lane_update(const LocalRow& row, const float* delta, float* weights) {
  f32x8 step[kVectors];
  for (int v = 0; v < kVectors; ++v) step[v] = load8(delta + 8 * v);
  for (int64_t i = 0; i < row.size; ++i) {
    float* w = weights + kLanes * size_t(row.feature[i]);
    for (int v = 0; v < kVectors; ++v) store8(w + 8 * v, load8(w + 8 * v) + splat(row.value[i]) * step[v]);
  }
}

// In single precision for a thousand rows at a time, which keeps the rounding far below the tolerance.
void lane_squares(const float* rows, const float* scale, int64_t size, double* sum) {
  for (int64_t begin = 0; begin < size; begin += 1024) {
    const int64_t end = begin + 1024 < size ? begin + 1024 : size;
    f32x8 total[kVectors] = {};
    for (int64_t i = begin; i < end; ++i)
      for (int v = 0; v < kVectors; ++v) {
        const f32x8 w = load8(rows + i * kLanes + 8 * v);
        total[v] += scale ? w * w * scale[i] : w * w;
      }
    for (int lane = 0; lane < kLanes; ++lane) sum[lane] += total[lane / 8][lane % 8];
  }
}

uint32_t lanes_above(const float* row, float least) {
  uint32_t lanes = 0;
  for (int v = 0; v < kVectors; ++v) lanes |= bits8(abs8(load8(row + 8 * v)) >= least) << 8 * v;
  return lanes;
}

LONGLEAF_INLINE void accumulate(double* total, f32x8 value) {
  for (int lane = 0; lane < 8; ++lane) total[lane] += value[lane];
}

LONGLEAF_INLINE f32x8 lane_costs(const LaneStep& s, f32x8 weighted_side) {
  return select(weighted_side > 0.0f, load8(s.c_positive), load8(s.c_negative)) * s.row_weight * abs8(weighted_side);
}
LONGLEAF_INLINE f32x8 sign8(f32x8 x) {
  return select(x > 0.0f, splat(1.0f), select(x < 0.0f, splat(-1.0f), splat(0.0f)));
}

// e = exp(-|t|)  ->  sigmoid(-t)
LONGLEAF_INLINE f32x8 sigmoid_of_minus(f32x8 t, f32x8 e) {
  return select(t > 0.0f, e, splat(1.0f)) / (splat(1.0f) + e);
}

// The dual of L2-regularised logistic regression, one row: the margin t of the new alpha = C sigmoid(-t) solves
//   t = m + Q (C sigmoid(-t) - alpha),        m the margin now,
// increasing in t minus the right side, so Newton's method with one safe limit finds it: the first Newton point
// from 0 lies between 0 and the root, and beyond 0 on that side the function is convex or concave, so that steps
// from there approach the root from one side only.
LONGLEAF_INLINE bool logistic_step8(const LaneStep& s) {
  const f32x8 one = splat(1.0f);
  const f32x8 side = sign8(load8(s.side)), cost = lane_costs(s, load8(s.side));
  const f32x8 m = load8(s.margin_wx) * side;
  const f32x8 old = load8(s.dual);
  const f32x8 e_old = exp_nonpositive(-abs8(old)), e_m = exp_nonpositive(-abs8(m));
  const f32x8 p_old = sigmoid_of_minus(old, e_old);

  // Fenchel-Young gap of the row: C KL(alpha / C || sigmoid(-m)); summed over rows it is the duality gap.
  const f32x8 loss_m = log1p_unit(e_m) + max8(-m, splat(0.0f));
  const f32x8 loss_old = log1p_unit(e_old) + max8(-old, splat(0.0f));
  const f32x8 gap = cost * max8(p_old * (m - old) + loss_m - loss_old, splat(0.0f));
  accumulate(s.gap, gap);
  accumulate(s.loss, cost * loss_m);
  if (!any8(gap > load8(s.settled_gap))) {
    store8(s.delta, splat(0.0f));
    return false;
  }

  const f32x8 qc = cost * s.q;
  const f32x8 rest = m - qc * p_old;  // root of t - rest - qc sigmoid(-t)
  const f32x8 limit = (rest + qc * 0.5f) / (one + qc * 0.25f);
  const i32x8 right = limit > 0.0f;
  f32x8 t = select(right, max8(old, limit), min8(old, limit));
  f32x8 p{};
  for (int iteration = 0; iteration < 12; ++iteration) {
    p = sigmoid_of_minus(t, exp_nonpositive(-abs8(t)));
    const f32x8 residual = t - rest - qc * p;
    // a twentieth of what the step set out to correct is near enough: the next visit continues from there
    if (!any8(abs8(residual) > abs8(m - old) * 0.05f + 1e-5f)) break;
    t = t - residual / (one + qc * p * (one - p));
    t = select(right, max8(t, limit), min8(t, limit));
    p = sigmoid_of_minus(t, exp_nonpositive(-abs8(t)));
  }
  const f32x8 delta = side * cost * (p - p_old);
  store8(s.dual, select(cost > 0.0f, t, old));
  store8(s.moved, load8(s.moved) + delta);
  store8(s.delta, delta);
  return true;
}

// Squared hinge: the closed-form step of Hsieh et al. (2008), alpha >= 0, with the diagonal 1 / 2C.
LONGLEAF_INLINE bool squared_hinge_step8(const LaneStep& s) {
  const f32x8 zero = splat(0.0f), one = splat(1.0f);
  const f32x8 side = sign8(load8(s.side)), cost = lane_costs(s, load8(s.side));
  const i32x8 active = cost > 0.0f;
  const f32x8 diagonal = select(active, splat(0.5f) / select(active, cost, one), one);
  const f32x8 m = load8(s.margin_wx) * side;
  const f32x8 alpha = load8(s.moved) * side;
  const f32x8 slack = max8(one - m, zero);
  const f32x8 gradient = m - one + alpha * diagonal;
  // C slack^2 + alpha (m - 1) + alpha^2 / 4C, zero at the optimum
  const f32x8 gap =
      select(active, max8(cost * slack * slack + alpha * (m - one) + alpha * alpha * diagonal * 0.5f, zero), zero);
  accumulate(s.gap, gap);
  accumulate(s.loss, cost * slack * slack);
  if (!any8(gap > load8(s.settled_gap))) {
    store8(s.delta, splat(0.0f));
    return false;
  }
  const f32x8 next = select(active, max8(alpha - gradient / (diagonal + s.q), zero), zero);
  store8(s.moved, side * next);
  store8(s.delta, side * (next - alpha));
  return true;
}

LONGLEAF_INLINE LaneStep eight_lanes(const LaneStep& s, int first) {
  return {s.margin_wx + first,  s.side + first, s.c_positive + first,
          s.c_negative + first, s.row_weight,   s.q,
          s.moved + first,      s.dual + first, s.delta + first,
          s.gap + first,        s.loss + first, s.settled_gap + first};
}

bool logistic_step(const LaneStep& s) {
  bool moved = false;
  for (int lane = 0; lane < kLanes; lane += 8) moved |= logistic_step8(eight_lanes(s, lane));
  return moved;
}

bool squared_hinge_step(const LaneStep& s) {
  bool moved = false;
  for (int lane = 0; lane < kLanes; lane += 8) moved |= squared_hinge_step8(eight_lanes(s, lane));
  return moved;
}

// A tail shorter than a vector is computed in a padded copy, so every margin gets the same bits wherever it stands.
template <class Function>
LONGLEAF_INLINE void transform(float* values, int64_t size, Function function) {
  int64_t i = 0;
  for (; i + 8 <= size; i += 8) store8(values + i, function(load8(values + i)));
  if (i < size) {
    float tail[8] = {};
    std::memcpy(tail, values + i, sizeof(float) * size_t(size - i));
    store8(tail, function(load8(tail)));
    std::memcpy(values + i, tail, sizeof(float) * size_t(size - i));
  }
}

void logistic_log_probability(float* margin, int64_t size) {
  transform(margin, size, [](f32x8 m) { return min8(m, splat(0.0f)) - log1p_unit(exp_nonpositive(-abs8(m))); });
}

// exp(-max(0, 1 - m)^power): with power 2 the paper's estimate for squared hinge
void hinge_log_probability(float* margin, int64_t size, int power) {
  transform(margin, size, [power](f32x8 m) {
    const f32x8 slack = max8(splat(1.0f) - m, splat(0.0f));
    f32x8 product = -slack;
    for (int i = 1; i < power; ++i) product *= slack;
    return product;
  });
}

void code_products(const int16_t* query, const int8_t* codes, int64_t size, int64_t columns, int32_t* products) {
  for (int64_t i = 0; i < size; ++i, codes += columns) {
#ifdef __AVX2__
    __m256i sum = _mm256_setzero_si256();
    for (int64_t c = 0; c < columns; c += 16) {
      const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)(codes + c)));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(wide, _mm256_loadu_si256((const __m256i*)(query + c))));
    }
    const i32x8 lanes = (i32x8)sum;
    products[i] = lanes[0] + lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7];
#else
    int32_t sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += int32_t(query[c]) * codes[c];
    products[i] = sum;
#endif
  }
}

}  // namespace

#define LONGLEAF_STRING_(x) #x
#define LONGLEAF_STRING(x) LONGLEAF_STRING_(x)

extern const Kernels LONGLEAF_KERNELS;
const Kernels LONGLEAF_KERNELS{LONGLEAF_STRING(LONGLEAF_KERNELS),
                               lane_margins,
                               lane_update,
                               lane_squares,
                               lanes_above,
                               logistic_step,
                               squared_hinge_step,
                               add_products,
                               logistic_log_probability,
                               hinge_log_probability,
                               code_products};

}  // namespace longleaf

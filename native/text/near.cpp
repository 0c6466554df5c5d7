#include "text/near.h"

#include <algorithm>

#include "base/keep_best.h"
#include "base/kernels.h"

namespace longleaf {
namespace {

constexpr int64_t kNamesAtOnce = 1024;

struct Near {
  int32_t product, label;

  bool operator<(const Near& other) const {
    return product != other.product ? product < other.product : label > other.label;
  }
};

// The nearest labels of one row, the worst in front.
class Nearest {
 public:
  explicit Nearest(size_t most) : most_(most) { best_.reserve(most); }

  void add(int32_t label, int32_t product) {
    if (label != current_.label) flush();
    current_ = {label == current_.label ? std::max(product, current_.product) : product, label};
  }
  std::vector<Near>& finish() {
    flush();
    std::ranges::sort(best_, {}, &Near::label);
    return best_;
  }

 private:
  void flush() {
    if (current_.label >= 0) keep_best(best_, current_, most_);
  }

  size_t most_;
  std::vector<Near> best_;
  Near current_{0, -1};
};

}  // namespace

NearLabels nearest_labels(const NameCodes& names, std::span<const int8_t> rows, int64_t most, int threads, Work& work) {
  const int64_t n_rows = int64_t(rows.size()) / names.columns, n_names = int64_t(names.labels.size());
  int64_t n_labels = n_names > 0;
  for (int64_t name = 1; name < n_names; ++name) n_labels += names.labels[name] != names.labels[name - 1];
  const int64_t kept = std::min(most, n_labels);
  NearLabels found{std::vector<int64_t>(size_t(n_rows + 1)), std::vector<int32_t>(size_t(n_rows * kept)),
                   std::vector<int32_t>(size_t(n_rows * kept))};
  for (int64_t row = 0; row <= n_rows; ++row) found.indptr[size_t(row)] = row * kept;
  if (kept == 0) return found;
  work.for_each(n_rows, threads, [&](int64_t row, int) {
    const std::vector<int16_t> query(rows.begin() + row * names.columns, rows.begin() + (row + 1) * names.columns);
    int32_t products[kNamesAtOnce];
    Nearest nearest{size_t(kept)};
    for (int64_t begin = 0; begin < n_names; begin += kNamesAtOnce) {
      work.check();
      const int64_t size = std::min(kNamesAtOnce, n_names - begin);
      kernels().code_products(query.data(), names.codes.data() + begin * names.columns, size, names.columns, products);
      for (int64_t i = 0; i < size; ++i) nearest.add(names.labels[size_t(begin + i)], products[i]);
    }
    int64_t place = row * kept;
    for (const Near& one : nearest.finish()) {
      found.labels[size_t(place)] = one.label;
      found.products[size_t(place++)] = one.product;
    }
    work.add(double(n_names));
  });
  return found;
}

}  // namespace longleaf

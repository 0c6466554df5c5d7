// Sides of rows and orders of labels that fit each other.
//
// Problem: divide rows into two sides, and order the labels once for each side, so that
//   sum_i DCG(order of the side of i, labels of i)
// is high. Given: the rows' labels, the gain of each; sides to begin with. Out: sides. Dividing by
// what a row's best order would add up to makes it nDCG. The propensity-scored one is divided by the same sum for all
// rows instead, so that nothing needs to be divided here (Jain, Prabhu and Varma, KDD 2016). Method: an order by what
// the labels add to its rows is the best for them, the side whose order adds more the best for a row; one after the
// other until the sum stands still (Prabhu and Varma, "FastXML", KDD 2014). A row that gains nothing stays where it is.
#include "baselines/ndcg_sides.h"

#include <algorithm>
#include <cmath>

namespace longleaf {

namespace {

constexpr int kMostRounds = 50;
constexpr double kEnough = 1e-6, kRounding = 1e-12;

}  // namespace

SideFinder::SideFinder(const CsrView& labels, const double* gain, const Work& work)
    : labels_(labels), label_gain_(gain), work_(work), number_(size_t(labels.cols), -1) {}

void SideFinder::find(std::span<const int32_t> rows, std::vector<uint8_t>& sides) {
  take_rows(rows);
  double before = -std::numeric_limits<double>::infinity();
  for (int round = 0; round < kMostRounds; ++round) {
    for (auto& gain : gain_) gain.assign(seen_.size(), 0.0);
    for (size_t i = 0; i < rows.size(); ++i)
      for (int64_t e = begin_[i]; e < begin_[i + 1]; ++e)
        gain_[sides[i]][size_t(entries_[size_t(e)].label)] += entries_[size_t(e)].gain;
    for (int side = 0; side < 2; ++side) rank(gain_[side], discount_[side]);
    double total = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      work_.check();
      double off = 0, on = 0;
      for (int64_t e = begin_[i]; e < begin_[i + 1]; ++e) {
        const Entry& entry = entries_[size_t(e)];
        off += entry.gain * discount_[0][size_t(entry.label)];
        on += entry.gain * discount_[1][size_t(entry.label)];
      }
      if (std::fabs(on - off) > kRounding) sides[i] = on > off;
      total += sides[i] ? on : off;
    }
    if (total - before <= kEnough) break;
    before = total;
  }
}

// Renumbers the labels of these rows alone, in their order: a node has few of all.
void SideFinder::take_rows(std::span<const int32_t> rows) {
  seen_.clear();
  entries_.clear();
  begin_.assign(1, 0);
  for (const int32_t row : rows) {
    for (int64_t e = labels_.indptr[row]; e < labels_.indptr[row + 1]; ++e) {
      const int32_t label = labels_.indices[e];
      if (number_[size_t(label)] < 0) {
        number_[size_t(label)] = 0;
        seen_.push_back(label);
      }
      entries_.push_back({label, label_gain_[label]});
    }
    begin_.push_back(int64_t(entries_.size()));
  }
  std::sort(seen_.begin(), seen_.end());
  for (size_t n = 0; n < seen_.size(); ++n) number_[size_t(seen_[n])] = int32_t(n);
  for (Entry& entry : entries_) entry.label = number_[size_t(entry.label)];
  for (const int32_t label : seen_) number_[size_t(label)] = -1;
  for (size_t place = discount_of_place_.size(); place < seen_.size(); ++place)
    discount_of_place_.push_back(1 / std::log2(double(place) + 2));
}

// Orders the labels by their gain; returns the discount of each label's place, 0 for those without gain.
void SideFinder::rank(const std::vector<double>& gain, std::vector<double>& discount) {
  places_.clear();
  for (size_t label = 0; label < gain.size(); ++label)
    if (gain[label] > 0) places_.push_back({gain[label], int32_t(label)});
  std::sort(places_.begin(), places_.end());
  discount.assign(gain.size(), 0.0);
  for (size_t place = 0; place < places_.size(); ++place)
    discount[size_t(places_[place].label)] = discount_of_place_[place];
}

}  // namespace longleaf

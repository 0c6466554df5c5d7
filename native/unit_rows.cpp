// Copies the rows of a unit together, their features renumbered.
#include "unit_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "random.h"

namespace longleaf {

namespace {

// In local_feature_ while features are numbered; all others stay 0.
constexpr int32_t kLone = -1, kShared = -2;

}  // namespace

UnitRows::UnitRows(const TrainingData& data, const TrainSettings& settings, const std::vector<int32_t>& rank)
    : data_(data), settings_(settings), rank_(rank), local_row_(size_t(data.X.rows), -1),
      local_feature_(size_t(data.X.cols), 0) {}

void UnitRows::gather(const Unit& unit) {
  release();
  list_rows(unit);
  number_features();
  find_freedom(unit);
  make_room();
  for (size_t i = 0; i < rows_.size(); ++i) copy_row(i);
  std::sort(lone_.begin(), lone_.end(), [](const Lone& a, const Lone& b) { return a.feature < b.feature; });
}

// Forgets the unit before, by what it had and not by the size of the data.
void UnitRows::release() {
  for (int32_t row : rows_) local_row_[row] = -1;
  for (int32_t feature : features_) local_feature_[feature] = 0;
  for (const Lone& lone : lone_) local_feature_[lone.feature] = 0;
  rows_.clear();
  features_.clear();
  lone_.clear();
  indptr_.assign(1, 0);
  feature_.clear();
  value_.clear();
  square_.clear();
  lone_square_.clear();
}

void UnitRows::list_rows(const Unit& unit) {
  for (int32_t family : unit.families)
    for (int32_t row : data_.rows.of(family))
      if (local_row_[row] < 0) {
        local_row_[row] = 0;
        rows_.push_back(row);
      }
  Random(settings_.seed, uint64_t(unit.first_child)).shuffle(rows_.data(), int64_t(rows_.size()));
}

// Numbers the features of two rows or more.
void UnitRows::number_features() {
  const CsrView& X = data_.X;
  for (int32_t row : rows_)
    for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) {
      int32_t& seen = local_feature_[X.indices[j]];
      if (seen == kLone) features_.push_back(X.indices[j]);
      seen = seen == 0 ? kLone : kShared;
    }
  std::sort(features_.begin(), features_.end(), [&](int32_t a, int32_t b) { return rank_[a] < rank_[b]; });
  for (size_t local = 0; local < features_.size(); ++local) local_feature_[features_[local]] = int32_t(local);
  ascending_.resize(features_.size());
  std::iota(ascending_.begin(), ascending_.end(), 0);
  std::sort(ascending_.begin(), ascending_.end(), [&](int32_t a, int32_t b) { return features_[a] < features_[b]; });
}

// What the value of a feature is scaled by, so that its weight is held as firmly as old rows hold it; `square` is the
// new rows' sum of squares. The families of a unit share it.
float UnitRows::freedom_of(int64_t feature, double square) const {
  return float(1 / std::sqrt(1 + past_cost_ * data_.past[feature] * square));
}

void UnitRows::find_freedom(const Unit& unit) {
  bias_value_ = settings_.bias;
  if (!data_.past) return;
  past_cost_ = data_.c_negative[unit.first_child];
  const CsrView& X = data_.X;
  std::vector<double> square(features_.size());
  for (int32_t row : rows_)
    for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) {
      const int32_t local = local_feature_[X.indices[j]];
      const double value = double(X.data[j]) * data_.row_scale[row];
      if (local != kLone) square[size_t(local)] += value * value;
    }
  freedom_.resize(features_.size());
  for (size_t local = 0; local < features_.size(); ++local) freedom_[local] = freedom_of(features_[local], square[local]);
  bias_value_ *= freedom_of(X.cols, double(rows_.size()) * settings_.bias * settings_.bias);
}

// All at once: an array that grew as it is filled would be held twice while it moves.
void UnitRows::make_room() {
  size_t entries = 0;
  for (int32_t row : rows_) entries += size_t(data_.X.row_size(row));
  if (feature_.capacity() >= entries) return;
  feature_ = {};
  value_ = {};
  feature_.reserve(entries);
  value_.reserve(entries);
}

void UnitRows::copy_row(size_t i) {
  const CsrView& X = data_.X;
  const int32_t row = rows_[i];
  local_row_[row] = int32_t(i);
  double square = double(bias_value_) * bias_value_, lone_square = 0;
  for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) {
    const int32_t local = local_feature_[X.indices[j]];
    float value = X.data[j] * data_.row_scale[row], freedom = 1;
    if (data_.past) freedom = local == kLone ? freedom_of(X.indices[j], value * value) : freedom_[size_t(local)];
    value *= freedom;
    square += double(value) * value;
    if (local == kLone) {
      lone_.push_back({X.indices[j], int32_t(i), value * freedom});
      lone_square += double(value) * value;
    } else {
      feature_.push_back(uint32_t(local));
      value_.push_back(value);
    }
  }
  indptr_.push_back(int64_t(feature_.size()));
  square_.push_back(float(square));
  lone_square_.push_back(float(lone_square));
}

}  // namespace longleaf

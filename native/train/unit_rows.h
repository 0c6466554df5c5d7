// The rows of one unit of training, copied together.
#pragma once

#include "base/feature_set.h"
#include "files/huge.h"
#include "train/train.h"
#include "train/units.h"

namespace longleaf {

// A thread has one and fills it again for every unit. Rows and features have numbers of their own here, so that what is
// kept of them is no longer than it must be.
class UnitRows {
 public:
  UnitRows(const TrainingData& data, const TrainSettings& settings, const Work& work);

  void gather(const Unit& unit);

  size_t size() const { return rows_.size(); }
  int32_t original(size_t i) const { return rows_[i]; }
  bool has(int32_t original) const { return local_row_[original] >= 0; }
  size_t place_of(int32_t original) const { return size_t(local_row_[original]); }
  LocalRow row(size_t i) const {
    return {feature_.data() + indptr_[i], value_.data() + indptr_[i], indptr_[i + 1] - indptr_[i]};
  }
  float square(size_t i) const { return square_[i]; }            // x.x, the bias included
  float lone_square(size_t i) const { return lone_square_[i]; }  // the share of its lone features
  const float* lone_squares() const { return lone_square_.data(); }
  float bias_value() const { return bias_value_; }
  size_t run() const { return run_; }  // so many rows are best visited one after another

  size_t features() const { return features_.size(); }
  // Calls visit(feature, its number here) in order of features; but for lone ones visit_lone(feature, row, step): the
  // weight is `step` times how far w has moved along the row.
  template <class Visit, class VisitLone>
  void each_feature(Visit visit, VisitLone visit_lone) const {
    present_.each([&](int32_t feature) {
      const size_t local = size_t(local_feature_[feature]);
      if (present_.is_shared(feature))
        visit(feature, local);
      else
        visit_lone(feature, size_t(lone_[local].row), lone_[local].step);
    });
  }
  // What a feature's values were scaled by, and its weight must be.
  float freedom(size_t local) const { return freedom_.empty() ? 1.0f : freedom_[local]; }

 private:
  void release();
  void list_rows(const Unit& unit);
  void set_run(const Unit& unit);
  size_t entries() const;
  void number_features();
  void find_freedom(const Unit& unit);
  float freedom_of(int64_t feature, double square) const;
  void make_room();
  void copy_row(size_t i);
  // The beginning of a row that is copied soon; the processor's own prefetcher follows from there.
  template <class T>
  void prefetch_row(const T* entries, size_t i) const {
    if (i < rows_.size()) __builtin_prefetch(entries + data_.X.indptr[rows_[i]]);
  }
  static constexpr size_t kAhead = 4;  // rows

  // A feature that only one of the unit's rows has. Its weight is what that row has moved by times its value: it needs
  // no place among the weights, whose cache lines would be fetched for this row alone.
  struct Lone {
    int32_t row;
    float step;  // its value, unless old rows hold its weight
  };

  const TrainingData& data_;
  const TrainSettings& settings_;
  const Work& work_;
  std::vector<int32_t> rows_, features_;
  std::vector<int32_t> local_row_,
      local_feature_;  // the numbers here, of all rows and features; of lone ones, in lone_
  FeatureSet present_;
  std::vector<int64_t> indptr_;
  HugeVector<uint32_t> feature_;
  HugeVector<float> value_;
  std::vector<float> square_, lone_square_, freedom_;
  std::vector<Lone> lone_;
  float bias_value_ = 0;
  size_t run_ = 1;
  double past_cost_ = 0;
};

}  // namespace longleaf

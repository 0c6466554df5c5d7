// Training sparse classifiers, one per leaf of a flat tree.
//
// Problem: for every label, with y_i = +1 in its rows and -1 elsewhere,
//   min_w  |w|_1 + sum over rows i  C_i max(0, 1 - y_i w.x_i)^2.
// Given: rows, the labels' rows, a cost per label and side. Out: the weights, most of them 0, chunked by siblings.
//
// Method: coordinate descent over features (Yuan, Chang, Hsieh and Lin 2010), kLanes labels at a time: a feature's rows
// are read once, and every line [row][lane] of slacks serves all lanes. A step is Newton's on the quadratic model of
// the loss, halved until the objective falls by a share of what the model promised.
//
// When to stop: alpha_i = 2 C_i max(0, slack_i), made smaller until no feature's sum exceeds 1, is feasible for the
// dual, which bounds how far the objective is from its minimum; a label is done when that gap falls below `tolerance`
// times the objective. Features whose steps promise next to nothing are left alone for one epoch, then two, four, ...
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>

#include "huge.h"
#include "kernels.h"
#include "random.h"
#include "units.h"

namespace longleaf {

namespace {

constexpr float kShare = 0.01f;  // of the decrease that the model promised, what a step must bring
constexpr int kHalvings = 10;

// The rows of every feature; the bias is the last one, which all rows have.
class Columns {
 public:
  Columns(const TrainingData& data, float bias) : indptr_(size_t(data.X.cols) + 2, 0) {
    const CsrView& X = data.X;
    const int64_t entries = X.indptr[X.rows], all = bias != 0 ? X.rows : 0;
    for (int64_t j = 0; j < entries; ++j) ++indptr_[size_t(X.indices[j]) + 1];
    for (size_t f = 1; f <= size_t(X.cols); ++f) indptr_[f] += indptr_[f - 1];
    indptr_.back() = entries + all;
    row_.resize(size_t(entries + all));
    value_.resize(row_.size());
    std::vector<int64_t> next(indptr_.begin(), indptr_.end() - 1);
    const auto put = [&](int64_t feature, int64_t row, float value) {
      const size_t place = size_t(next[size_t(feature)]++);
      row_[place] = uint32_t(row);
      value_[place] = value;
    };
    for (int64_t row = 0; row < X.rows; ++row)
      for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) put(X.indices[j], row, X.data[j] * data.row_scale[row]);
    for (int64_t row = 0; row < all; ++row) put(X.cols, row, bias);
  }

  int64_t size() const { return int64_t(indptr_.size()) - 1; }
  LocalRow at(int64_t feature) const {  // its "features" are rows here
    const int64_t begin = indptr_[size_t(feature)], end = indptr_[size_t(feature) + 1];
    return {row_.data() + begin, value_.data() + begin, end - begin};
  }

 private:
  std::vector<int64_t> indptr_;
  HugeVector<uint32_t> row_;
  HugeVector<float> value_;
};

// One thread's workplace, reused from block to block.
class SparseTrainer {
 public:
  SparseTrainer(const TrainingData& data, const TrainSettings& settings, const Columns& columns, const Work& work)
      : data_(data), settings_(settings), columns_(columns), work_(work) {}

  using Block = std::span<const int32_t>;  // the nodes of the lanes

  void train(Block block, TrainReport& report) {
    set_sides(block);
    start(block);
    for (int epoch = 0; !work_.stopped() && !all_done(); ++epoch) {
      if (epoch == settings_.max_epochs) {
        ++report.unfinished;
        break;
      }
      ++report.epochs;
      run_epoch(epoch);
      if (promises_are_small() && !find_gaps()) patience_with_promises_ *= 0.3;
    }
  }

  // Calls keep(feature, lane, weight) in order of features; the bias is the last one.
  template <class Keep>
  void each_weight(int lanes, Keep keep) const {
    for (int64_t feature = 0; feature < columns_.size(); ++feature)
      for (int lane = 0; lane < lanes; ++lane)
        if (const float w = weights_[size_t(feature * kLanes + lane)]; w != 0.0f) keep(feature, lane, w);
  }

 private:
  // +C_i in the rows of a lane's label, -C_i in the others; 0 in lanes that are not used.
  void set_sides(Block block) {
    side_.assign(size_t(data_.X.rows) * kLanes, 0.0f);
    for (size_t lane = 0; lane < block.size(); ++lane) {
      const int32_t node = block[lane];
      for (int64_t row = 0; row < data_.X.rows; ++row)
        side_[size_t(row) * kLanes + lane] = -data_.c_negative[node] * weight_of(row);
      for (int32_t row : data_.rows.of(node)) side_[size_t(row) * kLanes + lane] = data_.c_positive[node] * weight_of(row);
    }
  }
  float weight_of(int64_t row) const { return data_.row_weight ? data_.row_weight[row] : 1.0f; }

  void start(Block block) {
    weights_.assign(size_t(columns_.size()) * kLanes, 0.0f);
    slack_.assign(size_t(data_.X.rows) * kLanes, 1.0f);
    rest_until_.assign(size_t(columns_.size()), 0);
    patience_.assign(size_t(columns_.size()), 0);
    std::fill_n(settled_, kLanes, 0.0);
    for (int lane = 0; lane < kLanes; ++lane) done_[lane] = size_t(lane) >= block.size();
    patience_with_promises_ = 1;
    random_ = Random(settings_.seed, (uint64_t(block.front()) << 1) | 1);
    find_objective();
  }
  bool all_done() const { return std::all_of(done_, done_ + kLanes, [](bool done) { return done; }); }

  void run_epoch(int epoch) {
    order_.clear();
    for (int64_t feature = 0; feature < columns_.size(); ++feature)
      if (rest_until_[size_t(feature)] <= epoch && columns_.at(feature).size) order_.push_back(int32_t(feature));
    random_.shuffle(order_.data(), int64_t(order_.size()));
    std::fill_n(promised_, kLanes, 0.0);
    for (int32_t feature : order_) {
      if (step(feature)) {
        patience_[size_t(feature)] = 0;
      } else {
        uint8_t& patience = patience_[size_t(feature)];
        patience = uint8_t(std::min(patience + 1, 5));
        rest_until_[size_t(feature)] = epoch + (1 << patience);
      }
    }
  }

  // Newton's step of each lane on slope d + curve d^2 / 2 + |w + d|; false when no lane has one worth taking.
  bool step(int32_t feature) {
    const LocalRow column = columns_.at(feature);
    float* w = &weights_[size_t(feature) * kLanes];
    alignas(32) float slope[kLanes], curve[kLanes], move[kLanes];
    float promise[kLanes];
    kernels().column_slopes(column, slack_.data(), side_.data(), slope, curve);
    bool worth = false;
    for (int lane = 0; lane < kLanes; ++lane) {
      move[lane] = done_[lane] ? 0.0f : newton(slope[lane], curve[lane], w[lane]);
      promise[lane] = slope[lane] * move[lane] + std::fabs(w[lane] + move[lane]) - std::fabs(w[lane]);
      promised_[lane] -= promise[lane];
      worth = worth || -promise[lane] > settled_[lane];
    }
    return worth && take(column, w, move, promise);
  }

  static float newton(float slope, float curve, float w) {
    const float h = std::max(curve, 1e-12f);
    if (slope + 1 < h * w) return std::max(-(slope + 1) / h, -10.0f);
    if (slope - 1 > h * w) return std::min(-(slope - 1) / h, 10.0f);
    return -w;
  }

  // Moves the weights; the lanes whose objective does not fall enough go half the way back, again and again. False when
  // all are back where they were.
  bool take(const LocalRow& column, float* w, float* move, const float* promise) {
    alignas(32) float part[kLanes];
    double change[kLanes] = {}, norms[kLanes];
    std::copy_n(move, kLanes, part);
    for (int halving = 0;; ++halving) {
      kernels().column_move(column, part, side_.data(), slack_.data(), change);
      bool enough = true, moved = false;
      for (int lane = 0; lane < kLanes; ++lane) {
        part[lane] = 0;
        moved = moved || move[lane] != 0.0f;
        norms[lane] = double(std::fabs(w[lane] + move[lane])) - std::fabs(w[lane]);
        if (move[lane] == 0.0f || change[lane] + norms[lane] <= std::ldexp(kShare, -halving) * promise[lane]) continue;
        enough = false;
        part[lane] = halving == kHalvings ? -move[lane] : -0.5f * move[lane];
        move[lane] += part[lane];
      }
      if (!enough) continue;
      for (int lane = 0; lane < kLanes; ++lane) {
        w[lane] += move[lane];
        norm_[lane] += norms[lane];
        loss_[lane] += change[lane];
      }
      return moved;
    }
  }

  // Whether the steps of this epoch promised so little that the gap may be small.
  bool promises_are_small() {
    bool small = true;
    for (int lane = 0; lane < kLanes; ++lane) {
      const double allowed = settings_.tolerance * (norm_[lane] + loss_[lane]);
      settled_[lane] = 0.1 * patience_with_promises_ * allowed / double(columns_.size());
      small = small && (done_[lane] || promised_[lane] <= patience_with_promises_ * allowed);
    }
    return small;
  }

  void find_objective() {
    std::fill_n(norm_, kLanes, 0.0);
    std::fill_n(loss_, kLanes, 0.0);
    std::fill_n(slack_sum_, kLanes, 0.0);
    for (int64_t feature = 0; feature < columns_.size(); ++feature)
      for (int lane = 0; lane < kLanes; ++lane) norm_[lane] += std::fabs(weights_[size_t(feature * kLanes + lane)]);
    kernels().slack_sums(slack_.data(), side_.data(), data_.X.rows, slack_sum_, loss_);
  }

  // Marks the lanes whose duality gap is small; true when all are done. Features that hold one up are woken.
  bool find_gaps() {
    find_slacks();
    find_objective();
    float steepest[kLanes] = {};
    alignas(32) float slope[kLanes], curve[kLanes];
    for (int64_t feature = 0; feature < columns_.size(); ++feature) {
      kernels().column_slopes(columns_.at(feature), slack_.data(), side_.data(), slope, curve);
      for (int lane = 0; lane < kLanes; ++lane) {
        steepest[lane] = std::max(steepest[lane], std::fabs(slope[lane]));
        if (!done_[lane] && std::fabs(slope[lane]) > 1) rest_until_[size_t(feature)] = 0;
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      const double scale = 1 / std::max(1.0, double(steepest[lane])), objective = norm_[lane] + loss_[lane];
      const double dual = scale * (2 * slack_sum_[lane] - scale * loss_[lane]);
      done_[lane] = done_[lane] || objective - dual <= settings_.tolerance * objective;
    }
    return all_done();
  }

  // From the weights, so that the rounding of many moves does not add up.
  void find_slacks() {
    slack_.assign(size_t(data_.X.rows) * kLanes, 1.0f);
    double unused[kLanes] = {};
    for (int64_t feature = 0; feature < columns_.size(); ++feature) {
      const float* w = &weights_[size_t(feature) * kLanes];
      if (std::any_of(w, w + kLanes, [](float weight) { return weight != 0.0f; }))
        kernels().column_move(columns_.at(feature), w, side_.data(), slack_.data(), unused);
    }
  }

  const TrainingData& data_;
  const TrainSettings& settings_;
  const Columns& columns_;
  const Work& work_;
  Random random_{0};

  HugeVector<float> side_, slack_, weights_;
  std::vector<int32_t> order_, rest_until_;
  std::vector<uint8_t> patience_;
  bool done_[kLanes] = {};
  double promised_[kLanes] = {}, settled_[kLanes] = {};
  double norm_[kLanes] = {}, loss_[kLanes] = {}, slack_sum_[kLanes] = {};  // |w|_1, and sums of C slack^2 and C slack
  double patience_with_promises_ = 1;
};

}  // namespace

ChunkArrays train_l1(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                     Work& work, TrainReport& report) {
  if (data.tree.first_child[1] != data.tree.nodes) throw std::invalid_argument("with l1 the tree must be flat");
  if (data.initial || data.past || data.rows.factor) throw std::invalid_argument("with l1 no weights can be given");
  const std::vector<Unit> units = units_between(data.tree, data.rows, first_node, last_node);
  const ChunkPlan plan(data.tree, first_node, last_node);
  const Columns columns(data, settings.bias);
  std::vector<PackedChunk> packed(units.size());
  std::vector<float> bias(size_t(last_node - first_node), 0.0f);
  std::vector<std::unique_ptr<SparseTrainer>> trainers(size_t(std::max(1, settings.threads)));
  std::vector<TrainReport> reports(trainers.size());
  work.for_each(int64_t(units.size()), settings.threads, [&](int64_t index, int thread) {
    auto& trainer = trainers[size_t(thread)];
    if (!trainer) trainer = std::make_unique<SparseTrainer>(data, settings, columns, work);
    const std::span<const int32_t> unit = units[size_t(index)].nodes;
    ChunkEntries entries;
    for (size_t first = 0; first < unit.size(); first += kLanes) {
      const auto block = unit.subspan(first, std::min<size_t>(kLanes, unit.size() - first));
      trainer->train(block, reports[size_t(thread)]);
      trainer->each_weight(int(block.size()), [&](int64_t feature, int lane, float weight) {
        if (feature == data.X.cols)
          bias[size_t(block[size_t(lane)] - first_node)] = settings.bias * weight;
        else if (std::fabs(weight) > settings.threshold)
          entries.append(int32_t(feature), uint8_t(first + size_t(lane)), weight);
      });
      work.add(double(block.size()) / double(last_node - first_node));
    }
    sort_entries(entries);
    packed[size_t(plan.chunk_of(unit.front()) - plan.first_chunk)] =
        pack_chunk(entries, int(unit.size()), data.X.cols, settings.weight_bits);
  });
  for (const TrainReport& part : reports) {
    report.epochs += part.epochs;
    report.unfinished += part.unfinished;
  }
  return join_chunks({plan.node.begin() + plan.first_chunk, plan.node.begin() + plan.last_chunk + 1}, std::move(packed),
                     std::move(bias), settings.weight_bits);
}

}  // namespace longleaf

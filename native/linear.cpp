// Training the classifiers of a tree's nodes.
//
// Problem: for every node v but the root, an L2-regularised linear classifier that tells, among the rows of v's
// parent u (those with a label below u; every row at the root), the rows of v:
//   min_w  |w|^2 / 2 + sum over rows i of u  C_i loss(y_i w.x_i),      y_i = +1 if v holds i, else -1.
// Given: rows, the labels' leaves, a cost per node. Out: the weights, small ones dropped, chunked by siblings.
//
// Method: dual coordinate descent (Hsieh et al. 2008; Yu, Huang and Lin 2011 for logistic), kLanes classifiers at a
// time. Siblings see the same rows, so a row is read once and every weight line [feature][lane] serves all lanes.
// Families with few children (binary trees) are packed together in breadth-first order until the lanes are full; a
// row then takes part in the lanes of the families that hold it. The rows of all packed families together are never
// more than their sum, so packing cannot lose.
//
// When to stop: the Fenchel-Young gaps of the rows sum to the duality gap, which bounds how far the primal objective
// is from its minimum; training ends when it falls below `tolerance` times the objective in every lane. A row whose
// own gap lies far below its share is left alone for one epoch, then two, four, ...; the last epoch visits all.
//
// Going on from weights w0: |w - w0|^2 stands for |w|^2. With w = w0 + d that is the same problem in d with the margins
// w0.x_i added, so nothing changes but these, and w0 is added to what is kept. Where a feature's move counts h-fold,
// h d^2, the problem is the same again in sqrt(h) d, with the feature's values divided by sqrt(h): its `freedom`.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "forest.h"
#include "huge.h"
#include "kernels.h"
#include "random.h"
#include "units.h"

namespace longleaf {

namespace {

// One thread's workplace, reused from unit to unit.
class UnitTrainer {
 public:
  UnitTrainer(const TrainingData& data, const TrainSettings& settings, const ChunkPlan& plan,
              const std::vector<int32_t>& rank, const Work& work)
      : data_(data), settings_(settings), plan_(plan), rank_(rank), work_(work), local_feature_(data.X.cols, 0),
        local_row_(data.X.rows, -1) {}

  void train(const Unit& unit, std::vector<ChunkEntries>& chunks, std::vector<float>& bias, TrainReport& report) {
    gather(unit);
    if (data_.initial) find_initial_margins(unit);
    for (int32_t first = unit.first_child; first < unit.last_child; first += kLanes) {
      const int lanes = std::min<int32_t>(kLanes, unit.last_child - first);
      set_sides(unit, first, lanes);
      if (data_.initial) take_initial_margins(unit, first, lanes);
      descend(first, lanes, report);
      keep_weights(first, lanes, chunks, bias);
    }
    for (int32_t row : rows_) local_row_[row] = -1;
    for (int32_t feature : features_) local_feature_[feature] = 0;
    for (const Lone& lone : lone_) local_feature_[lone.feature] = 0;
  }

 private:
  // Copies the unit's rows in random order, their features renumbered to 0, 1, ... by falling frequency.
  void gather(const Unit& unit) {
    rows_.clear();
    for (int32_t family : unit.families)
      for (int32_t row : data_.rows.of(family))
        if (local_row_[row] < 0) {
          local_row_[row] = 0;
          rows_.push_back(row);
        }
    random_ = Random(settings_.seed, uint64_t(unit.first_child));
    random_.shuffle(rows_.data(), int64_t(rows_.size()));
    number_features();
    find_freedom(unit);

    const CsrView& X = data_.X;
    indptr_.assign(1, 0);
    feature_.clear();
    value_.clear();
    q_.clear();
    lone_.clear();
    lone_square_.clear();
    for (size_t i = 0; i < rows_.size(); ++i) {
      const int32_t row = rows_[i];
      local_row_[row] = int32_t(i);
      const float scale = data_.row_scale[row];
      double square = double(bias_value_) * bias_value_, lone_square = 0;
      for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) {
        const int32_t local = local_feature_[X.indices[j]];
        float value = X.data[j] * scale, freedom = 1;
        if (data_.past) freedom = local == kLone ? freedom_of(X.indices[j], value * value) : freedom_[size_t(local)];
        value *= freedom;
        square += double(value) * value;
        if (local == kLone) {
          lone_.push_back({X.indices[j], int32_t(i), value, value * freedom});
          lone_square += double(value) * value;
        } else {
          feature_.push_back(uint32_t(local));
          value_.push_back(value);
        }
      }
      indptr_.push_back(int64_t(feature_.size()));
      q_.push_back(float(square));
      lone_square_.push_back(float(lone_square));
    }
    std::sort(lone_.begin(), lone_.end(), [](const Lone& a, const Lone& b) { return a.feature < b.feature; });
  }

  // Numbers the features of two rows or more; local_feature_ holds 0 for all others but those of a single row.
  void number_features() {
    const CsrView& X = data_.X;
    features_.clear();
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
  float freedom_of(int64_t feature, double square) const {
    return float(1 / std::sqrt(1 + past_cost_ * data_.past[feature] * square));
  }
  void find_freedom(const Unit& unit) {
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

  void set_sides(const Unit& unit, int32_t first, int lanes) {
    side_.assign(rows_.size() * kLanes, 0.0f);
    size_t family = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      const int32_t child = first + lane;
      while (data_.tree.first_child[unit.families[family] + 1] <= child) ++family;
      for (int32_t row : data_.rows.of(unit.families[family])) side_[size_t(local_row_[row]) * kLanes + lane] = -1.0f;
      const int64_t begin = data_.rows.indptr[child], end = data_.rows.indptr[child + 1];
      for (int64_t j = begin; j < end; ++j)
        side_[size_t(local_row_[data_.rows.rows[j]]) * kLanes + lane] = data_.rows.factor ? data_.rows.factor[j] : 1.0f;
      c_positive_[lane] = data_.c_positive[child];
      c_negative_[lane] = data_.c_negative[child];
    }
  }

  // The margins of the weights that training goes on from: [row][child of the unit].
  void find_initial_margins(const Unit& unit) {
    const ChunkView& chunks = data_.initial->parts()[size_t(data_.initial_tree)].chunks;
    const size_t width = size_t(unit.last_child - unit.first_child);
    initial_margin_.resize(rows_.size() * width);
    for (int32_t c = plan_.chunk_of(unit.first_child); c <= plan_.chunk_of(unit.last_child - 1); ++c) {
      check_chunk(chunks, c);
      const Chunk chunk = chunk_at(chunks, c);
      for (size_t i = 0; i < rows_.size(); ++i) {
        const int64_t begin = data_.X.indptr[rows_[i]], size = data_.X.row_size(rows_[i]);
        float* margin = &initial_margin_[i * width + size_t(chunks.node[c] - unit.first_child)];
        std::copy_n(chunks.bias + chunks.node[c], chunk.width, margin);
        kernels().add_products(chunk, {data_.X.indices + begin, data_.X.data + begin, size, data_.row_scale[rows_[i]]}, margin);
      }
    }
  }
  void take_initial_margins(const Unit& unit, int32_t first, int lanes) {
    const size_t width = size_t(unit.last_child - unit.first_child);
    start_.assign(rows_.size() * kLanes, 0.0f);
    for (size_t i = 0; i < rows_.size(); ++i)
      std::copy_n(&initial_margin_[i * width + size_t(first - unit.first_child)], lanes, &start_[i * kLanes]);
  }

  LocalRow row(size_t i) const {
    return {feature_.data() + indptr_[i], value_.data() + indptr_[i], indptr_[i + 1] - indptr_[i]};
  }

  // The weights of the row that comes next: with them on their way, a visit waits less for the memory.
  void prefetch_weights(size_t i) const {
    for (int64_t j = indptr_[i]; j < indptr_[i + 1]; ++j) __builtin_prefetch(&weights_[size_t(feature_[j]) * kLanes]);
  }
  // The beginning of the row after it; the processor's own prefetcher follows from there.
  void prefetch_row(size_t i) const {
    for (int64_t offset = 0; offset < 64; offset += 16) {
      __builtin_prefetch(feature_.data() + indptr_[i] + offset);
      __builtin_prefetch(value_.data() + indptr_[i] + offset);
    }
    __builtin_prefetch(&dual_[i * kLanes]);
    __builtin_prefetch(&side_[i * kLanes]);
    __builtin_prefetch(&moved_[i * kLanes]);
  }

  // Coordinate descent from zero until every lane's duality gap is small.
  void descend(int32_t first, int lanes, TrainReport& report) {
    const bool logistic = settings_.loss == Loss::logistic;
    weights_.assign(features_.size() * kLanes, 0.0f);
    std::fill_n(bias_, kLanes, 0.0f);
    // logistic keeps the margin that alpha implies; at 30 alpha is as good as 0
    dual_.assign(rows_.size() * kLanes, logistic ? 30.0f : 0.0f);
    moved_.assign(rows_.size() * kLanes, 0.0f);
    rest_until_.assign(rows_.size(), 0);
    patience_.assign(rows_.size(), 0);
    std::fill_n(settled_gap_, kLanes, 0.0f);
    random_ = Random(settings_.seed, (uint64_t(first) << 1) | 1);
    bool visit_all = true;
    for (int epoch = 0; !work_.stopped(); ++epoch) {  // stopped: what is trained so far will be thrown away
      if (epoch == settings_.max_epochs) {
        ++report.unfinished;
        break;
      }
      ++report.epochs;
      const int64_t visits = run_epoch(epoch, visit_all);
      report.row_visits += visits;
      const bool all = visits == int64_t(rows_.size());
      const bool small = gaps_are_small(lanes);
      if (small && all) break;
      visit_all = small;
    }
  }

  int64_t run_epoch(int epoch, bool visit_all) {
    const Kernels& k = kernels();
    const auto step = settings_.loss == Loss::logistic ? k.logistic_step : k.squared_hinge_step;
    std::fill_n(gap_, kLanes, 0.0);
    std::fill_n(loss_, kLanes, 0.0);
    alignas(32) float margin[kLanes], delta[kLanes];
    order_.resize(rows_.size());
    std::iota(order_.begin(), order_.end(), 0);
    random_.shuffle(order_.data(), int64_t(order_.size()));
    if (!visit_all) std::erase_if(order_, [&](int32_t i) { return rest_until_[size_t(i)] > epoch; });
    const size_t visits = order_.size();
    for (size_t j = 0; j < visits; ++j) {
      const size_t i = size_t(order_[j]);
      if (j + 2 < visits) prefetch_row(size_t(order_[j + 2]));
      if (j + 1 < visits) prefetch_weights(size_t(order_[j + 1]));
      const LocalRow x = row(i);
      k.lane_margins(x, weights_.data(), margin);
      float* along = &moved_[i * kLanes];
      for (int lane = 0; lane < kLanes; ++lane) margin[lane] += bias_value_ * bias_[lane] + lone_square_[i] * along[lane];
      if (data_.initial)
        for (int lane = 0; lane < kLanes; ++lane) margin[lane] += start_[i * kLanes + lane];
      const float weight = data_.row_weight ? data_.row_weight[rows_[i]] : 1.0f;
      const bool moved = step({margin, &side_[i * kLanes], c_positive_, c_negative_, weight, q_[i],
                               &dual_[i * kLanes], delta, gap_, loss_, settled_gap_});
      if (moved) {
        k.lane_update(x, delta, weights_.data());
        for (int lane = 0; lane < kLanes; ++lane) {
          bias_[lane] += bias_value_ * delta[lane];
          along[lane] += delta[lane];
        }
        patience_[i] = 0;
      } else {
        patience_[i] = uint8_t(std::min(patience_[i] + 1, 5));
        rest_until_[i] = epoch + (1 << patience_[i]);
      }
    }
    return int64_t(visits);
  }

  bool gaps_are_small(int lanes) {
    double square[kLanes] = {};
    kernels().lane_squares(weights_.data(), nullptr, int64_t(features_.size()), square);
    kernels().lane_squares(moved_.data(), lone_square_.data(), int64_t(rows_.size()), square);
    bool small = true;
    for (int lane = 0; lane < lanes; ++lane) {
      const double objective = 0.5 * (square[lane] + double(bias_[lane]) * bias_[lane]) + loss_[lane];
      const double allowed = settings_.tolerance * objective;
      small = small && gap_[lane] <= allowed;
      settled_gap_[lane] = float(0.3 * allowed / double(rows_.size()));
    }
    return small;
  }

  void keep_weights(int32_t first, int lanes, std::vector<ChunkEntries>& chunks, std::vector<float>& bias) {
    for (int lane = 0; lane < lanes; ++lane) bias[first + lane - plan_.first_node] += bias_value_ * bias_[lane];
    auto lone = lone_.begin();
    const auto keep_lones_before = [&](int32_t feature) {
      for (; lone != lone_.end() && lone->feature < feature; ++lone) {
        float weights[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) weights[lane] = lone->step * moved_[size_t(lone->row) * kLanes + lane];
        keep(lone->feature, weights, first, lanes, chunks);
      }
    };
    for (int32_t local : ascending_) {
      keep_lones_before(features_[local]);
      float* weights = &weights_[size_t(local) * kLanes];
      if (data_.past)
        for (int lane = 0; lane < kLanes; ++lane) weights[lane] *= freedom_[size_t(local)];
      keep(features_[local], weights, first, lanes, chunks);
    }
    keep_lones_before(INT32_MAX);
  }

  void keep(int32_t feature, const float* weights, int32_t first, int lanes, std::vector<ChunkEntries>& chunks) const {
    float threshold = settings_.threshold;
    if (data_.initial) {
      threshold *= kSmallMove;
      int large = 0;
      for (int lane = 0; lane < kLanes; ++lane) large |= std::fabs(weights[lane]) >= threshold;
      if (!large) return;
      if (!has_initial(feature, first, lanes)) threshold = settings_.threshold;
    }
    for (int lane = 0; lane < lanes; ++lane) {
      if (weights[lane] == 0.0f || std::fabs(weights[lane]) < threshold) continue;
      const int32_t child = first + lane, chunk = plan_.chunk_of(child);
      chunks[size_t(chunk - plan_.first_chunk)].append(feature, uint8_t(child - plan_.node[size_t(chunk)]), weights[lane]);
    }
  }

  // Whether any of the block's children starts with a weight of this feature.
  bool has_initial(int32_t feature, int32_t first, int lanes) const {
    const ChunkView& chunks = data_.initial->parts()[size_t(data_.initial_tree)].chunks;
    for (int32_t c = plan_.chunk_of(first); c <= plan_.chunk_of(first + lanes - 1); ++c)
      if (has_feature(chunk_at(chunks, c), feature)) return true;
    return false;
  }

  // A feature that only one of the unit's rows has. Its weight is what that row has moved by times its value: it needs
  // no place among the weights, whose cache lines would be fetched for this row alone.
  struct Lone {
    int32_t feature, row;
    float value, step;  // step: how far its weight moves as the row does, which is its value unless old rows hold it
  };
  // Stored weights are rounded by about as much: moves of a smaller share of `threshold` are not worth adding.
  static constexpr float kSmallMove = 0.1f;
  static constexpr int32_t kLone = -1, kShared = -2;  // in local_feature_, while features are numbered

  const TrainingData& data_;
  const TrainSettings& settings_;
  const ChunkPlan& plan_;
  const std::vector<int32_t>& rank_;  // of each feature in feature_order
  const Work& work_;
  Random random_{0};

  // the unit's rows
  std::vector<int32_t> rows_, features_, ascending_, local_feature_, local_row_;
  std::vector<int64_t> indptr_;
  HugeVector<uint32_t> feature_;
  HugeVector<float> value_;
  std::vector<float> q_, lone_square_;
  std::vector<Lone> lone_;

  std::vector<float> initial_margin_, freedom_;
  float bias_value_ = 0;
  double past_cost_ = 0;

  // the block's lanes
  HugeVector<float> side_, dual_, weights_, moved_, start_;  // moved_: how far w has moved along each row
  std::vector<int32_t> rest_until_, order_;
  std::vector<uint8_t> patience_;
  alignas(32) float c_positive_[kLanes] = {}, c_negative_[kLanes] = {}, bias_[kLanes] = {}, settled_gap_[kLanes] = {};
  double gap_[kLanes] = {}, loss_[kLanes] = {};
};

}  // namespace

ChunkArrays train_nodes(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                        Work& work, TrainReport& report) {
  const std::vector<Unit> units = units_between(data.tree, data.rows, first_node, last_node);
  const ChunkPlan plan(data.tree, first_node, last_node);
  std::vector<int32_t> rank(size_t(data.X.cols));
  for (int64_t r = 0; r < data.X.cols; ++r) rank[size_t(data.feature_order[r])] = int32_t(r);
  std::vector<ChunkEntries> chunks(size_t(plan.last_chunk - plan.first_chunk));
  std::vector<PackedChunk> packed(chunks.size());
  std::vector<float> bias(size_t(last_node - first_node), 0.0f);
  const ChunkView* initial = data.initial ? &data.initial->parts()[size_t(data.initial_tree)].chunks : nullptr;
  if (initial) std::copy(initial->bias + first_node, initial->bias + last_node, bias.begin());
  double total = 0;
  for (const Unit& unit : units) total += unit.cost;
  std::vector<std::unique_ptr<UnitTrainer>> trainers(std::max(1, settings.threads));
  std::vector<TrainReport> reports(trainers.size());
  work.for_each(int64_t(units.size()), settings.threads, [&](int64_t index, int thread) {
    auto& trainer = trainers[thread];
    if (!trainer) trainer = std::make_unique<UnitTrainer>(data, settings, plan, rank, work);
    const Unit& unit = units[index];
    if (unit.cost > 0 || !initial) trainer->train(unit, chunks, bias, reports[thread]);
    for (int32_t c = plan.chunk_of(unit.first_child); c <= plan.chunk_of(unit.last_child - 1); ++c) {
      ChunkEntries& entries = chunks[size_t(c - plan.first_chunk)];
      PackedChunk& chunk = packed[size_t(c - plan.first_chunk)];
      if (initial && entries.feature.empty()) {
        chunk = copy_chunk(*initial, c);
        continue;
      }
      sort_entries(entries);
      if (initial) entries = add_entries(unpack_chunk(*initial, c), entries, settings.threshold);
      chunk = pack_chunk(entries, plan.node[c + 1] - plan.node[c], data.X.cols, settings.weight_bits);
      entries = {};
    }
    work.add(unit.cost / total);
  });
  for (const TrainReport& part : reports) {
    report.epochs += part.epochs;
    report.row_visits += part.row_visits;
    report.unfinished += part.unfinished;
  }
  return join_chunks({plan.node.begin() + plan.first_chunk, plan.node.begin() + plan.last_chunk + 1}, std::move(packed),
                     std::move(bias), settings.weight_bits);
}

}  // namespace longleaf

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
#include "linear.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "huge.h"
#include "kernels.h"
#include "random.h"

namespace longleaf {

namespace {

// What one thread works on at a time: families packed into one block of lanes, or up to a chunk of a wide family.
struct Unit {
  std::vector<int32_t> families;          // parents whose children are trained together
  int32_t first_child = 0, last_child = 0;  // the children; contiguous, since families are consecutive
  double cost = 0;
};

double unit_blocks(int64_t children) { return double((children + kLanes - 1) / kLanes); }

std::vector<Unit> plan_units(const TreeView& tree, const NodeRows& rows) {
  std::vector<Unit> units;
  for (int64_t v = 0; v < tree.nodes; ++v) {
    const int32_t begin = tree.first_child[v], end = tree.first_child[v + 1];
    if (begin == end) continue;
    const double size = double(rows.of(v).size());
    const bool joins = !units.empty() && end - units.back().first_child <= kLanes;
    if (joins) {
      units.back().families.push_back(int32_t(v));
      units.back().last_child = end;
      units.back().cost += size;
      continue;
    }
    for (int32_t first = begin; first < end; first += kChunkWidth) {
      const int32_t last = std::min(first + kChunkWidth, end);
      units.push_back({{int32_t(v)}, first, last, size * unit_blocks(last - first)});
    }
  }
  // the largest first, so that the threads finish together
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.cost > b.cost; });
  return units;
}

// Features by falling frequency: what is used most lies together, in fewer cache lines.
std::vector<int32_t> features_by_frequency(const CsrView& X) {
  std::vector<int64_t> count(X.cols, 0);
  for (int64_t i = 0; i < X.indptr[X.rows]; ++i) ++count[X.indices[i]];
  std::vector<int32_t> order(X.cols);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return count[a] > count[b]; });
  return order;
}

// One thread's workplace, reused from unit to unit.
class UnitTrainer {
 public:
  UnitTrainer(const TrainingData& data, const TrainSettings& settings, const std::vector<int32_t>& by_frequency,
              const Work& work)
      : data_(data), settings_(settings), by_frequency_(by_frequency), work_(work), local_feature_(data.X.cols, 0),
        local_row_(data.X.rows, -1) {}

  void train(const Unit& unit, std::vector<ChunkEntries>& chunks, const std::vector<int32_t>& chunk_of_child,
             std::vector<float>& bias, TrainReport& report) {
    gather(unit);
    for (int32_t first = unit.first_child; first < unit.last_child; first += kLanes) {
      const int lanes = std::min<int32_t>(kLanes, unit.last_child - first);
      set_sides(unit, first, lanes);
      descend(first, lanes, report);
      keep_weights(first, lanes, chunks, chunk_of_child, bias);
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
      double square = double(settings_.bias) * settings_.bias, lone_square = 0;
      for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) {
        const float value = X.data[j] * scale;
        const int32_t local = local_feature_[X.indices[j]];
        square += double(value) * value;
        if (local == kLone) {
          lone_.push_back({X.indices[j], int32_t(i), value});
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
  }

  // Numbers the features of two rows or more; local_feature_ holds 0 for all others but those of a single row.
  void number_features() {
    const CsrView& X = data_.X;
    for (int32_t row : rows_)
      for (int64_t j = X.indptr[row]; j < X.indptr[row + 1]; ++j) {
        int32_t& seen = local_feature_[X.indices[j]];
        seen = seen == 0 ? kLone : kShared;
      }
    features_.clear();
    for (int32_t feature : by_frequency_)
      if (local_feature_[feature] == kShared) {
        local_feature_[feature] = int32_t(features_.size());
        features_.push_back(feature);
      }
    ascending_.resize(features_.size());
    std::iota(ascending_.begin(), ascending_.end(), 0);
    std::sort(ascending_.begin(), ascending_.end(), [&](int32_t a, int32_t b) { return features_[a] < features_[b]; });
  }

  void set_sides(const Unit& unit, int32_t first, int lanes) {
    side_.assign(rows_.size() * kLanes, 0.0f);
    size_t family = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      const int32_t child = first + lane;
      while (data_.tree.first_child[unit.families[family] + 1] <= child) ++family;
      for (int32_t row : data_.rows.of(unit.families[family])) side_[size_t(local_row_[row]) * kLanes + lane] = -1.0f;
      for (int32_t row : data_.rows.of(child)) side_[size_t(local_row_[row]) * kLanes + lane] = 1.0f;
      c_positive_[lane] = data_.c_positive[child];
      c_negative_[lane] = data_.c_negative[child];
    }
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
    int64_t visits = 0;
    const size_t n = rows_.size();
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), 0);
    random_.shuffle(order_.data(), int64_t(n));
    for (size_t j = 0; j < n; ++j) {
      const size_t i = size_t(order_[j]);
      if (j + 2 < n) prefetch_row(size_t(order_[j + 2]));
      if (j + 1 < n) prefetch_weights(size_t(order_[j + 1]));
      if (!visit_all && rest_until_[i] > epoch) continue;
      ++visits;
      const LocalRow x = row(i);
      k.lane_margins(x, weights_.data(), margin);
      float* along = &moved_[i * kLanes];
      for (int lane = 0; lane < kLanes; ++lane) margin[lane] += settings_.bias * bias_[lane] + lone_square_[i] * along[lane];
      const float weight = data_.row_weight ? data_.row_weight[rows_[i]] : 1.0f;
      const bool moved = step({margin, &side_[i * kLanes], c_positive_, c_negative_, weight, q_[i],
                               &dual_[i * kLanes], delta, gap_, loss_, settled_gap_});
      if (moved) {
        k.lane_update(x, delta, weights_.data());
        for (int lane = 0; lane < kLanes; ++lane) {
          bias_[lane] += settings_.bias * delta[lane];
          along[lane] += delta[lane];
        }
        patience_[i] = 0;
      } else {
        patience_[i] = uint8_t(std::min(patience_[i] + 1, 5));
        rest_until_[i] = epoch + (1 << patience_[i]);
      }
    }
    return visits;
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

  void keep_weights(int32_t first, int lanes, std::vector<ChunkEntries>& chunks,
                    const std::vector<int32_t>& chunk_of_child, std::vector<float>& bias) {
    for (int lane = 0; lane < lanes; ++lane) bias[first + lane] = settings_.bias * bias_[lane];
    const auto keep = [&](int32_t feature, const float* weights) {
      for (int lane = 0; lane < lanes; ++lane) {
        if (weights[lane] == 0.0f || std::fabs(weights[lane]) < settings_.threshold) continue;
        const int32_t child = first + lane, chunk = chunk_of_child[child];
        chunks[chunk].feature.push_back(feature);
        chunks[chunk].child.push_back(uint8_t(child - data_.chunk_node[chunk]));
        chunks[chunk].value.push_back(weights[lane]);
      }
    };
    for (int32_t local : ascending_) keep(features_[local], &weights_[size_t(local) * kLanes]);
    for (const Lone& lone : lone_) {
      float weights[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) weights[lane] = lone.value * moved_[size_t(lone.row) * kLanes + lane];
      keep(lone.feature, weights);
    }
  }

  // A feature that only one of the unit's rows has. Its weight is what that row has moved by times its value: it needs
  // no place among the weights, whose cache lines would be fetched for this row alone.
  struct Lone {
    int32_t feature, row;
    float value;
  };
  static constexpr int32_t kLone = -1, kShared = -2;  // in local_feature_, while features are numbered

  const TrainingData& data_;
  const TrainSettings& settings_;
  const std::vector<int32_t>& by_frequency_;
  const Work& work_;
  Random random_{0};

  // the unit's rows
  std::vector<int32_t> rows_, features_, ascending_, local_feature_, local_row_;
  std::vector<int64_t> indptr_;
  HugeVector<uint32_t> feature_;
  HugeVector<float> value_;
  std::vector<float> q_, lone_square_;
  std::vector<Lone> lone_;

  // the block's lanes
  HugeVector<float> side_, dual_, weights_, moved_;  // moved_: how far w has moved along each row
  std::vector<int32_t> rest_until_, order_;
  std::vector<uint8_t> patience_;
  alignas(32) float c_positive_[kLanes] = {}, c_negative_[kLanes] = {}, bias_[kLanes] = {}, settled_gap_[kLanes] = {};
  double gap_[kLanes] = {}, loss_[kLanes] = {};
};

// A chunk's entries come block by block of lanes; order them by feature, then child.
void sort_entries(ChunkEntries& entries) {
  const size_t n = entries.feature.size();
  std::vector<std::pair<uint64_t, uint32_t>> key(n);  // a feature needs 31 bits, so the place has a field of its own
  for (size_t e = 0; e < n; ++e) key[e] = {uint64_t(entries.feature[e]) << 8 | entries.child[e], uint32_t(e)};
  if (std::is_sorted(key.begin(), key.end())) return;
  std::sort(key.begin(), key.end());
  ChunkEntries sorted;
  sorted.feature.reserve(n);
  sorted.child.reserve(n);
  sorted.value.reserve(n);
  for (const auto& [_, e] : key) {
    sorted.feature.push_back(entries.feature[e]);
    sorted.child.push_back(entries.child[e]);
    sorted.value.push_back(entries.value[e]);
  }
  entries = std::move(sorted);
}

}  // namespace

ChunkArrays train_tree(const CsrView& X, const float* row_scale, const CsrView& labels, const TreeView& tree,
                       const float* c_positive, const float* c_negative, const float* row_weight,
                       const TrainSettings& settings, Work& work, TrainReport& report) {
  const NodeRows rows = assign_rows(labels, tree);
  const std::vector<int32_t> chunk_node = chunk_nodes(tree);
  const TrainingData data{X, tree, rows, chunk_node, row_scale, c_positive, c_negative, row_weight};
  std::vector<int32_t> chunk_of_child(tree.nodes, -1);
  for (size_t c = 0; c + 1 < chunk_node.size(); ++c)
    std::fill(chunk_of_child.begin() + chunk_node[c], chunk_of_child.begin() + chunk_node[c + 1], int32_t(c));

  const std::vector<Unit> units = plan_units(tree, rows);
  const std::vector<int32_t> by_frequency = features_by_frequency(X);
  std::vector<ChunkEntries> chunks(chunk_node.size() - 1);
  std::vector<PackedChunk> packed(chunks.size());
  std::vector<float> bias(tree.nodes, 0.0f);
  double total = 0;
  for (const Unit& unit : units) total += unit.cost;
  std::vector<std::unique_ptr<UnitTrainer>> trainers(std::max(1, settings.threads));
  std::vector<TrainReport> reports(trainers.size());
  work.for_each(int64_t(units.size()), settings.threads, [&](int64_t index, int thread) {
    auto& trainer = trainers[thread];
    if (!trainer) trainer = std::make_unique<UnitTrainer>(data, settings, by_frequency, work);
    const Unit& unit = units[index];
    trainer->train(unit, chunks, chunk_of_child, bias, reports[thread]);
    for (int32_t c = chunk_of_child[unit.first_child]; c <= chunk_of_child[unit.last_child - 1]; ++c) {
      sort_entries(chunks[c]);
      packed[c] = pack_chunk(chunks[c], chunk_node[c + 1] - chunk_node[c], X.cols, settings.weight_bits);
      chunks[c] = {};
    }
    work.add(unit.cost / total);
  });
  for (const TrainReport& part : reports) {
    report.epochs += part.epochs;
    report.row_visits += part.row_visits;
    report.unfinished += part.unfinished;
  }
  return join_chunks(chunk_node, std::move(packed), std::move(bias), settings.weight_bits);
}

}  // namespace longleaf

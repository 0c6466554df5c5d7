// Training the classifiers of a tree's nodes.
//
// Problem: for every node v but the root, an L2-regularised linear classifier that distinguishes, among the rows of v's
// parent u (those with a label below u; every row at the root), the rows of v:
//   min_w  |w|^2 / 2 + sum over rows i of u  C_i loss(y_i w.x_i),      y_i = +1 if v holds i, else -1.
// Given: rows, the labels' leaves, a cost per node. Out: the weights, small ones dropped, chunked by siblings.
//
// Method: dual coordinate descent (Hsieh et al. 2008; Yu, Huang and Lin 2011 for logistic), kLanes classifiers at a
// time. Siblings see the same rows, so a row is read once and every weight line [feature][lane] serves all lanes.
// Families with few children (binary trees) are packed together until the lanes are full, at the top of the tree whole
// subtrees of a few levels (units.cpp); a row then takes part in the lanes of the families that hold it. The rows of
// all packed families together are never more than their sum, so packing cannot lose.
//
// When to stop: the Fenchel-Young gaps of the rows sum to the duality gap, which bounds how far the primal objective
// is from its minimum; training ends when it falls below `tolerance` times the objective in every lane. A row whose
// own gap lies far below its share is left alone for one epoch, then two, four, ...; the last epoch visits all.
//
// Training from weights w0: |w - w0|^2 stands for |w|^2. With w = w0 + d that is the same problem in d with the margins
// w0.x_i added, so nothing changes but these, and w0 is added to what is kept. Where a feature's move counts h-fold,
// h d^2, the problem is the same again in sqrt(h) d, with the feature's values divided by sqrt(h): its `freedom`.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "base/kernels.h"
#include "base/random.h"
#include "train/unit_rows.h"

namespace longleaf {

namespace {

// What one thread trains units with, reused from unit to unit.
class UnitTrainer {
 public:
  UnitTrainer(const TrainingData& data, const TrainSettings& settings, const ChunkPlan& plan, const Work& work)
      : data_(data), settings_(settings), plan_(plan), work_(work), rows_(data, settings, work) {}

  void train(const Unit& unit, std::vector<ChunkEntries>& chunks, std::vector<float>& bias, TrainReport& report) {
    rows_.gather(unit);
    if (data_.initial) find_initial_margins(unit);
    for (size_t first = 0; first < unit.nodes.size(); first += kLanes) {
      const Block block = Block(unit.nodes).subspan(first, std::min<size_t>(kLanes, unit.nodes.size() - first));
      set_sides(unit, block);
      if (data_.initial) take_initial(unit, first, block);
      descend(block, report);
      keep_weights(block, chunks, bias);
    }
  }

 private:
  using Block = std::span<const int32_t>;  // the nodes of the lanes

  void set_sides(const Unit& unit, Block block) {
    side_.assign(rows_.size() * kLanes, 0.0f);
    size_t family = 0;
    for (size_t lane = 0; lane < block.size(); ++lane) {
      const int32_t child = block[lane];
      while (!is_child(child, unit.families[family])) ++family;
      for (int32_t row : data_.rows.of(unit.families[family])) side_[rows_.place_of(row) * kLanes + lane] = -1.0f;
      const int64_t begin = data_.rows.indptr[child], end = data_.rows.indptr[child + 1];
      for (int64_t j = begin; j < end; ++j) {
        const int32_t row = data_.rows.rows[j];
        if (!rows_.has(row)) continue;
        float& side = side_[rows_.place_of(row) * kLanes + lane];
        if (side < 0) side = data_.rows.factor ? data_.rows.factor[j] : 1.0f;
      }
      c_positive_[lane] = data_.c_positive[child];
      c_negative_[lane] = data_.c_negative[child];
    }
  }

  bool is_child(int32_t node, int32_t parent) const {
    return data_.tree.first_child[parent] <= node && node < data_.tree.first_child[parent + 1];
  }

  // The margins of the weights that training starts from: [row][node of the unit].
  void find_initial_margins(const Unit& unit) {
    const ChunkView& chunks = *data_.initial;
    const size_t width = unit.nodes.size();
    initial_margin_.resize(rows_.size() * width);
    size_t first = 0;
    for (int32_t c : plan_.chunks_of(unit.nodes)) {
      check_chunk(chunks, c);
      const Chunk chunk = chunk_at(chunks, c);
      for (size_t i = 0; i < rows_.size(); ++i) {
        work_.check();
        const int32_t row = rows_.original(i);
        const int64_t begin = data_.X.indptr[row], size = data_.X.row_size(row);
        float* margin = &initial_margin_[i * width + first];
        std::copy_n(chunks.bias + chunks.node[c], chunk.width, margin);
        kernels().add_products(chunk, {data_.X.indices + begin, data_.X.data + begin, size, data_.row_scale[row]},
                               margin);
      }
      first += size_t(chunk.width);
    }
  }
  void take_initial(const Unit& unit, size_t first, Block block) {
    block_chunks_ = plan_.chunks_of(block);
    const size_t width = unit.nodes.size();
    start_.assign(rows_.size() * kLanes, 0.0f);
    for (size_t i = 0; i < rows_.size(); ++i)
      std::copy_n(&initial_margin_[i * width + first], block.size(), &start_[i * kLanes]);
  }

  // The weights of the row that comes next: with them on their way, a visit waits less for the memory.
  void prefetch_weights(size_t i) const {
    const LocalRow x = rows_.row(i);
    for (int64_t j = 0; j < x.size; ++j) __builtin_prefetch(&weights_[size_t(x.feature[j]) * kLanes]);
  }
  // The beginning of the row after it; the processor's own prefetcher follows from there.
  void prefetch_row(size_t i) const {
    const LocalRow x = rows_.row(i);
    for (int64_t offset = 0; offset < 64; offset += 16) {
      __builtin_prefetch(x.feature + offset);
      __builtin_prefetch(x.value + offset);
    }
    __builtin_prefetch(&side_[i * kLanes]);
    __builtin_prefetch(&moved_[i * kLanes]);
    if (!dual_.empty()) __builtin_prefetch(&dual_[i * kLanes]);
  }

  // Coordinate descent from zero until the lanes' duality gaps are small.
  void descend(Block block, TrainReport& report) {
    weights_.assign(rows_.features() * kLanes, 0.0f);
    std::fill_n(bias_, kLanes, 0.0f);
    // logistic keeps the margin that alpha implies; at 30 alpha is as good as 0
    if (settings_.loss == Loss::logistic) dual_.assign(rows_.size() * kLanes, 30.0f);
    moved_.assign(rows_.size() * kLanes, 0.0f);
    rest_until_.assign(rows_.size(), 0);
    patience_.assign(rows_.size(), 0);
    std::fill_n(settled_gap_, kLanes, 0.0f);
    random_ = Random(settings_.seed, (uint64_t(block.front()) << 1) | 1);
    for (int epoch = 0;; ++epoch) {
      if (epoch == settings_.max_epochs) {
        ++report.unfinished;
        break;
      }
      ++report.epochs;
      const auto due = draw_order(epoch);
      std::fill_n(gap_, kLanes, 0.0);
      std::fill_n(loss_, kLanes, 0.0);
      report.row_visits += visit(std::span(order_.begin(), due), epoch);
      if (!gaps_are_small(block.size())) continue;
      // what the rows that rested add to the gap is not known yet
      report.row_visits += visit(std::span(due, order_.end()), epoch);
      if (due == order_.end() || gaps_are_small(block.size())) break;
    }
  }

  // Orders all rows: runs of them at random, those that rest behind the others; returns where these begin.
  std::vector<int32_t>::iterator draw_order(int epoch) {
    const size_t run = rows_.run();
    runs_.resize((rows_.size() + run - 1) / run);
    std::iota(runs_.begin(), runs_.end(), 0);
    random_.shuffle(runs_.data(), int64_t(runs_.size()));
    order_.clear();
    for (const int32_t drawn : runs_) {
      const size_t begin = size_t(drawn) * run, end = std::min(begin + run, rows_.size());
      for (size_t i = begin; i < end; ++i) order_.push_back(int32_t(i));
    }
    return std::stable_partition(order_.begin(), order_.end(),
                                 [&](int32_t i) { return rest_until_[size_t(i)] <= epoch; });
  }

  // Takes a step for each of these rows, and adds up the gaps and losses that they had before it.
  int64_t visit(std::span<const int32_t> order, int epoch) {
    const Kernels& k = kernels();
    const auto step = settings_.loss == Loss::logistic ? k.logistic_step : k.squared_hinge_step;
    alignas(32) float margin[kLanes], delta[kLanes];
    const size_t visits = order.size();
    const float bias_value = rows_.bias_value();
    const float start = data_.initial ? 0.0f : settings_.margin;
    for (size_t j = 0; j < visits; ++j) {
      work_.check();
      const size_t i = size_t(order[j]);
      if (j + 2 < visits) prefetch_row(size_t(order[j + 2]));
      if (j + 1 < visits) prefetch_weights(size_t(order[j + 1]));
      const LocalRow x = rows_.row(i);
      k.lane_margins(x, weights_.data(), margin);
      float* moved = &moved_[i * kLanes];
      const float lone_square = rows_.lone_square(i);
      for (int lane = 0; lane < kLanes; ++lane)
        margin[lane] += start + bias_value * bias_[lane] + lone_square * moved[lane];
      if (data_.initial)
        for (int lane = 0; lane < kLanes; ++lane) margin[lane] += start_[i * kLanes + lane];
      const float weight = data_.row_weight ? data_.row_weight[rows_.original(i)] : 1.0f;
      float* dual = dual_.empty() ? moved : &dual_[i * kLanes];  // squared hinge has none
      const bool moves = step({margin, &side_[i * kLanes], c_positive_, c_negative_, weight, rows_.square(i), moved,
                               dual, delta, gap_, loss_, settled_gap_});
      if (moves) {
        k.lane_update(x, delta, weights_.data());
        for (int lane = 0; lane < kLanes; ++lane) bias_[lane] += bias_value * delta[lane];
        patience_[i] = 0;
      } else {
        patience_[i] = uint8_t(std::min(patience_[i] + 1, 5));
        rest_until_[i] = epoch + (1 << patience_[i]);
      }
    }
    return int64_t(visits);
  }

  bool gaps_are_small(size_t lanes) {
    double square[kLanes] = {};
    kernels().lane_squares(weights_.data(), nullptr, int64_t(rows_.features()), square);
    kernels().lane_squares(moved_.data(), rows_.lone_squares(), int64_t(rows_.size()), square);
    // One lane that lags would have all of them visit every row once more. Where much is allowed, it may lag a little.
    const double worst = 1 + settings_.tolerance;
    bool small = true;
    double gaps = 0, objectives = 0;
    for (size_t lane = 0; lane < lanes; ++lane) {
      const double objective = 0.5 * (square[lane] + double(bias_[lane]) * bias_[lane]) + loss_[lane];
      const double allowed = settings_.tolerance * objective;
      gaps += gap_[lane];
      objectives += objective;
      small = small && gap_[lane] <= worst * allowed;
      settled_gap_[lane] = float(0.3 * allowed / double(rows_.size()));
    }
    return small && gaps <= settings_.tolerance * objectives;
  }

  void keep_weights(Block block, std::vector<ChunkEntries>& chunks, std::vector<float>& bias) {
    for (size_t lane = 0; lane < block.size(); ++lane)
      bias[size_t(block[lane] - plan_.first_node)] += rows_.bias_value() * bias_[lane];
    find_targets(block, chunks);
    rows_.each_feature(
        [&](int32_t feature, size_t local) { keep(feature, &weights_[local * kLanes], rows_.freedom(local)); },
        [&](int32_t feature, size_t row, float step) { keep(feature, &moved_[row * kLanes], step); });
  }

  void find_targets(Block block, std::vector<ChunkEntries>& chunks) {
    for (size_t lane = 0; lane < block.size(); ++lane) {
      const int32_t chunk = plan_.chunk_of(block[lane]);
      targets_[lane] = {&chunks[size_t(chunk - plan_.first_chunk)], uint8_t(block[lane] - plan_.node[size_t(chunk)])};
    }
    trained_lanes_ = (1u << block.size()) - 1;
  }

  // Of the weights scale * held those that are not too small. Most features have none.
  void keep(int32_t feature, const float* held, float scale) const {
    // with weights to start from, smaller moves count
    uint32_t lanes = lanes_to_keep(held, scale, data_.initial ? kSmallMove : 1.0f);
    if (lanes != 0 && data_.initial && !has_initial(feature)) lanes = lanes_to_keep(held, scale, 1.0f);
    for (; lanes != 0; lanes &= lanes - 1) {
      const Target& target = targets_[std::countr_zero(lanes)];
      target.entries->append(feature, target.child, scale * held[std::countr_zero(lanes)]);
    }
  }

  uint32_t lanes_to_keep(const float* held, float scale, float share_of_threshold) const {
    const float least = settings_.threshold * share_of_threshold / std::fabs(scale);
    return kernels().lanes_above(held, std::max(least, std::numeric_limits<float>::min())) & trained_lanes_;
  }

  // Whether any of the block's nodes starts with a weight of this feature.
  bool has_initial(int32_t feature) const {
    const ChunkView& chunks = *data_.initial;
    return std::any_of(block_chunks_.begin(), block_chunks_.end(),
                       [&](int32_t c) { return has_feature(chunk_at(chunks, c), feature); });
  }

  // Stored weights are rounded by about as much: moves of a smaller share of `threshold` are not worth adding.
  static constexpr float kSmallMove = 0.1f;

  const TrainingData& data_;
  const TrainSettings& settings_;
  const ChunkPlan& plan_;
  const Work& work_;
  Random random_{0};

  UnitRows rows_;
  std::vector<float> initial_margin_;

  // the block's lanes
  std::vector<int32_t> block_chunks_;                        // with weights to start from only
  HugeVector<float> side_, dual_, weights_, moved_, start_;  // moved_: how far w has moved along each row
  std::vector<int32_t> rest_until_, runs_, order_;
  std::vector<uint8_t> patience_;
  struct Target {
    ChunkEntries* entries;
    uint8_t child;
  };
  Target targets_[kLanes] = {};  // where the lanes' weights are kept
  uint32_t trained_lanes_ = 0;   // a bit for each
  alignas(32) float c_positive_[kLanes] = {}, c_negative_[kLanes] = {}, bias_[kLanes] = {}, settled_gap_[kLanes] = {};
  double gap_[kLanes] = {}, loss_[kLanes] = {};
};

}  // namespace

ChunkArrays train_nodes(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                        Work& work, TrainReport& report) {
  const std::vector<Unit> units = units_between(data.tree, data.rows, first_node, last_node);
  const ChunkPlan plan(data.tree, first_node, last_node);
  std::vector<ChunkEntries> chunks(size_t(plan.last_chunk - plan.first_chunk));
  std::vector<PackedChunk> packed(chunks.size());
  std::vector<float> bias(size_t(last_node - first_node), settings.margin);
  const ChunkView* initial = data.initial;
  if (initial) std::copy(initial->bias + first_node, initial->bias + last_node, bias.begin());
  double total = 0;
  for (const Unit& unit : units) total += unit.cost;
  std::vector<std::unique_ptr<UnitTrainer>> trainers(std::max(1, settings.threads));
  std::vector<TrainReport> reports(trainers.size());
  work.for_each(int64_t(units.size()), settings.threads, [&](int64_t index, int thread) {
    auto& trainer = trainers[thread];
    if (!trainer) trainer = std::make_unique<UnitTrainer>(data, settings, plan, work);
    const Unit& unit = units[index];
    if (unit.cost > 0) trainer->train(unit, chunks, bias, reports[thread]);
    for (int32_t c : plan.chunks_of(unit.nodes)) {
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
  for (const TrainReport& of_thread : reports) report.add(of_thread);
  return join_chunks({plan.node.begin() + plan.first_chunk, plan.node.begin() + plan.last_chunk + 1}, std::move(packed),
                     std::move(bias), settings.weight_bits);
}

}  // namespace longleaf

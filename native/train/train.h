// Training the classifiers of a tree's nodes.
//
// Training is divided into units. A unit's result depends on its own rows and the seed alone, so units may be trained
// in any order, by any number of threads, or on machines that have no other rows; the bits stay the same.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"
#include "base/kernels.h"
#include "base/parallel.h"
#include "trees/trees.h"
#include "weights/weights.h"

namespace longleaf {

enum class Loss : int { logistic = 0, squared_hinge = 1 };

struct TrainSettings {
  Loss loss = Loss::logistic;
  double tolerance = 0.01;  // on the duality gap, relative to the objective
  int max_epochs = 100;
  float threshold = 0.1f;  // weights of smaller magnitude are dropped
  float bias = 1.0f;       // the value of the bias feature; 0 for none
  float margin = 0.0f;     // a margin that every row starts from, unless there are initial weights
  int weight_bits = 8;
  uint64_t seed = 0;
  int threads = 1;
};
struct TrainReport {
  int64_t epochs = 0, row_visits = 0, unfinished = 0;  // unfinished: blocks stopped by max_epochs

  void add(const TrainReport& other) {
    epochs += other.epochs;
    row_visits += other.row_visits;
    unfinished += other.unfinished;
  }
};
struct TrainingData {
  CsrView X;
  const float* row_scale;
  const float* row_weight;  // null for 1
  TreeView tree;
  NodeRows rows;
  const float *c_positive, *c_negative;  // one cost per node
  const ChunkView* initial =
      nullptr;                  // weights to start from and to stay near, of a tree of the same form; may be null
  const float* past = nullptr;  // per feature, the bias last: how many old rows count for each new one; null for none
};

// Unit u trains the nodes [first_node[u], first_node[u + 1]); the first has the root, which has no classifier. Levels
// at the top of the tree that are trained together count as one.
struct TrainingUnits {
  std::vector<int32_t> first_node;  // of every unit, then the number of nodes
  std::vector<double> cost;
};
TrainingUnits training_units(const TreeView& tree, const NodeRows& rows);

// Trains the classifiers of the nodes [first_node, last_node), whole units, each on the rows of its parent: those that
// the node has, too, are positive. Returns the chunks of these nodes, and their biases.
ChunkArrays train_nodes(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                        Work& work, TrainReport& report);

// What the solver keeps for each row of a unit besides its features: number, beginning, the squares of all features and
// of those no other row has, when it is due, its place in the order and its patience; and for each of the kLanes lanes
// its side, dual variable and move.
inline constexpr int64_t kRowBytes = 4 + 8 + 4 + 4 + 4 + 4 + 1;
inline constexpr int64_t kRowLaneBytes = 3 * sizeof(float);

}  // namespace longleaf

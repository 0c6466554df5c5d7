// The methods that longleaf is compared with: one-versus-rest with an l1 norm (ProXML), and trees that split rows by
// nDCG (FastXML, PfastreXML), with the sparse separators of their nodes.
//
// A label's solution, or a tree, depends on its own seed alone, never on the number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/base.h"
#include "base/parallel.h"
#include "train/train.h"

namespace longleaf {

// ---------------------------------------------------------------- l1.cpp

// As train_nodes(), but with |w|_1 for |w|^2 / 2 and the squared hinge; of a flat tree.
ChunkArrays train_l1(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                     Work& work, TrainReport& report);

// ---------------------------------------------------------------- separator.cpp

struct SeparatorSettings {
  float cost_off = 1, cost_on = 1;  // of an error on either side
  float bias = 1;                   // the value of the bias feature; 0 for none
  double tolerance = 0.005;         // the share of the violations met by the first pass that may remain
  int max_epochs = 20;
  uint64_t seed = 0;
};
struct Separator {
  std::vector<int32_t> feature;  // in order
  std::vector<float> weight;
  float bias = 0;
};
// sides: per row, 0 or 1
Separator separate(const CsrView& X, const float* row_scale, const uint8_t* sides, const SeparatorSettings& settings,
                   const Work& work);

// ---------------------------------------------------------------- ndcg_sides.cpp, ndcg_tree.cpp

// What trees that split rows by nDCG are grown from.
struct NdcgData {
  CsrView X;
  const float* row_scale;
  CsrView labels;      // rows to labels
  const double* gain;  // per label, above 0
};
struct NdcgSettings {
  int64_t max_leaf = 10, max_labels = 100;  // rows of a leaf; labels that it keeps, the best ones
  double C = 1;                             // cost of a separator's errors
  float bias = 1;
  double tolerance = 0.005;
  int max_epochs = 20;
  int threads = 1;
};
// Improves sides and orders of all rows' labels in turn; returns sides, 0 or 1 per row. begun: the sides to begin with.
std::vector<uint8_t> ndcg_sides(const CsrView& labels, const double* gain, const uint8_t* begun, const Work& work);

// Nodes in breadth-first order: of an inner node the two children, for margins of at most and above 0, and its line of
// weights; of a leaf -1 twice, and its line of the mean gain of each label over its rows.
struct NdcgTreeArrays {
  std::vector<int32_t> children, place;  // two and one per node
  std::vector<int64_t> weight_indptr{0}, leaf_indptr{0};
  std::vector<int32_t> weight_indices, leaf_indices;  // features; labels
  std::vector<float> weight_data, leaf_data, bias;
};
// One tree per seed.
std::vector<NdcgTreeArrays> grow_ndcg_trees(const NdcgData& data, std::span<const uint64_t> seeds,
                                            const NdcgSettings& settings, Work& work);

// ---------------------------------------------------------------- ndcg_forest.cpp

struct NdcgTreeView {
  int64_t nodes = 0;
  const int32_t *children = nullptr, *place = nullptr;
  CsrView weights, leaves;
  const float* bias = nullptr;
};
struct NdcgForest {
  std::vector<NdcgTreeView> trees;
  CsrView means;                     // labels to features: the mean of the rows with a label
  std::vector<double> mean_squares;  // of their lengths
};
NdcgForest ndcg_forest(std::vector<NdcgTreeView> trees, const CsrView& means);
struct NdcgSearchSettings {
  int k = 5;
  double alpha = 0.8, gamma = 30;
  int threads = 1;
};
struct NdcgRows {
  CsrView X;
  const float* scale;       // of each row, in the trees
  const float* unit_scale;  // scales each row to unit length
};
// labels and scores: rows * k, best first, padded with -1 and 0; candidates: per row, labels that its leaves hold.
void ndcg_top_k(const NdcgForest& forest, const NdcgRows& rows, const NdcgSearchSettings& settings, Work& work,
                int32_t* labels, float* scores, int64_t* candidates);

}  // namespace longleaf

// The whole native contract on one page: what goes in (borrowed views of arrays), what comes out (owned vectors).
// Knows arrays, not Python. Everything that a caller can get wrong is checked before it gets here (bindings.h), except
// what is read from model files, which chunks.cpp and search.cpp check themselves.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/kernels.h"
#include "base/parallel.h"

namespace longleaf {

// Rows of sparse features; indices are within [0, cols) and sorted within a row.
struct CsrView {
  int64_t rows = 0, cols = 0;
  const int64_t* indptr = nullptr;
  const int32_t* indices = nullptr;
  const float* data = nullptr;  // null for a pattern (labels)

  int64_t row_size(int64_t row) const { return indptr[row + 1] - indptr[row]; }
};

// A tree in breadth-first order: node 0 is the root, the children of v are [first_child[v], first_child[v + 1]).
struct TreeView {
  int64_t nodes = 0;
  const int32_t* first_child = nullptr;  // nodes + 1
  const int32_t* label = nullptr;        // the label of a leaf, -1 for an inner node

  bool is_leaf(int64_t v) const { return first_child[v] == first_child[v + 1]; }
};
// Throws std::invalid_argument unless it is such a tree, with a label below `labels` at every leaf and at no other
// node.
void check_tree(const TreeView& tree, int64_t labels);

enum class Loss : int { logistic = 0, squared_hinge = 1 };

// ---------------------------------------------------------------- centroids.cpp, kmeans.cpp

// The sum of the rows that carry a label, scaled to unit length; one sparse vector per wanted label.
struct LabelCentroids {
  std::vector<int64_t> indptr;
  Buffer<int32_t> indices;
  Buffer<float> data;
};
LabelCentroids label_centroids(const CsrView& X, const float* row_scale, const CsrView& labels_to_rows, int threads,
                               Work& work);

// Clusters of labels, each split until it has at most max_leaf labels: cluster c covers order[begin[c], end[c]).
struct Clusters {
  std::vector<int32_t> order;               // a permutation of the centroids' rows
  std::vector<int32_t> begin, end, parent;  // cluster 0 is everything, parent -1; parents come before children
};
struct KMeansSettings {
  int arity = 2, max_leaf = 100, max_iterations = 20;
  double tolerance = 1e-4;
  bool balanced = true;
  uint64_t seed = 0;
  int threads = 1;
};
Clusters cluster_labels(const CsrView& centroids, const KMeansSettings& settings, Work& work);

// ---------------------------------------------------------------- chunks.cpp

// The weights of a tree, chunked by siblings. A chunk covers up to kChunkWidth consecutive siblings and lists, by
// feature, the children that have a weight there, so that one pass over a row's features gives every child's margin.
// Features are found through two bitmaps: a page of 4096 features tells which of its 64 words hold any, a word which of
// its 64 features are there; the ones before a bit are counted to find its place.
//   chunk c:  nodes [node[c], node[c + 1]), pages [c * pages(features), (c + 1) * pages(features))
//   page p:   page_words[p] is its bitmap, page_first[p] its first word, counted from word[c]
//   word w:   words[w] has its bitmap and where its block of bytes begins, counted from byte[c]
//   block:    where each of its features' slots ends, two bytes each, counted from the last of these; then the slots
// What a look-up reads one after the other stands together, since it comes from memory a cache line at a time.
// A slot with n weights names their children, a byte each, or as a bitmap over all children where that is shorter; then
// come the weights: 32-bit floats, or a byte each, the sign in its low bit above which stands a level. Level 0 is the
// weight 0; the bits of level i's float are those of low[c] plus (i - 1) * step[c], so that levels differ by nearly
// equal ratios. Where it is no longer in all, a chunk is dense: its slots have a weight for every child and need no
// ends. Eight spare bytes follow the last chunk's.
struct ChunkView {
  int64_t chunks = 0, nodes = 0, features = 0;
  const int32_t* node = nullptr;
  const uint8_t* dense = nullptr;
  const int64_t *word = nullptr, *byte = nullptr;  // chunks + 1 each
  const int64_t* weights = nullptr;                // per chunk, how many there are: nothing but a figure to show
  const uint64_t* page_words = nullptr;
  const uint32_t* page_first = nullptr;
  const Word* words = nullptr;
  const uint8_t* bytes = nullptr;
  const float* low = nullptr;  // null for 32-bit weights
  const uint32_t* step = nullptr;
  const float* bias = nullptr;  // one per node
};
struct ChunkArrays {
  std::vector<int32_t> node;
  std::vector<uint8_t> dense;
  std::vector<int64_t> word, byte;
  std::vector<int64_t> weights;  // per chunk, how many there are: nothing but a figure to show
  std::vector<uint64_t> page_words;
  std::vector<uint32_t> page_first;
  std::vector<Word> words;
  std::vector<uint8_t> bytes;
  std::vector<float> low, bias;
  std::vector<uint32_t> step;
};
inline constexpr int64_t kPageFeatures = 4096, kWordFeatures = 64;
inline int64_t page_count(int64_t features) { return (features + kPageFeatures - 1) / kPageFeatures; }
// One chunk's weights as (feature, child, value) in order of feature, then child.
struct ChunkEntries {
  std::vector<int32_t> feature;
  std::vector<uint8_t> child;
  std::vector<float> value;

  void reserve(size_t size) {
    feature.reserve(size);
    child.reserve(size);
    value.reserve(size);
  }
  void append(int32_t f, uint8_t c, float v) {
    feature.push_back(f);
    child.push_back(c);
    value.push_back(v);
  }
  void append(const ChunkEntries& other, size_t e) { append(other.feature[e], other.child[e], other.value[e]); }
};
inline constexpr int kChunkWidth = 192;  // 64 slots of 192 32-bit weights end below 65536

std::vector<int32_t> chunk_nodes(const TreeView& tree);  // where each chunk's nodes begin, then the node count
// One chunk's share of the arrays, packed as soon as its entries are there, so that these need not be kept.
struct PackedChunk {
  bool dense = false;
  int64_t weights = 0;
  std::vector<uint64_t> page_words;
  std::vector<uint32_t> page_first;
  std::vector<Word> words;
  std::vector<uint8_t> bytes;
  float low = 0;
  uint32_t step = 0;
};
PackedChunk pack_chunk(const ChunkEntries& entries, int width, int64_t features, int weight_bits);
ChunkArrays join_chunks(std::vector<int32_t> node, std::vector<PackedChunk> chunks, std::vector<float> bias,
                        int weight_bits);
inline constexpr int kLevels = 127;  // of 8-bit weights, above 0
Chunk chunk_at(const ChunkView& view, int64_t chunk);
bool has_feature(const Chunk& chunk, int32_t feature);  // whether any child has a weight there

// ---------------------------------------------------------------- chunk_checks.cpp

// Weights and biases of a larger magnitude are refused. Sums over rows of the longest length that is accepted stay
// finite floats, and the tenth power of a margin, which the steepest hinge takes, a finite double.
inline constexpr float kMostWeight = 1e15f;
// What is quick to check of every chunk: that its levels are weights, and that it has no more weights than bytes.
bool has_sound_numbers(const ChunkView& view, int64_t chunk);
// Throws std::invalid_argument if a chunk points outside itself, or has 32-bit weights that are no numbers.
void check_chunk(const ChunkView& view, int64_t chunk);

// ---------------------------------------------------------------- entries.cpp

ChunkEntries unpack_chunk(const ChunkView& view, int64_t chunk);  // a checked one
PackedChunk copy_chunk(const ChunkView& view, int64_t chunk);     // byte by byte
// Orders a chunk's entries by feature, then child. They come block by block of lanes, each in order: runs are merged.
void sort_entries(ChunkEntries& entries);
// The sum of two, each in order; what is too small in sum is dropped.
ChunkEntries add_entries(const ChunkEntries& a, const ChunkEntries& b, float threshold);

// ---------------------------------------------------------------- regroup.cpp

// The chunks of a tree that was made of another one: origin[v] is the other tree's node that v was, -1 for a new one.
ChunkArrays regroup_chunks(const ChunkView& old, const TreeView& tree, const int64_t* origin, const float* bias,
                           int weight_bits, int threads, Work& work);

// ---------------------------------------------------------------- rows.cpp, units.cpp, linear.cpp

class Forest;

// The rows that hold a label below each node, in order; every row at the root.
struct NodeRowLists {
  std::vector<int64_t> indptr;
  std::vector<int32_t> rows;
};
// labels: rows to labels; the ones in no leaf of the tree are ignored.
NodeRowLists assign_rows(const CsrView& labels, const TreeView& tree);
struct NodeRows {
  const int64_t* indptr = nullptr;
  const int32_t* rows = nullptr;
  const float* factor = nullptr;  // per entry: what that row's being positive there weighs; null for 1

  std::span<const int32_t> of(int64_t node) const {
    return {rows + indptr[node], size_t(indptr[node + 1] - indptr[node])};
  }
};

struct TrainSettings {
  Loss loss = Loss::logistic;
  double tolerance = 0.01;  // on the duality gap, relative to the objective
  int max_epochs = 100;
  float threshold = 0.1f;  // weights of smaller magnitude are dropped
  float bias = 1.0f;       // the value of the bias feature; 0 for none
  int weight_bits = 8;
  uint64_t seed = 0;
  int threads = 1;
};
struct TrainReport {
  int64_t epochs = 0, row_visits = 0, unfinished = 0;  // unfinished: blocks stopped by max_epochs
};
struct TrainingData {
  CsrView X;
  const float* row_scale;
  const float* row_weight;  // null for 1
  TreeView tree;
  NodeRows rows;
  const float *c_positive, *c_negative;  // one cost per node
  const Forest* initial = nullptr;       // weights to start from and to stay near, in its tree `initial_tree`
  int64_t initial_tree = 0;
  const float* past = nullptr;  // per feature, last the bias: old rows that press on it for each new one; null for none
};
// What training falls apart into: unit u trains the nodes [first_node[u], first_node[u + 1]); the first has the root,
// which has no classifier. Levels at the top of the tree that are trained together count as one. A unit's result hangs
// on its own rows and the seed alone, so units may be trained in any order, or on machines that have no other rows.
struct TrainingUnits {
  std::vector<int32_t> first_node;  // of every unit, then the number of nodes
  std::vector<double> cost;
};
TrainingUnits training_units(const TreeView& tree, const NodeRows& rows);
// Trains the classifiers of the nodes [first_node, last_node), whole units, each on the rows of its parent; gives the
// chunks of these nodes, and their biases.
ChunkArrays train_nodes(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                        Work& work, TrainReport& report);

// ---------------------------------------------------------------- l1.cpp

// As train_nodes(), but with |w|_1 for |w|^2 / 2 and the squared hinge; of a flat tree.
ChunkArrays train_l1(const TrainingData& data, int32_t first_node, int32_t last_node, const TrainSettings& settings,
                     Work& work, TrainReport& report);

// ---------------------------------------------------------------- separator.cpp

struct SeparatorSettings {
  float cost_off = 1, cost_on = 1;  // of an error on either side
  float bias = 1;                   // the value of the bias feature; 0 for none
  double tolerance = 0.005;         // of the violations that the first pass met, how much may be left
  int max_epochs = 20;
  uint64_t seed = 0;
};
struct Separator {
  std::vector<int32_t> feature;  // in order
  std::vector<float> weight;
  float bias = 0;
};
// sides: per row, 0 or 1
Separator separate(const CsrView& X, const float* row_scale, const uint8_t* sides, const SeparatorSettings& settings);

// ---------------------------------------------------------------- ndcg_sides.cpp, ndcg_tree.cpp

// What trees that split rows by nDCG are grown from.
struct NdcgData {
  CsrView X;
  const float* row_scale;
  CsrView labels;       // rows to labels
  const double* worth;  // per label, above 0
};
struct NdcgSettings {
  int64_t max_leaf = 10, max_labels = 100;  // rows of a leaf; labels that it keeps, the best ones
  double C = 1;                             // cost of a separator's errors
  float bias = 1;
  double tolerance = 0.005;
  int max_epochs = 20;
  int threads = 1;
};
// Sides and orders of all rows' labels in turn; gives sides, 0 or 1 per row. begun: the sides to begin with.
std::vector<uint8_t> ndcg_sides(const CsrView& labels, const double* worth, const uint8_t* begun);

// Nodes in breadth-first order: of an inner node the two children, for margins of at most and above 0, and its line of
// weights; of a leaf -1 twice, and its line of what its rows' labels are worth on average.
struct NdcgTreeArrays {
  std::vector<int32_t> children, place;  // two and one per node
  std::vector<int64_t> weight_indptr{0}, leaf_indptr{0};
  std::vector<int32_t> weight_indices, leaf_indices;  // features; labels
  std::vector<float> weight_data, leaf_data, bias;
};
// One tree per seed; a tree hangs on its own seed alone.
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
  const float* unit_scale;  // what makes it a row of unit length
};
// labels and scores: rows * k, best first, padded with -1 and 0; candidates: per row, labels that its leaves hold.
void ndcg_top_k(const NdcgForest& forest, const NdcgRows& rows, const NdcgSearchSettings& settings, Work& work,
                int32_t* labels, float* scores, int64_t* candidates);

// ---------------------------------------------------------------- search.cpp

// How a margin m becomes a probability: the logistic function, or exp(-max(0, 1 - m)^link).
inline constexpr int kLogisticLink = 0;

// The trees of a model, prepared for searching. Borrows the arrays; they must outlive it. The constructor checks that
// the tree is one and that every range lies inside its array; a chunk's contents are checked when first read.
class Forest {
 public:
  Forest(std::vector<TreeView> trees, std::vector<ChunkView> chunks, std::vector<int64_t> sizes, int64_t labels,
         int link);
  ~Forest();
  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;

  struct Part;  // forest.h
  const std::vector<Part>& parts() const { return parts_; }
  int64_t labels() const { return labels_; }
  int64_t nodes() const;  // of all trees
  int64_t features() const { return features_; }
  int link() const { return link_; }

  // Checks the contents of all chunks; throws std::invalid_argument.
  void check(int threads, Work& work) const;
  // The weights of a chunk, as they would be packed.
  ChunkEntries chunk_entries(int64_t tree, int64_t chunk) const;
  // The weights of a node for each feature, 0 where it has none.
  std::vector<float> node_weights(int64_t tree, int32_t node, const int32_t* features, int64_t size) const;
  // Per node of all trees, one after another: the log of the best gain below it. log_gain: per label; null for 1.
  std::vector<float> log_bounds(const float* log_gain) const;

 private:
  std::vector<Part> parts_;
  int64_t labels_, features_;
  int link_;
};

struct SearchSettings {
  int k = 5;
  int beam = 0;             // nodes kept per level; 0 for exact search
  bool union_rule = false;  // the paper's ensemble: each tree's own top k, missing scores filled in
  int threads = 1;
  const float* log_gain = nullptr;                            // per label; null for gains of 1
  const float* log_bounds = nullptr;                          // as made by Forest::log_bounds from these gains
  const float* log_threshold = nullptr;                       // per label, scores below are not returned; null for none
  float log_floor = -std::numeric_limits<float>::infinity();  // below every threshold: no score there can matter

  float gain(int32_t label) const { return log_gain ? log_gain[label] : 0.0f; }
  float bound(int64_t node) const { return log_bounds ? log_bounds[node] : 0.0f; }  // node: counted through all trees
};
// Where the answers of all rows go.
struct Answers {
  int32_t* labels;       // rows * k, best first, padded with -1
  float* scores;         // rows * k, gain times probability; padded with 0
  float* probabilities;  // rows * k, padded with 0; null where every gain is 1, since they are the scores then
  int64_t* evaluations;  // per row, how many classifiers were evaluated
};
void top_k(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings, Work& work,
           const Answers& answers);
// The mean probability over the trees of each given (row, label); pairs are best given in order of row.
void probabilities(const Forest& forest, const CsrView& X, const float* row_scale, const int64_t* rows,
                   const int32_t* labels, int64_t pairs, int threads, Work& work, float* out);

}  // namespace longleaf

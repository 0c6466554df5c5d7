// A model's trees, and the search through them.
//
// top_k() finds, for each row, the k labels of the largest gain times mean probability over the trees: with beam == 0
// and no union_rule provably those of the model's own scores, and the same bits whatever the number of threads and
// rows. With a score map the probability is mapped, label by label; overrides are maps of single labels in single rows,
// which are then scored even where no tree has a leaf for them. A model whose labels have refined classifiers must have
// a score map; its labels are those that the trees nominate (nominees.cpp), and the others have probability 0. With a
// utility a label is worth a * probability + b instead, also one of probability 0.
//
// A search that may end early, because it has a beam or limits, says of each row what it may have missed.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/base.h"
#include "base/parallel.h"
#include "search/score_map.h"
#include "search/utility.h"
#include "trees/trees.h"
#include "weights/weights.h"

namespace longleaf {

// How a margin m becomes a probability: the logistic function, or exp(-max(0, 1 - m)^link).
inline constexpr int kLogisticLink = 0;

// The trees of a model, prepared for searching. Borrows the arrays; they must outlive it. The constructor checks that
// each tree is one and that every range lies inside its array; a chunk's contents are checked when first read.
class Forest {
 public:
  // sizes: per tree, the lengths of its arrays `words` and `bytes`, without the spare bytes. refined: whether the last
  // tree is no tree but holds the refined classifiers.
  Forest(std::vector<TreeView> trees, std::vector<ChunkView> chunks, std::vector<int64_t> sizes, int64_t labels,
         int link, bool refined);
  ~Forest();
  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;

  struct Tree;  // forest.h
  const std::vector<Tree>& trees() const { return trees_; }
  // One classifier per label, its leaf; siblings are those whose weights are stored together. Null for none.
  const Tree* refined() const { return refined_.get(); }
  // One of the trees by itself; only where there are refined classifiers.
  const Forest& single(size_t t) const { return *singles_[t]; }
  // A tree by its number, the refined classifiers by the one after the last.
  const Tree& tree(int64_t t) const;
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
  // The rows of bounds of a score map for these gains; log_gain: per label, null for 1.
  std::vector<float> score_bounds(const float* log_gain, const ScoreMap& map, const Work& work) const;
  // How many numbers these are: a row per chunk of siblings, or a single one where labels have refined classifiers.
  int64_t score_bounds_size() const;
  // Computes the bounds of a utility from its lines; with labels, only those above them, the others being right. Where
  // labels have refined classifiers, the bound of all labels never falls by that.
  void bound_utility(UtilityTable& utility, const ScoreMap& map, const Work& work) const;
  void bound_utility(UtilityTable& utility, const ScoreMap& map, std::span<const int32_t> labels,
                     const Work& work) const;

 private:
  std::vector<Tree> trees_;
  std::unique_ptr<Tree> refined_;
  std::vector<std::unique_ptr<Forest>> singles_;
  int64_t labels_, features_;
  int link_;
};

// When a search ends that is not done. What was found until then is returned.
struct Limits {
  double epsilon = 0;                                         // nothing missed is better than best / (1 - epsilon)
  int64_t evaluations = std::numeric_limits<int64_t>::max();  // of a row
  std::optional<std::chrono::steady_clock::time_point> deadline;

  bool cut_short() const { return evaluations < std::numeric_limits<int64_t>::max() || deadline; }
  bool any() const { return epsilon > 0 || cut_short(); }
  bool passed() const { return deadline && std::chrono::steady_clock::now() >= *deadline; }
};

struct SearchSettings {
  int k = 5;
  int beam = 0;             // nodes kept per level; 0 for exact search
  bool resume = false;      // whether the search goes on to the exact answer from what the beam has found
  bool union_rule = false;  // the paper's ensemble: each tree's own top k, missing scores filled in
  int threads = 1;
  const float* log_gain = nullptr;                            // per label; null for gains of 1
  const float* log_bounds = nullptr;                          // as made by Forest::log_bounds from these gains
  const float* log_threshold = nullptr;                       // per label, scores below are not returned; null for none
  float log_floor = -std::numeric_limits<float>::infinity();  // below every threshold: no score there can matter

  ScoreMap map;
  Overrides overrides;
  Utility utility;  // instead of gains
  Limits limits;
  int nominees = 100;  // labels that each tree nominates, where labels have refined classifiers

  float gain(int32_t label) const { return log_gain ? log_gain[label] : 0.0f; }
  float bound(int64_t node) const { return log_bounds ? log_bounds[node] : 0.0f; }  // node: counted through all trees
  // Whether the answer is exact as soon as the search has come to its end.
  bool ends_exact() const { return (beam == 0 || resume) && !limits.any(); }
};
// Where the answers of all rows go.
struct Answers {
  int32_t* labels;       // rows * k, best first, padded with -1
  float* scores;         // rows * k, gain times probability; padded with 0
  float* probabilities;  // rows * k, padded with 0; null where every gain is 1, since they are the scores then
  int64_t* evaluations;  // per row, how many classifiers were evaluated
  // Per row, the most that a label can score that was missed: a log, or a utility; -inf where none can be among the
  // best. Null if nobody wants to know.
  float* missed = nullptr;
};
void top_k(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings, Work& work,
           const Answers& answers);

// What the trees nominate for each row, and what the refined classifiers say of it.
struct Nominee;
struct NomineeLists {
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> labels;
  std::vector<float> probabilities, log_h;

  void append(std::span<const Nominee> row);
  void append(const NomineeLists& rows);
};
NomineeLists nominees(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
                      Work& work);

// The probability of each given (row, label), the mean over the trees, mapped as settings say; pairs are best given in
// order of row.
void probabilities(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
                   const int64_t* rows, const int32_t* labels, int64_t pairs, Work& work, float* out);

}  // namespace longleaf

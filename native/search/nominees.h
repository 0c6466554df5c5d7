// The labels that the trees nominate for rows, and what their refined classifiers say: see nominees.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/block_search.h"
#include "search/forest.h"
#include "search/level_search.h"

namespace longleaf {

struct Nominee {
  int32_t label;
  int32_t group;      // the node of the refined tree that its classifier is a child of, -1 for none
  float probability;  // the mean over the trees, where it is 0 in a tree that did not nominate the label
  float log_h;        // -max(0, 1 - margin)^2
};

// What an exact search could find the mean over the trees to be, where a tree may have missed something.
struct Doubt {
  int32_t label;
  float least, most;
};

class NomineeSearch {
 public:
  // Of the settings, `nominees` and `beam` matter, the overrides, and with the union rule k.
  NomineeSearch(const Forest& forest, const SearchSettings& settings, const Work& work);
  NomineeSearch(const NomineeSearch&) = delete;  // its searches refer to its settings
  NomineeSearch& operator=(const NomineeSearch&) = delete;

  // Finds the nominees of some rows, which ascend. Adds to evaluations[row], unless that is null.
  void find(const CsrView& X, const float* row_scale, std::span<const int64_t> rows, int64_t* evaluations);
  // Those of the i-th of the rows, in order of label.
  std::span<const Nominee> of(size_t i) const { return of_row_[i]; }
  // What the mean over the trees may be of a label that none has nominated for the i-th row; 0 if all nominations are
  // exact.
  float most_of_others(size_t i) const { return most_of_others_[i]; }
  // Of the labels that were nominated for it, in order of label; nothing if all nominations are exact.
  std::span<const Doubt> doubts(size_t i) const { return doubts_[i]; }

 private:
  struct TreeSearch {
    const Forest* tree;
    LevelSearch search;
    bool together;
  };
  // A group whose refined classifiers a row needs: for its nominees from `first` on.
  struct GroupRequest {
    int32_t group, row;
    size_t first;
  };

  void nominate(TreeSearch& tree, const CsrView& X, const float* row_scale, int64_t* evaluations);
  bool may_miss() const { return !tree_settings_.ends_exact(); }
  void gather(std::vector<Nominee>& nominees, const RowOverrides& overrides) const;
  void gather_doubts(size_t i);
  void evaluate_refined(const CsrView& X, const float* row_scale, int64_t* evaluations);

  const Forest& forest_;
  const SearchSettings& settings_;
  const Work& work_;
  SearchSettings tree_settings_;
  std::vector<TreeSearch> trees_;
  BlockSearch alone_;
  std::vector<int64_t> rows_;         // counted from the first
  std::vector<int32_t> labels_;       // of a tree and all rows up to the last
  std::vector<float> probabilities_;  // likewise
  std::vector<int64_t> evaluations_;  // likewise
  std::vector<float> missed_;         // likewise
  std::vector<float> most_of_others_;
  std::vector<std::vector<Doubt>> doubts_;
  std::vector<std::vector<Nominee>> of_row_;
  std::vector<GroupRequest> requests_;
  std::vector<float> value_;
};

}  // namespace longleaf

// Searching a block of rows side by side, each by itself: their requests are served in the order of the weights.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "search/row_search.h"

namespace longleaf {

inline constexpr int64_t kBlock = 512;  // rows searched side by side

// The searches of a block of rows, kept by a thread from block to block, and their requests.
class BlockSearch {
 public:
  // Searches all rows, at most kBlock at a time.
  void run(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
           std::span<const int64_t> rows, const Answers& answers, const Work& work) {
    for (; !rows.empty(); rows = rows.subspan(std::min(rows.size(), size_t(kBlock))))
      run_block(forest, X, row_scale, settings, rows.first(std::min(rows.size(), size_t(kBlock))), answers, work);
  }

 private:
  void run_block(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
                 std::span<const int64_t> rows, const Answers& answers, const Work& work) {
    if (searches_.size() < rows.size()) searches_.resize(rows.size());
    active_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      searches_[i].start(forest, settings, query_of(X, row_scale, rows[i]), settings.overrides.of(rows[i]));
      active_.push_back(int32_t(i));
    }
    while (!active_.empty()) {
      work.check();
      if (settings.limits.passed())
        for (const int32_t i : active_) searches_[size_t(i)].stop();
      requests_.clear();
      std::erase_if(active_, [&](int32_t i) { return !searches_[i].advance(i, requests_); });
      std::sort(requests_.begin(), requests_.end(), [](const NodeRequest& a, const NodeRequest& b) {
        return a.tree != b.tree ? a.tree < b.tree : a.node != b.node ? a.node < b.node : a.row < b.row;
      });
      for (const NodeRequest& request : requests_) searches_[request.row].evaluate(request.tree, request.node);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      work.check();
      searches_[i].write(answers, rows[i]);
    }
  }

  std::vector<RowSearch> searches_;
  std::vector<NodeRequest> requests_;
  std::vector<int32_t> active_;
};

}  // namespace longleaf

// Searching many rows: level by level together, or a block of them side by side, and on several threads.
#include "search/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "search/forest.h"
#include "search/keys.h"
#include "search/known_nodes.h"
#include "search/level_search.h"
#include "search/row_search.h"

namespace longleaf {

namespace {

constexpr int64_t kBlock = 512;      // rows searched side by side, each by itself
constexpr int64_t kTogether = 2048;  // rows searched level by level; more share no more
constexpr int64_t kAtLeast = 32;     // of them, unless threads would have nothing to do

// The searches of a block of rows, kept by a thread from block to block, and their requests.
struct BlockSearch {
  std::vector<RowSearch> searches;
  std::vector<NodeRequest> requests;
  std::vector<int32_t> active;

  void run(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
           std::span<const int64_t> rows, const Answers& answers, const Work& work) {
    if (searches.size() < rows.size()) searches.resize(rows.size());
    active.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      searches[i].start(forest, settings, query_of(X, row_scale, rows[i]), settings.overrides.of(rows[i]));
      active.push_back(int32_t(i));
    }
    while (!active.empty()) {
      work.check();
      requests.clear();
      std::erase_if(active, [&](int32_t i) { return !searches[i].advance(i, requests); });
      std::sort(requests.begin(), requests.end(), [](const NodeRequest& a, const NodeRequest& b) {
        return a.tree != b.tree ? a.tree < b.tree : a.node != b.node ? a.node < b.node : a.row < b.row;
      });
      for (const NodeRequest& request : requests) searches[request.row].evaluate(request.tree, request.node);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      work.check();
      searches[i].write(answers, rows[i]);
    }
  }
};

// The probabilities of single labels of a row.
class RowProbabilities {
 public:
  void start(const Forest& forest, const SearchSettings& settings, const Query& query, const RowOverrides& overrides) {
    settings_ = &settings;
    overrides_ = overrides;
    known_.start(forest, query);
    eta_.resize(forest.trees().size());
  }

  float probability(int32_t label) {
    int64_t evaluations = 0;
    double sum = 0;
    for (size_t t = 0; t < eta_.size(); ++t) {
      eta_[t] = known_.label_log_probability(t, label, evaluations);
      sum += std::exp(double(eta_[t]));
    }
    const int64_t own = overrides_.find(label);
    if (own < 0 && !settings_->map) return float(sum / double(eta_.size()));
    const float mean = log_mean(eta_.data(), eta_.size());
    return std::exp(own >= 0 ? overrides_.at(own).score(0.0f, mean) : label_key(*settings_, label, mean));
  }

 private:
  const SearchSettings* settings_ = nullptr;
  RowOverrides overrides_;
  KnownNodes known_;
  std::vector<float> eta_;  // log, per tree
};

// How many rows a thread takes at a time.
int64_t block_size(int64_t rows, int threads, bool together) {
  const int64_t share = (rows + threads - 1) / threads;
  return together ? std::clamp(share / 4, std::min(share, kAtLeast), kTogether) : kBlock;
}

}  // namespace

void top_k(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings, Work& work,
           const Answers& answers) {
  const int threads = std::max(1, settings.threads);
  const bool together = X.rows > 1 && LevelSearch::serves(forest, settings);
  const int64_t size = block_size(X.rows, threads, together);
  std::vector<int64_t> all(size_t(X.rows));
  std::iota(all.begin(), all.end(), int64_t(0));
  std::vector<BlockSearch> blocks{size_t(threads)};
  std::vector<LevelSearch> searches(size_t(together ? threads : 0), LevelSearch(forest, settings, work));
  work.for_each((X.rows + size - 1) / size, threads, [&](int64_t block, int thread) {
    const int64_t begin = block * size, end = std::min(X.rows, begin + size);
    std::span<const int64_t> rows(all.data() + begin, size_t(end - begin));
    std::fill(answers.evaluations + begin, answers.evaluations + end, int64_t(0));
    if (together) rows = searches[thread].run(X, row_scale, rows, answers);
    for (; !rows.empty(); rows = rows.subspan(std::min(rows.size(), size_t(kBlock))))
      blocks[thread].run(forest, X, row_scale, settings, rows.first(std::min(rows.size(), size_t(kBlock))), answers,
                         work);
    work.add(double(end - begin) / double(X.rows));
  });
}

void probabilities(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
                   const int64_t* rows, const int32_t* labels, int64_t pairs, Work& work, float* out) {
  // runs of the same row share what was evaluated
  std::vector<int64_t> run{0};
  for (int64_t i = 1; i < pairs; ++i)
    if (rows[i] != rows[i - 1]) run.push_back(i);
  if (pairs > 0) run.push_back(pairs);
  std::vector<RowProbabilities> searches(size_t(std::max(1, settings.threads)));
  work.for_each(int64_t(run.size()) - 1, settings.threads, [&](int64_t r, int thread) {
    RowProbabilities& search = searches[thread];
    search.start(forest, settings, query_of(X, row_scale, rows[run[r]]), settings.overrides.of(rows[run[r]]));
    for (int64_t i = run[r]; i < run[r + 1]; ++i) {
      work.check();
      out[i] = search.probability(labels[i]);
    }
  });
}

}  // namespace longleaf

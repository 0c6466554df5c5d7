// Searching many rows: level by level together, or a block of them side by side, and on several threads.
#include "search/search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>

#include "search/block_search.h"
#include "search/forest.h"
#include "search/keys.h"
#include "search/known_nodes.h"
#include "search/level_search.h"
#include "search/nominees.h"

namespace longleaf {

namespace {

constexpr int64_t kTogether = 2048;  // rows searched level by level; more share no more
constexpr int64_t kAtLeast = 32;     // of them, unless threads would have nothing to do

// How many rows a thread takes at a time.
int64_t block_size(int64_t rows, int threads, bool together) {
  const int64_t share = (rows + threads - 1) / threads;
  return together ? std::clamp(share / 4, std::clamp(share, int64_t(1), kAtLeast), kTogether) : kBlock;
}

// Where runs of the same row begin, and the number of pairs: a run shares what was evaluated.
std::vector<int64_t> runs_of(const int64_t* rows, int64_t pairs) {
  std::vector<int64_t> run{0};
  for (int64_t i = 1; i < pairs; ++i)
    if (rows[i] != rows[i - 1]) run.push_back(i);
  if (pairs > 0) run.push_back(pairs);
  return run;
}

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

constexpr float kLeast = 1e-30f;  // far below what maps tell apart, and above what a float cannot hold

// log(gain * f) of a label if the trees' probability is the given one.
float nominee_key(const SearchSettings& settings, const RowOverrides& overrides, const Nominee& nominee, float trees) {
  const float log_probability = std::log(std::max(trees, kLeast)), gain = settings.gain(nominee.label);
  const int64_t own = overrides.find(nominee.label);
  if (own < 0) return label_key(settings, nominee.label, log_probability, nominee.log_h);
  return gain == kNever ? kNever : overrides.at(own).score(gain, log_probability, nominee.log_h);
}

// The best labels of a row by its nominees; the others have probability 0.
class NomineeRanking {
 public:
  // settings must outlive it.
  explicit NomineeRanking(const SearchSettings& settings) : settings_(settings), probabilities_(settings) {
    probabilities_.utility = {};
    probabilities_.log_gain = nullptr;
  }

  // The i-th of the rows of a search.
  void rank(const NomineeSearch& search, size_t i, const Answers& answers, int64_t row) {
    nominees_ = search.of(i), overrides_ = settings_.overrides.of(row);
    most_of_others_ = search.most_of_others(i), doubts_ = search.doubts(i);
    best_.start(settings_);
    for (const Nominee& one : nominees_) offer(one);
    for (const int32_t label : settings_.utility.rest) {
      const float worth = settings_.utility.b[label];
      if (!best_.admits(label, worth)) break;
      if (!is_nominated(label)) best_.offer(label, worth);
    }
    const float bar = best_.bar();
    best_.write(answers, row);
    if (answers.missed != nullptr) answers.missed[row] = most_missed(bar, answers.labels + row * settings_.k);
  }

 private:
  void offer(const Nominee& one) {
    if (!settings_.utility) return best_.offer(one.label, nominee_key(settings_, overrides_, one, one.probability));
    const float log_probability = nominee_key(probabilities_, overrides_, one, one.probability);
    best_.offer(one.label, settings_.utility.key(one.label, log_probability), std::exp(log_probability));
  }

  bool is_nominated(int32_t label) const {
    const auto place = std::lower_bound(nominees_.begin(), nominees_.end(), label,
                                        [](const Nominee& a, int32_t wanted) { return a.label < wanted; });
    return place != nominees_.end() && place->label == label;
  }

  // What no label exceeds that is not returned or whose score is not certain; kNever where all are below the bar.
  float most_missed(float bar, int32_t* returned) const {
    if (most_of_others_ == 0) return kNever;
    const float others = std::log(std::max(most_of_others_, kLeast));
    const bool bounded = settings_.utility || settings_.map.bounds != nullptr;
    const float* bounds = settings_.utility ? settings_.utility.bounds : settings_.map.bounds;
    float most = bounded ? score_bound(shape_of(settings_), bounds, others) : std::numeric_limits<float>::infinity();
    auto doubt = doubts_.begin();
    for (const Nominee& one : nominees_) {
      while (doubt != doubts_.end() && doubt->label < one.label) ++doubt;
      const bool known = doubt != doubts_.end() && doubt->label == one.label;
      const float least = known ? doubt->least : 0.0f, high = known ? doubt->most : most_of_others_;
      const bool certain = high - least <= 1e-6f * high;
      if (certain && std::find(returned, returned + settings_.k, one.label) != returned + settings_.k) continue;
      const float key = nominee_key(settings_.utility ? probabilities_ : settings_, overrides_, one, high);
      most = std::max(most, settings_.utility ? settings_.utility.most_key(one.label, key) : key + rounding(key));
    }
    return most >= bar ? most : kNever;
  }

  const SearchSettings& settings_;
  SearchSettings probabilities_;  // for the probabilities by themselves
  std::span<const Nominee> nominees_;
  RowOverrides overrides_;
  std::span<const Doubt> doubts_;
  float most_of_others_ = 0;
  BestLabels best_;
};

// One search per thread.
std::vector<std::unique_ptr<NomineeSearch>> nominee_searches(const Forest& forest, const SearchSettings& settings,
                                                             const Work& work) {
  std::vector<std::unique_ptr<NomineeSearch>> searches(size_t(std::max(1, settings.threads)));
  for (auto& search : searches) search = std::make_unique<NomineeSearch>(forest, settings, work);
  return searches;
}

void top_k_of_nominees(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
                       Work& work, const Answers& answers) {
  const int64_t size = block_size(X.rows, std::max(1, settings.threads), true);
  const auto searches = nominee_searches(forest, settings, work);
  work.for_each((X.rows + size - 1) / size, settings.threads, [&](int64_t block, int thread) {
    std::vector<int64_t> rows(size_t(std::min(size, X.rows - block * size)));
    std::iota(rows.begin(), rows.end(), block * size);
    std::fill_n(answers.evaluations + rows.front(), rows.size(), int64_t(0));
    searches[thread]->find(X, row_scale, rows, answers.evaluations);
    NomineeRanking ranking(settings);
    for (size_t i = 0; i < rows.size(); ++i) {
      work.check();
      ranking.rank(*searches[thread], i, answers, rows[i]);
    }
    work.add(double(rows.size()) / double(X.rows));
  });
}

// pairs: in order of row.
void probabilities_of_nominees(const Forest& forest, const CsrView& X, const float* row_scale,
                               const SearchSettings& settings, const int64_t* rows, const int32_t* labels,
                               const std::vector<int64_t>& run, Work& work, float* out) {
  const auto runs = int64_t(run.size()) - 1, size = block_size(runs, std::max(1, settings.threads), true);
  const auto searches = nominee_searches(forest, settings, work);
  work.for_each((runs + size - 1) / size, settings.threads, [&](int64_t block, int thread) {
    for (int64_t begin = block * size, end; begin < std::min(runs, (block + 1) * size); begin = end) {
      std::vector<int64_t> wanted;  // runs of rows that ascend and are not far from each other
      for (end = begin; end < std::min(runs, (block + 1) * size); ++end) {
        const int64_t row = rows[run[size_t(end)]];
        if (end > begin && (row <= wanted.back() || row - wanted.front() >= kTogether)) break;
        wanted.push_back(row);
      }
      searches[thread]->find(X, row_scale, wanted, nullptr);
      for (size_t i = 0; i < wanted.size(); ++i) {
        work.check();
        const std::span<const Nominee> nominees = searches[thread]->of(i);
        const RowOverrides overrides = settings.overrides.of(wanted[i]);
        for (int64_t j = run[size_t(begin) + i]; j < run[size_t(begin) + i + 1]; ++j) {
          const auto place = std::lower_bound(nominees.begin(), nominees.end(), labels[j],
                                              [](const Nominee& a, int32_t label) { return a.label < label; });
          const bool nominated = place != nominees.end() && place->label == labels[j];
          out[j] =
              nominated ? float(std::exp(double(nominee_key(settings, overrides, *place, place->probability)))) : 0.0f;
        }
      }
    }
  });
}

}  // namespace

void top_k(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings, Work& work,
           const Answers& answers) {
  if (forest.refined() != nullptr) return top_k_of_nominees(forest, X, row_scale, settings, work, answers);
  const int threads = std::max(1, settings.threads);
  SearchSettings exact = settings;  // which begins with a beam of its own where rows are searched together
  if (settings.resume) exact.beam = 0;
  const bool together = X.rows > 1 && LevelSearch::serves(forest, exact);
  const int64_t size = block_size(X.rows, threads, together);
  std::vector<int64_t> all(size_t(X.rows));
  std::iota(all.begin(), all.end(), int64_t(0));
  std::vector<BlockSearch> blocks{size_t(threads)};
  std::vector<LevelSearch> searches(size_t(together ? threads : 0), LevelSearch(forest, exact, work));
  work.for_each((X.rows + size - 1) / size, threads, [&](int64_t block, int thread) {
    const int64_t begin = block * size, end = std::min(X.rows, begin + size);
    std::span<const int64_t> rows(all.data() + begin, size_t(end - begin));
    std::fill(answers.evaluations + begin, answers.evaluations + end, int64_t(0));
    if (together) rows = searches[thread].run(X, row_scale, rows, answers);
    blocks[thread].run(forest, X, row_scale, settings, rows, answers, work);
    work.add(double(end - begin) / double(X.rows));
  });
}

NomineeLists nominees(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
                      Work& work) {
  const int64_t size = block_size(X.rows, std::max(1, settings.threads), true);
  const int64_t blocks = (X.rows + size - 1) / size;
  const auto searches = nominee_searches(forest, settings, work);
  std::vector<NomineeLists> found(static_cast<size_t>(blocks));
  work.for_each(blocks, settings.threads, [&](int64_t block, int thread) {
    std::vector<int64_t> rows(size_t(std::min(size, X.rows - block * size)));
    std::iota(rows.begin(), rows.end(), block * size);
    searches[thread]->find(X, row_scale, rows, nullptr);
    for (size_t i = 0; i < rows.size(); ++i) found[size_t(block)].append(searches[thread]->of(i));
  });
  NomineeLists all;
  for (const NomineeLists& lists : found) all.append(lists);
  return all;
}

void probabilities(const Forest& forest, const CsrView& X, const float* row_scale, const SearchSettings& settings,
                   const int64_t* rows, const int32_t* labels, int64_t pairs, Work& work, float* out) {
  const std::vector<int64_t> run = runs_of(rows, pairs);
  if (forest.refined() != nullptr)
    return probabilities_of_nominees(forest, X, row_scale, settings, rows, labels, run, work, out);
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

// Searching a model whose labels have refined classifiers.
//
// What a refined classifier says counts so much that a label can be right whose probability in the trees is small. A
// search that is led by what labels could score would look at thousands of them (docs/experiments/2026-11-refined.md).
// So each tree nominates its best labels, exactly or as its beam finds them, whatever the gains; these are scored one
// by one, and so are the labels that the row has maps of its own for. All other labels have probability 0.
//
// The trees search a block of rows together (level_search.cpp). The groups of refined labels are evaluated for a block
// of rows in the order of the weights.
//
// A tree that is searched by a beam, or not to the end, may have missed labels. It says how probable they can be, m:
// what it nominates with a probability above m it would nominate anyhow; its other nominees it might not, and any other
// label it might nominate with m. So a label's probability lies between two numbers, and so does its score.
#include "search/nominees.h"

#include <algorithm>

namespace longleaf {

namespace {

constexpr float kSmallest = 1e-35f;  // a probability whose share is no 0
constexpr int kRefinedLink = 2;      // log h = -max(0, 1 - margin)^2

}  // namespace

void NomineeLists::append(std::span<const Nominee> row) {
  for (const Nominee& one : row) {
    labels.push_back(one.label);
    probabilities.push_back(one.probability);
    log_h.push_back(one.log_h);
  }
  indptr.push_back(int64_t(labels.size()));
}

void NomineeLists::append(const NomineeLists& rows) {
  for (size_t i = 1; i < rows.indptr.size(); ++i) indptr.push_back(indptr.back() + rows.indptr[i] - rows.indptr[i - 1]);
  labels.insert(labels.end(), rows.labels.begin(), rows.labels.end());
  probabilities.insert(probabilities.end(), rows.probabilities.begin(), rows.probabilities.end());
  log_h.insert(log_h.end(), rows.log_h.begin(), rows.log_h.end());
}

NomineeSearch::NomineeSearch(const Forest& forest, const SearchSettings& settings, const Work& work)
    : forest_(forest), settings_(settings), work_(work) {
  tree_settings_.k = int(std::min(int64_t(settings.union_rule ? settings.k : settings.nominees), forest.labels()));
  tree_settings_.beam = settings.resume ? 0 : settings.beam;
  tree_settings_.limits = settings.limits;
  tree_settings_.limits.epsilon = 0;  // probabilities count, not only their order
  int64_t& evaluations = tree_settings_.limits.evaluations;
  if (evaluations < Limits{}.evaluations) evaluations = 1 + (evaluations - 1) / int64_t(forest.trees().size());
  for (size_t t = 0; t < forest.trees().size(); ++t) {
    const Forest& tree = forest.single(t);
    trees_.push_back({&tree, LevelSearch(tree, tree_settings_, work), LevelSearch::serves(tree, tree_settings_)});
  }
}

void NomineeSearch::find(const CsrView& X, const float* row_scale, std::span<const int64_t> rows,
                         int64_t* evaluations) {
  if (rows.empty()) return;
  const int64_t begin = rows.front(), size = rows.back() + 1 - begin;
  const CsrView block{size, X.cols, X.indptr + begin, X.indices, X.data};
  rows_.assign(rows.begin(), rows.end());
  for (int64_t& row : rows_) row -= begin;
  if (of_row_.size() < rows.size()) of_row_.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) of_row_[i].clear();
  evaluations_.assign(size_t(size), 0);
  most_of_others_.assign(rows.size(), 0.0f);
  if (doubts_.size() < rows.size()) doubts_.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) doubts_[i].clear();
  int64_t* counts = evaluations_.data();
  for (TreeSearch& tree : trees_) nominate(tree, block, row_scale + begin, counts);
  for (size_t i = 0; i < rows.size(); ++i) {
    gather(of_row_[i], settings_.overrides.of(rows[i]));
    if (may_miss()) gather_doubts(i);
  }
  if (forest_.refined() != nullptr) evaluate_refined(block, row_scale + begin, counts);
  if (evaluations == nullptr) return;
  for (int64_t row : rows) evaluations[row] += evaluations_[size_t(row - begin)];
}

void NomineeSearch::nominate(TreeSearch& tree, const CsrView& X, const float* row_scale, int64_t* evaluations) {
  const auto k = size_t(tree_settings_.k);
  labels_.resize(size_t(X.rows) * k);
  probabilities_.resize(size_t(X.rows) * k);
  missed_.resize(size_t(X.rows));
  const Answers answers{labels_.data(), probabilities_.data(), nullptr, evaluations, missed_.data()};
  std::span<const int64_t> left = rows_;
  if (tree.together && rows_.size() > 1) left = tree.search.run(X, row_scale, left, answers);
  alone_.run(*tree.tree, X, row_scale, tree_settings_, left, answers, work_);
  const auto share = 1.0f / float(trees_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    for (size_t j = size_t(rows_[i]) * k, end = j + k; j < end && labels_[j] >= 0; ++j)
      of_row_[i].push_back({labels_[j], -1, probabilities_[j] * share, 0.0f});
    if (!may_miss()) continue;
    // What is too small for a float is a nominee all the same.
    const float log_missed = missed_[size_t(rows_[i])];
    const float missed = log_missed == kNever ? 0.0f : std::max(std::exp(log_missed), kSmallest) * share;
    most_of_others_[i] += missed;
    for (size_t j = size_t(rows_[i]) * k, end = j + k; j < end && labels_[j] >= 0; ++j) {
      const float own = probabilities_[j] * share;
      doubts_[i].push_back({labels_[j], own <= missed ? 0.0f : own, own - missed});  // beside what others may have
    }
  }
}

// Makes one nominee of each label, in order of label.
void NomineeSearch::gather(std::vector<Nominee>& nominees, const RowOverrides& overrides) const {
  for (int64_t i = 0; i < overrides.size; ++i) nominees.push_back({overrides.label[i], -1, 0.0f, 0.0f});
  std::stable_sort(nominees.begin(), nominees.end(),
                   [](const Nominee& a, const Nominee& b) { return a.label < b.label; });
  size_t kept = 0;
  for (const Nominee& one : nominees) {
    if (kept > 0 && nominees[kept - 1].label == one.label)
      nominees[kept - 1].probability += one.probability;
    else
      nominees[kept++] = one;
  }
  nominees.resize(kept);
}

void NomineeSearch::gather_doubts(size_t i) {
  std::vector<Doubt>& doubts = doubts_[i];
  if (most_of_others_[i] == 0) return doubts.clear();
  std::stable_sort(doubts.begin(), doubts.end(), [](const Doubt& a, const Doubt& b) { return a.label < b.label; });
  size_t kept = 0;
  for (const Doubt& one : doubts) {
    if (kept == 0 || doubts[kept - 1].label != one.label) {
      doubts[kept++] = {one.label, one.least, one.most + most_of_others_[i]};
      continue;
    }
    doubts[kept - 1].least += one.least;
    doubts[kept - 1].most += one.most;
  }
  doubts.resize(kept);
}

void NomineeSearch::evaluate_refined(const CsrView& X, const float* row_scale, int64_t* evaluations) {
  const Forest::Tree& refined = *forest_.refined();
  requests_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::vector<Nominee>& nominees = of_row_[i];
    for (Nominee& one : nominees)
      if (const int32_t leaf = refined.leaf[one.label]; leaf > 0) one.group = refined.parent[leaf];
    std::sort(nominees.begin(), nominees.end(), [](const Nominee& a, const Nominee& b) {
      return a.group != b.group ? a.group < b.group : a.label < b.label;
    });
    for (size_t j = 0; j < nominees.size(); ++j)
      if (nominees[j].group >= 0 && (j == 0 || nominees[j - 1].group != nominees[j].group))
        requests_.push_back({nominees[j].group, int32_t(i), j});
  }
  std::sort(requests_.begin(), requests_.end(), [](const GroupRequest& a, const GroupRequest& b) {
    return a.group != b.group ? a.group < b.group : a.row < b.row;
  });
  for (const GroupRequest& request : requests_) {
    work_.check();
    const int64_t row = rows_[size_t(request.row)];
    const int32_t first = refined.view.first_child[request.group];
    const int32_t size = refined.view.first_child[request.group + 1] - first;
    value_.resize(size_t(size));
    family_log_probabilities(refined, kRefinedLink, request.group, query_of(X, row_scale, row), 0.0f, value_.data());
    evaluations[row] += size;
    std::vector<Nominee>& nominees = of_row_[size_t(request.row)];
    for (size_t j = request.first; j < nominees.size() && nominees[j].group == request.group; ++j)
      nominees[j].log_h = value_[size_t(refined.leaf[nominees[j].label] - first)];
  }
  for (size_t i = 0; i < rows_.size(); ++i)
    std::sort(of_row_[i].begin(), of_row_[i].end(),
              [](const Nominee& a, const Nominee& b) { return a.label < b.label; });
}

}  // namespace longleaf

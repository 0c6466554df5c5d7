// Utilities, as Python calls them.
#include "bind/utility.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace nb::literals;

namespace longleaf::python {

namespace {

constexpr float kMost = 1e30f;  // so that sums of them are finite

void check_lines(const In<float>& a, const In<float>& b) {
  for (size_t j = 0; j < a.shape(0); ++j)
    if (!(std::fabs(a.data()[j]) <= kMost) || !(std::fabs(b.data()[j]) <= kMost || b.data()[j] == kNever))
      throw std::invalid_argument("a and b must be from -1e30 to 1e30; b may be -inf");
}

// Whether trees may have nothing to say about a label.
bool may_be_without(const Forest& forest, int32_t label) {
  return forest.refined() != nullptr || std::all_of(forest.trees().begin(), forest.trees().end(),
                                                    [&](const Forest::Tree& tree) { return tree.leaf[label] < 0; });
}

ScoreMap map_of(const Forest& forest, const Optional<float>& slope, const Optional<float>& offset,
                const ScoreShape& shape) {
  return slope ? checked_score_map(forest, slope, offset, 0.0f, shape, nullptr) : ScoreMap{};
}

void sort_rest(std::vector<int32_t>& rest, const std::vector<float>& b, std::vector<int32_t> fresh) {
  const auto before = [&](int32_t i, int32_t j) { return b[i] != b[j] ? b[i] > b[j] : i < j; };
  std::sort(fresh.begin(), fresh.end(), before);
  std::vector<int32_t> all(rest.size() + fresh.size());
  std::merge(rest.begin(), rest.end(), fresh.begin(), fresh.end(), all.begin(), before);
  rest = std::move(all);
}

float most_of(const std::vector<float>& values) {
  return values.empty() ? kNever : *std::max_element(values.begin(), values.end());
}

}  // namespace

PyUtility::PyUtility(const PyForest& owner, In<float> a, In<float> b, Optional<int32_t> group, Optional<int32_t> quota,
                     Optional<float> slope, Optional<float> offset, Optional<double> evidence, Optional<double> result)
    : forest_(&owner.get()) {
  const Forest& forest = *forest_;
  check_size(a, forest.labels(), "a");
  check_size(b, forest.labels(), "b");
  check_lines(a, b);
  if (group.has_value() != quota.has_value()) throw std::invalid_argument("groups must come with quotas");
  if (group) {
    check_size(*group, forest.labels(), "group");
    const auto groups = int64_t(quota->shape(0));
    if (std::any_of(group->data(), group->data() + group->shape(0), [&](int32_t g) { return g < -1 || g >= groups; }))
      throw std::invalid_argument("group must be at least -1 and below the number of quotas");
    if (std::any_of(quota->data(), quota->data() + groups, [](int32_t q) { return q < 0; }))
      throw std::invalid_argument("quota must be at least 0");
    table_.group.assign(group->data(), group->data() + group->shape(0));
    table_.quota.assign(quota->data(), quota->data() + groups);
    table_.quota.push_back(0);  // never empty
  }
  table_.shape = checked_shape(evidence, result);
  table_.a.assign(a.data(), a.data() + a.shape(0));
  table_.b.assign(b.data(), b.data() + b.shape(0));
  const ScoreMap map = map_of(forest, slope, offset, table_.shape);
  run_watched(size_t(forest.labels()) * kKnots, [&](Work& work) {
    work.run([&] {
      std::vector<int32_t> fresh;
      for (int32_t label = 0; label < forest.labels(); ++label)
        if (table_.b[label] != kNever && may_be_without(forest, label)) fresh.push_back(label);
      sort_rest(table_.rest, table_.b, std::move(fresh));
      forest.bound_utility(table_, map, work);
    });
  });
  table_.most_b = most_of(table_.b);
}

PyUtility PyUtility::with_lines(const PyForest& owner, In<int32_t> labels, In<float> a, In<float> b,
                                Optional<float> slope, Optional<float> offset) const {
  const Forest& forest = owner.get();
  of(forest);
  check_below(labels, forest.labels(), "labels");
  check_size(a, int64_t(labels.shape(0)), "a");
  check_size(b, int64_t(labels.shape(0)), "b");
  check_lines(a, b);
  PyUtility changed = *this;
  UtilityTable& table = changed.table_;
  std::vector<bool> is_changed(size_t(forest.labels()));
  std::vector<int32_t> fresh;
  for (size_t i = 0; i < labels.shape(0); ++i) {
    const int32_t label = labels.data()[i];
    table.a[label] = a.data()[i], table.b[label] = b.data()[i];
    if (is_changed[label]) continue;
    is_changed[label] = true;
    if (may_be_without(forest, label)) fresh.push_back(label);
  }
  std::erase_if(fresh, [&](int32_t label) { return table.b[label] == kNever; });
  std::erase_if(table.rest, [&](int32_t label) { return is_changed[label]; });
  sort_rest(table.rest, table.b, std::move(fresh));
  table.most_b = most_of(table.b);
  const ScoreMap map = map_of(forest, slope, offset, table.shape);
  run_watched(labels.shape(0) * kKnots * 256, [&](Work& work) {
    work.run([&] { forest.bound_utility(table, map, {labels.data(), labels.shape(0)}, work); });
  });
  return changed;
}

Utility PyUtility::of(const Forest& forest) const {
  if (forest_ != &forest) throw std::invalid_argument("a utility must be made for the model that is searched");
  return table_.view();
}

void bind_utility(nb::module_& m) {
  nb::class_<PyUtility>(m, "Utility")
      .def(nb::init<const PyForest&, In<float>, In<float>, Optional<int32_t>, Optional<int32_t>, Optional<float>,
                    Optional<float>, Optional<double>, Optional<double>>(),
           nb::keep_alive<1, 2>(), "forest"_a, "a"_a.noconvert(), "b"_a.noconvert(), nb::kw_only(),
           "group"_a.noconvert() = nb::none(), "quota"_a.noconvert() = nb::none(), "slope"_a.noconvert() = nb::none(),
           "offset"_a.noconvert() = nb::none(), "evidence"_a.noconvert() = nb::none(),
           "result"_a.noconvert() = nb::none())
      .def("with_lines", &PyUtility::with_lines, nb::keep_alive<0, 2>(), "forest"_a, "labels"_a.noconvert(),
           "a"_a.noconvert(), "b"_a.noconvert(), nb::kw_only(), "slope"_a.noconvert() = nb::none(),
           "offset"_a.noconvert() = nb::none());
}

}  // namespace longleaf::python

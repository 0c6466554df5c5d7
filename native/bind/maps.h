// Score maps and overrides as Python hands them over.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>

#include "bind/bind.h"
#include "search/search.h"

namespace longleaf::python {

template <class T>
using Optional = std::optional<In<T>>;

// Each throws std::invalid_argument, which names the argument.
ScoreShape checked_shape(const Optional<double>& evidence, const Optional<double>& result);
// bounds: null where there is nothing to search by them.
ScoreMap checked_score_map(const Forest& forest, const Optional<float>& slope, const Optional<float>& offset,
                           float refined, const ScoreShape& shape, const Optional<float>* bounds);
Overrides checked_overrides(const Forest& forest, int64_t rows, const Optional<int64_t>& indptr,
                            const Optional<int32_t>& labels, const Optional<float>& slope,
                            const Optional<float>& offset, float refined, const ScoreShape& shape);

}  // namespace longleaf::python

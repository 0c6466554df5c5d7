// Utilities as Python holds them: checked once, with their bounds for the trees of one model.
#pragma once

#include "bind/forest.h"
#include "bind/maps.h"
#include "search/utility.h"

namespace longleaf::python {

class PyUtility {
 public:
  // b: -inf where a label is not allowed. quota: per group.
  PyUtility(const PyForest& forest, In<float> a, In<float> b, Optional<int32_t> group, Optional<int32_t> quota,
            Optional<float> slope, Optional<float> offset, Optional<double> evidence, Optional<double> result);

  // The utility with other lines for some labels; the map must be the same. Only bounds above these are computed.
  PyUtility with_lines(const PyForest& forest, In<int32_t> labels, In<float> a, In<float> b, Optional<float> slope,
                       Optional<float> offset) const;

  // Throws std::invalid_argument if it was made for another model.
  Utility of(const Forest& forest) const;

 private:
  PyUtility() = default;
  const Forest* forest_ = nullptr;
  UtilityTable table_;
};

}  // namespace longleaf::python

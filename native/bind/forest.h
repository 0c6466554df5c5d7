// A model's trees, as Python holds them.
#pragma once

#include <memory>

#include "bind/bind.h"
#include "search/forest.h"

namespace longleaf::python {

// Holds the arrays of a model alive as long as the native forest borrows them.
class PyForest {
 public:
  // refined: whether the last of the trees holds the refined classifiers.
  PyForest(nb::list first_child, nb::list label, nb::list weights, int64_t features, int64_t labels, int link,
           bool refined);
  const Forest& get() const { return *forest_; }
  // A tree, or the refined classifiers, which follow the last one. Throws std::invalid_argument, which names the
  // argument, if there is no such tree.
  const Forest::Tree& tree(int64_t t, const char* name) const;

 private:
  nb::object kept_;
  std::unique_ptr<Forest> forest_;
};

// NumPy sees a word as three numbers.
inline constexpr size_t kWordNumbers = sizeof(Word) / sizeof(uint32_t);
static_assert(kWordNumbers == 3 && alignof(Word) == alignof(uint32_t));

// The arrays of a tree's weights, by their names.
nb::dict to_dict(ChunkArrays arrays);

void bind_forest_weights(nb::class_<PyForest>& forest);  // the methods that have to do with weights

}  // namespace longleaf::python

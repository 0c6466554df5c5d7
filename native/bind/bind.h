// What the binding files share. Only the files of this folder know Python.
//
// Arrays come in as borrowed views, never converted; results go out as NumPy arrays that own their buffers; the GIL is
// released while native code runs for longer than a moment, and signals are looked for every 50 ms then.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/base.h"
#include "base/buffer.h"
#include "base/parallel.h"
#include "trees/trees.h"

namespace nb = nanobind;

namespace longleaf::python {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

template <class T>
Out<T> to_numpy(std::vector<T> values, std::vector<size_t> shape = {}) {
  if (shape.empty()) shape = {values.size()};
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Out<T>(kept->data(), shape.size(), shape.data(), owner);
}

// The same of a buffer: it becomes the array without a copy.
template <class T>
Out<T> to_numpy(Buffer<T>&& buffer) {
  const size_t size = buffer.size();
  auto memory = buffer.release();
  T* data = memory.get();
  nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
  (void)memory.release();
  return Out<T>(data, 1, &size, owner);
}

// Asks Python for signals and reports progress; errors raised by either stop the work, and run() raises them.
class PythonWork {
 public:
  explicit PythonWork(nb::object progress = nb::none()) : progress_(std::move(progress)) {}

  template <class Function>
  void run(Function function) {
    std::exception_ptr failure;
    {
      const nb::gil_scoped_release release;
      Work work([this](double done) { return look(done); });
      try {
        function(work);
      } catch (...) {
        failure = std::current_exception();
      }
    }
    if (PyErr_Occurred()) throw nb::python_error();  // whatever stopped the work
    if (failure) std::rethrow_exception(failure);
  }

 private:
  bool look(double done) {
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) return false;
    if (progress_.is_none()) return true;
    PyObject* result = PyObject_CallFunction(progress_.ptr(), "d", done);
    Py_XDECREF(result);
    return result != nullptr;
  }
  nb::object progress_;
};

// Calls function(work) for work of about so many steps. Few are done at once, with the GIL held: no thread is started.
template <class Function>
void run_watched(size_t steps, Function function) {
  constexpr size_t kFew = size_t(1) << 16;
  if (steps < kFew) {
    Work work;
    function(work);
  } else {
    PythonWork().run(function);
  }
}

// Native code does not check the indices that it follows: each array is checked where it comes in. Ranges always, in
// one pass over the rows; features once, by check_csr(), when a matrix comes in, and not again for every unit of
// training.
inline void check_ranges(const In<int64_t>& indptr, size_t size, const char* name) {
  const int64_t* begin = indptr.data();
  const size_t n = indptr.shape(0);
  if (n == 0 || begin[0] != 0 || begin[n - 1] > int64_t(size) || !std::is_sorted(begin, begin + n))
    throw std::invalid_argument(std::string(name) + " must rise from 0 to at most the number of its entries");
}
inline void check_below(const In<int32_t>& indices, int64_t end, const char* name) {
  const int32_t* begin = indices.data();
  if (std::any_of(begin, begin + indices.shape(0), [&](int32_t i) { return i < 0 || i >= end; }))
    throw std::invalid_argument(std::string(name) + " must be at least 0 and below " + std::to_string(end));
}
template <class Array>
void check_size(const Array& array, int64_t size, const char* name) {
  if (int64_t(array.shape(0)) != size)
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(size) + " elements; got " +
                                std::to_string(array.shape(0)));
}
inline CsrView csr(const In<int64_t>& indptr, const In<int32_t>& indices, const float* data, int64_t cols) {
  check_ranges(indptr, indices.shape(0), "indptr");
  return {int64_t(indptr.shape(0)) - 1, cols, indptr.data(), indices.data(), data};
}
inline CsrView csr(const In<int64_t>& indptr, const In<int32_t>& indices, const In<float>& data, int64_t cols) {
  check_size(data, int64_t(indices.shape(0)), "data");
  return csr(indptr, indices, data.data(), cols);
}
inline TreeView tree_view(const In<int32_t>& first_child, const In<int32_t>& label) {
  check_size(first_child, int64_t(label.shape(0)) + 1, "first_child");
  const TreeView tree{int64_t(label.shape(0)), first_child.data(), label.data()};
  check_tree(tree, std::numeric_limits<int64_t>::max());
  return tree;
}
// Every index within its matrix, every value finite, features in order if required; the error says what was found
// otherwise.
void py_check_csr(In<int64_t> indptr, In<int32_t> indices, In<float> data, int64_t cols, const std::string& name,
                  bool in_order = false);

void bind_baselines(nb::module_& m);
void bind_phrases(nb::module_& m);
void bind_search(nb::module_& m);
void bind_text(nb::module_& m);
void bind_train(nb::module_& m);
void bind_trees(nb::module_& m);
void bind_utility(nb::module_& m);
void bind_weights(nb::module_& m);
void bind_xmlc(nb::module_& m);

}  // namespace longleaf::python

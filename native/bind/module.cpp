// The extension module.
#include <string>

#include "base/kernels.h"
#include "bind/bind.h"

using namespace nb::literals;

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // a model may well live until the interpreter ends
  m.doc() = "longleaf's native kernels";
  m.def("simd", [] { return std::string(longleaf::kernels().name); });
  longleaf::python::bind_baselines(m);
  longleaf::python::bind_phrases(m);
  longleaf::python::bind_search(m);
  longleaf::python::bind_utility(m);  // before what has utilities among its arguments
  longleaf::python::bind_text(m);
  longleaf::python::bind_train(m);
  longleaf::python::bind_trees(m);
  longleaf::python::bind_weights(m);
  longleaf::python::bind_xmlc(m);
}

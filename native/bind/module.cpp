// The extension module.
#include "bind/bind.h"

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // a model may well live until the interpreter ends
  m.doc() = "longleaf's native kernels";
  longleaf::python::bind_engine(m);
  longleaf::python::bind_ndcg(m);
  longleaf::python::bind_text(m);
  longleaf::python::bind_xmlc(m);
}

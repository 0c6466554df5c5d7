// The only file that knows Python.
#include <nanobind/nanobind.h>

NB_MODULE(_core, m) { m.doc() = "longleaf's native kernels"; }

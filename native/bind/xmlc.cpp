// Reading and writing XMLC text, as Python calls it.
#include "bind/bind.h"

#include "files/xmlc.h"

namespace longleaf::python {

namespace {

template <typename T>
std::span<const T> as_span(const In<T>& array) {
  return {array.data(), array.size()};
}

nb::tuple as_tuple(ParsedXmlc parsed) {
  auto& [x, y] = parsed;
  return nb::make_tuple(nb::make_tuple(x.n_rows, x.n_columns, y.n_columns), to_numpy(std::move(x.indptr)),
                        to_numpy(std::move(x.indices)), to_numpy(std::move(x.data)), to_numpy(std::move(y.indptr)),
                        to_numpy(std::move(y.indices)));
}

nb::tuple finish_xmlc(XmlcParser& parser) {
  return as_tuple([&] {
    nb::gil_scoped_release release;
    return parser.finish();
  }());
}

nb::bytes format_xmlc_bytes(In<int64_t> x_indptr, In<int32_t> x_indices, In<float> x_data, In<int64_t> y_indptr,
                            In<int32_t> y_indices, int64_t begin, int64_t end) {
  const CsrRows features{as_span(x_indptr), as_span(x_indices), as_span(x_data)};
  const CsrRows labels{as_span(y_indptr), as_span(y_indices), {}};
  const std::string text = [&] {
    nb::gil_scoped_release release;
    return format_xmlc(features, labels, begin, end);
  }();
  return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_xmlc(nb::module_& m) {
  nb::class_<XmlcParser>(m, "XmlcParser")
      .def(
          "__init__",
          [](XmlcParser* self, bool labelled) {
            new (self) XmlcParser(labelled ? XmlcForm::labelled : XmlcForm::plain);
          },
          nb::arg("labelled"))
      .def(
          "feed",
          [](XmlcParser& self, nb::bytes text) {
            const char* bytes = text.c_str();
            const size_t size = text.size();
            nb::gil_scoped_release release;
            self.feed(bytes, size);
          },
          nb::arg("text"))
      .def("take", [](XmlcParser& self) { return as_tuple(self.take()); })
      .def("finish", &finish_xmlc);
  m.def("format_xmlc", &format_xmlc_bytes, nb::arg("x_indptr").noconvert(), nb::arg("x_indices").noconvert(),
        nb::arg("x_data").noconvert(), nb::arg("y_indptr").noconvert(), nb::arg("y_indices").noconvert(),
        nb::arg("begin"), nb::arg("end"));
}

}  // namespace longleaf::python

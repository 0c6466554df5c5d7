// The only file that knows Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdlib>

#include "xmlc.h"

namespace nb = nanobind;
using namespace longleaf;

template <typename T>
using InputArray = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
static std::span<const T> as_span(const InputArray<T>& array) {
    return {array.data(), array.size()};
}

// The buffer becomes a NumPy array without a copy; the array owns the memory from here on.
template <typename T>
static nb::ndarray<nb::numpy, T, nb::ndim<1>> as_array(Buffer<T>&& buffer) {
    const size_t size = buffer.size();
    auto owner = buffer.release();
    T* data = owner.get();
    nb::capsule capsule(data, [](void* memory) noexcept { std::free(memory); });
    (void)owner.release();
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, capsule);
}

static nb::tuple finish_xmlc(XmlcParser& parser) {
    ParsedXmlc parsed = [&] {
        nb::gil_scoped_release release;
        return parser.finish();
    }();
    auto& [x, y] = parsed;
    return nb::make_tuple(nb::make_tuple(x.n_rows, x.n_columns, y.n_columns), as_array(std::move(x.indptr)),
                          as_array(std::move(x.indices)), as_array(std::move(x.data)),
                          as_array(std::move(y.indptr)), as_array(std::move(y.indices)));
}

static nb::bytes format_xmlc_bytes(InputArray<int64_t> x_indptr, InputArray<int32_t> x_indices, InputArray<float> x_data,
                                   InputArray<int64_t> y_indptr, InputArray<int32_t> y_indices, int64_t begin,
                                   int64_t end) {
    const CsrRows features{as_span(x_indptr), as_span(x_indices), as_span(x_data)};
    const CsrRows labels{as_span(y_indptr), as_span(y_indices), {}};
    const std::string text = [&] {
        nb::gil_scoped_release release;
        return format_xmlc(features, labels, begin, end);
    }();
    return nb::bytes(text.data(), text.size());
}

static void bind_xmlc(nb::module_& m) {
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
        .def("finish", &finish_xmlc);
    m.def("format_xmlc", &format_xmlc_bytes, nb::arg("x_indptr").noconvert(), nb::arg("x_indices").noconvert(),
          nb::arg("x_data").noconvert(), nb::arg("y_indptr").noconvert(), nb::arg("y_indices").noconvert(),
          nb::arg("begin"), nb::arg("end"));
}

NB_MODULE(_core, m) {
    m.doc() = "longleaf's native kernels";
    bind_xmlc(m);
}

// Counting words, as Python calls it.
#include "bind/bind.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "text/text.h"

namespace longleaf::python {

namespace {

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <class T>
std::span<const T> span_of(const In<T>& view) {
  return {view.data(), view.size()};
}

template <class T>
Array<T> give_away(std::unique_ptr<T[]> data, std::size_t size) {
  nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Array<T>(data.release(), {size}, owner);
}

template <class T>
Array<T> copy_of(std::span<const T> values) {
  auto data = std::make_unique_for_overwrite<T[]>(values.size());
  std::ranges::copy(values, data.get());
  return give_away(std::move(data), values.size());
}

void check_ids(const In<std::uint32_t>& ids, std::size_t end) {
  if (std::ranges::any_of(span_of(ids), [&](std::uint32_t id) { return id >= end; }))
    throw nb::value_error("ids must be those of terms that were counted.");
}

// Borrowed UTF-8 of strings that are ASCII, and of bytes, which must be UTF-8 already.
std::vector<std::string_view> borrow_texts(const nb::list& texts) {
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (nb::handle text : texts) {
    Py_ssize_t size = 0;
    char* bytes = nullptr;
    const char* data = nullptr;
    if (PyBytes_Check(text.ptr())) {
      PyBytes_AsStringAndSize(text.ptr(), &bytes, &size);
      data = bytes;
    } else {
      data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    }
    if (data == nullptr) throw nb::python_error();
    views.emplace_back(data, static_cast<std::size_t>(size));
  }
  return views;
}

}  // namespace

void bind_text(nb::module_& m) {
  using Pair = std::pair<int, int>;

  nb::class_<Vocabulary>(m, "Vocabulary")
      .def(
          "__init__",
          [](Vocabulary* self, In<std::uint8_t> bytes, In<std::int64_t> offsets) {
            const std::span<const char> characters{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
            run_watched(offsets.size(), [&](Work& work) {
              work.run([&] { new (self) Vocabulary(characters, span_of(offsets), work); });
            });
          },
          nb::arg("bytes").noconvert(), nb::arg("offsets").noconvert())
      .def("__len__", &Vocabulary::size);

  nb::class_<TextCounter>(m, "TextCounter")
      .def(
          "__init__",
          [](TextCounter* self, In<std::uint32_t> characters, int analyzer, Pair ngrams, Pair extra_ngrams,
             std::uint32_t hashing, std::shared_ptr<const Vocabulary> fixed, int n_threads, bool keep_rows) {
            if (characters.size() != kCodePoints) throw nb::value_error("characters must have 1114112 entries.");
            const TextOptions options{
                Analyzer(analyzer), {ngrams.first, ngrams.second}, {extra_ngrams.first, extra_ngrams.second}, hashing};
            new (self) TextCounter(options, span_of(characters), std::move(fixed), n_threads, keep_rows);
          },
          nb::arg("characters").noconvert(), nb::arg("analyzer"), nb::arg("ngrams"), nb::arg("extra_ngrams"),
          nb::arg("hashing"), nb::arg("fixed").none(), nb::arg("n_threads"), nb::arg("keep_rows"),
          nb::keep_alive<1, 2>())
      .def(
          "add",
          [](TextCounter& self, const nb::list& texts) {
            const auto views = borrow_texts(texts);
            std::size_t bytes = 0;
            for (const auto& view : views) bytes += view.size();
            run_watched(bytes, [&](Work& work) { self.add(views, work); });
          },
          nb::arg("texts"))
      .def_prop_ro("n_rows", &TextCounter::n_rows)
      .def("merge",
           [](TextCounter& self) {
             run_watched(self.size(), [&](Work& work) { self.merge(work); });
             return std::pair(copy_of(self.document_frequency()), copy_of(self.term_frequency()));
           })
      .def(
          "sort",
          [](const TextCounter& self, In<std::uint32_t> ids) {
            check_ids(ids, self.vocabulary().size());
            auto sorted = std::make_unique_for_overwrite<std::uint32_t[]>(ids.size());
            std::ranges::copy(span_of(ids), sorted.get());
            run_watched(ids.size(), [&](Work& work) { self.sort({sorted.get(), ids.size()}, work); });
            return give_away(std::move(sorted), ids.size());
          },
          nb::arg("ids").noconvert())
      .def(
          "terms",
          [](const TextCounter& self, In<std::uint32_t> ids) {
            check_ids(ids, self.vocabulary().size());
            std::vector<std::int64_t> offsets{0};
            for (const auto id : span_of(ids))
              offsets.push_back(offsets.back() + static_cast<std::int64_t>(self.vocabulary()[id].size()));
            const auto size = static_cast<std::size_t>(offsets.back());
            auto bytes = std::make_unique_for_overwrite<std::uint8_t[]>(size);
            auto* out = bytes.get();
            for (const auto id : span_of(ids)) out = std::ranges::copy(self.vocabulary()[id], out).out;
            return std::pair(give_away(std::move(bytes), size), copy_of(std::span<const std::int64_t>(offsets)));
          },
          nb::arg("ids").noconvert())
      .def(
          "rows",
          [](TextCounter& self, In<std::int32_t> columns, In<float> weights, bool sublinear, int norm) {
            // the column of every id, or the ids are columns; a weight per column
            const bool fits = columns.size() == 0 || columns.size() >= self.n_ids();
            const auto last = columns.size() == 0 ? static_cast<std::int64_t>(self.n_ids()) - 1
                                                  : std::int64_t(*std::ranges::max_element(span_of(columns)));
            if (!fits || last >= static_cast<std::int64_t>(weights.size()))
              throw nb::value_error("columns must have an element per id, and weights one per column.");
            TextRows rows;
            run_watched(self.size(), [&](Work& work) {
              rows = self.rows({span_of(columns), span_of(weights), sublinear, Norm(norm)}, work);
            });
            const auto n_rows = static_cast<std::size_t>(rows.n_rows);
            const auto n_entries = static_cast<std::size_t>(rows.n_entries);
            return nb::make_tuple(give_away(std::move(rows.data), n_entries),
                                  give_away(std::move(rows.indices), n_entries),
                                  give_away(std::move(rows.indptr), n_rows + 1));
          },
          nb::arg("columns").noconvert(), nb::arg("weights").noconvert(), nb::arg("sublinear"), nb::arg("norm"));
}

}  // namespace longleaf::python

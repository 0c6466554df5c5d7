// Counting words, as Python calls it.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "bind/texts.h"
#include "text/stem_table.h"
#include "text/text.h"

namespace longleaf::python {

namespace {

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

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

  m.def(
      "distinct_words",
      [](const nb::list& texts, const In<std::uint32_t>& characters) {
        if (characters.size() != kCodePoints) throw nb::value_error("characters must have 1114112 entries.");
        const auto views = borrow_texts(texts);
        Vocabulary words;
        run_watched(total_bytes(views),
                    [&](Work& work) { work.run([&] { words = distinct_words(views, span_of(characters), work); }); });
        nb::list found;
        for (std::uint32_t id = 0; id < words.size(); ++id) found.append(nb::bytes(words[id].data(), words[id].size()));
        return found;
      },
      nb::arg("texts"), nb::arg("characters").noconvert());

  nb::class_<StemTable>(m, "StemTable")
      .def(
          "__init__",
          [](StemTable* self, const nb::list& words, const nb::list& stems, In<std::uint32_t> languages) {
            std::vector<std::vector<std::string_view>> by_language;
            for (nb::handle own : stems) by_language.push_back(borrow_texts(nb::cast<nb::list>(own)));
            new (self) StemTable(borrow_texts(words), by_language, span_of(languages));
          },
          nb::arg("words"), nb::arg("stems"), nb::arg("languages").noconvert())
      .def("__len__", &StemTable::n_records);

  nb::class_<TextCounter>(m, "TextCounter")
      .def(
          "__init__",
          [](TextCounter* self, In<std::uint32_t> characters, int analyzer, Pair ngrams, Pair extra_ngrams,
             std::uint32_t hashing, std::uint32_t fields, std::shared_ptr<const Vocabulary> fixed, int n_threads,
             bool keep_rows) {
            if (fields < 1) throw nb::value_error("fields must be at least 1.");
            if (characters.size() != kCodePoints) throw nb::value_error("characters must have 1114112 entries.");
            const TextOptions options{Analyzer(analyzer),
                                      {ngrams.first, ngrams.second},
                                      {extra_ngrams.first, extra_ngrams.second},
                                      hashing,
                                      fields};
            new (self) TextCounter(options, span_of(characters), std::move(fixed), n_threads, keep_rows);
          },
          nb::arg("characters").noconvert(), nb::arg("analyzer"), nb::arg("ngrams"), nb::arg("extra_ngrams"),
          nb::arg("hashing"), nb::arg("fields"), nb::arg("fixed").none(), nb::arg("n_threads"), nb::arg("keep_rows"),
          nb::keep_alive<1, 2>())
      .def(
          "add",
          [](TextCounter& self, const nb::list& texts, const StemTable* stems) {
            const auto views = borrow_texts(texts);
            run_watched(total_bytes(views), [&](Work& work) { self.add(views, stems, work); });
          },
          nb::arg("texts"), nb::arg("stems").none() = nb::none())
      .def_prop_ro("n_rows", &TextCounter::n_rows)
      .def("merge",
           [](TextCounter& self) {
             run_watched(self.size(), [&](Work& work) { self.merge(work); });
             return std::pair(copy_of(self.document_frequency()), copy_of(self.term_frequency()));
           })
      .def("extra",
           [](const TextCounter& self) {  // for every id, whether it is an n-gram beside the words
             const std::size_t size = self.vocabulary().size();
             auto extra = std::make_unique_for_overwrite<bool[]>(size);
             for (std::size_t id = 0; id < size; ++id) extra[id] = self.is_extra(static_cast<std::uint32_t>(id));
             return give_away(std::move(extra), size);
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
          [](TextCounter& self, In<std::int32_t> columns, In<float> weights, In<float> fields, bool sublinear,
             int norm) {
            // the column of every id, or the ids are columns; a weight per column
            const bool fits = columns.size() == 0 || columns.size() >= self.n_ids();
            const auto last = columns.size() == 0 ? static_cast<std::int64_t>(self.n_ids()) - 1
                                                  : std::int64_t(*std::ranges::max_element(span_of(columns)));
            if (!fits || last >= static_cast<std::int64_t>(weights.size()))
              throw nb::value_error("columns must have an element per id, and weights one per column.");
            if (fields.size() != self.n_fields()) throw nb::value_error("fields must have a weight per field.");
            TextRows rows;
            run_watched(self.size(), [&](Work& work) {
              rows = self.rows({span_of(columns), span_of(weights), span_of(fields), sublinear, Norm(norm)}, work);
            });
            const auto n_rows = static_cast<std::size_t>(rows.n_rows);
            const auto n_entries = static_cast<std::size_t>(rows.n_entries);
            return nb::make_tuple(give_away(std::move(rows.data), n_entries),
                                  give_away(std::move(rows.indices), n_entries),
                                  give_away(std::move(rows.indptr), n_rows + 1));
          },
          nb::arg("columns").noconvert(), nb::arg("weights").noconvert(), nb::arg("fields").noconvert(),
          nb::arg("sublinear"), nb::arg("norm"));
}

}  // namespace longleaf::python

// Finding names of tags, as Python calls it.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "bind/texts.h"
#include "text/near.h"
#include "text/phrases.h"

namespace longleaf::python {

namespace {

using Characters = In<std::uint32_t>;

std::span<const std::uint32_t> check_table(const Characters& characters) {
  if (characters.size() != kCodePoints) throw nb::value_error("characters must have 1114112 entries.");
  return span_of(characters);
}

void check_codes(std::size_t codes, std::span<const std::int32_t> labels, std::size_t rows, std::int64_t columns,
                 std::int64_t most) {
  if (columns < kCodesAtOnce || columns > kMostCodeColumns || columns % kCodesAtOnce != 0)
    throw nb::value_error("columns must be a multiple of 16, and at most 4096.");
  if (codes != labels.size() * std::size_t(columns) || rows % std::size_t(columns) != 0)
    throw nb::value_error("codes and rows must have as many columns as given.");
  if (most < 1) throw nb::value_error("most must be at least 1.");
  if (!std::ranges::is_sorted(labels) || (!labels.empty() && labels.front() < 0))
    throw nb::value_error("labels must ascend from 0.");
}

}  // namespace

void bind_phrases(nb::module_& m) {
  m.def(
      "phrase_texts",
      [](const nb::list& names, const Characters& characters) {
        const auto views = borrow_texts(names);
        const auto table = check_table(characters);
        PhraseTexts texts;
        run_watched(total_bytes(views) + views.size(),
                    [&](Work& work) { work.run([&] { texts = phrase_texts(views, table, work); }); });
        return std::tuple(to_numpy(std::move(texts.bytes)), to_numpy(std::move(texts.offsets)),
                          to_numpy(std::move(texts.phrases)));
      },
      nb::arg("names"), nb::arg("characters").noconvert());

  m.def(
      "nearest_labels",
      [](In<std::int8_t> codes, In<std::int32_t> labels, In<std::int8_t> rows, std::int64_t columns, std::int64_t most,
         int n_threads) {
        check_codes(codes.size(), span_of(labels), rows.size(), columns, most);
        const NameCodes names{span_of(codes), span_of(labels), columns};
        NearLabels found;
        run_watched(codes.size() / std::size_t(columns) * (rows.size() / std::size_t(columns)),
                    [&](Work& work) { found = nearest_labels(names, span_of(rows), most, n_threads, work); });
        return std::tuple(to_numpy(std::move(found.indptr)), to_numpy(std::move(found.labels)),
                          to_numpy(std::move(found.products)));
      },
      nb::arg("codes").noconvert(), nb::arg("labels").noconvert(), nb::arg("rows").noconvert(), nb::arg("columns"),
      nb::arg("most"), nb::arg("n_threads"));

  nb::class_<PhraseIndex>(m, "PhraseIndex")
      .def(
          "__init__",
          [](PhraseIndex* self, In<std::uint8_t> bytes, In<std::int64_t> offsets) {
            const std::span characters(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            run_watched(bytes.size() + offsets.size(), [&](Work& work) {
              work.run([&] { new (self) PhraseIndex(characters, span_of(offsets), work); });
            });
          },
          nb::arg("bytes").noconvert(), nb::arg("offsets").noconvert())
      .def("__len__", &PhraseIndex::size)
      .def(
          "find",
          [](const PhraseIndex& self, const nb::list& texts, std::size_t n_fields, const Characters& characters,
             int n_threads) {
            if (n_fields == 0 || texts.size() % n_fields != 0)
              throw nb::value_error("texts must be whole records of n_fields, which must be at least 1.");
            const auto views = borrow_texts(texts);
            const auto table = check_table(characters);
            PhraseMatches found(0);
            run_watched(total_bytes(views) + views.size(),
                        [&](Work& work) { found = self.find(views, n_fields, table, n_threads, work); });
            return std::tuple(to_numpy(std::move(found.indptr)), to_numpy(std::move(found.phrases)),
                              to_numpy(std::move(found.in_first)), to_numpy(std::move(found.counts)),
                              to_numpy(std::move(found.positions)), to_numpy(std::move(found.n_words)));
          },
          nb::arg("texts"), nb::arg("n_fields"), nb::arg("characters").noconvert(), nb::arg("n_threads"));
}

}  // namespace longleaf::python

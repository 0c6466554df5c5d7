// Finding names of tags, as Python calls it.
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "bind/texts.h"
#include "text/phrases.h"

namespace longleaf::python {

namespace {

using Characters = In<std::uint32_t>;

std::span<const std::uint32_t> check_table(const Characters& characters) {
  if (characters.size() != kCodePoints) throw nb::value_error("characters must have 1114112 entries.");
  return span_of(characters);
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

// The stems of the words in a batch of texts, in one language or several. Knows bytes, not Python.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "text/analyzer.h"
#include "text/vocabulary.h"

namespace longleaf {

inline constexpr std::size_t kMostLanguages = 32;

// The distinct words of some texts, in order of arrival.
Vocabulary distinct_words(std::span<const std::string_view> texts, std::span<const std::uint32_t> characters,
                          const Work& work);

class StemTable {
 public:
  // stems[l][i] is the stem of words[i] in language l; bit l of languages[r] says whether record r is in it.
  StemTable(std::span<const std::string_view> words, std::span<const std::vector<std::string_view>> stems,
            std::span<const std::uint32_t> languages);
  std::size_t n_records() const { return languages_.size(); }

  // Calls emit(std::string_view) for every distinct stem of a word in the languages of a record, kStemMark first.
  template <class Emit>
  void stems(std::string_view word, std::size_t record, Emit&& emit) const {
    const std::uint32_t id = words_.find(word);
    if (id == Vocabulary::absent) return;
    const std::uint32_t* own = &stem_[id * n_languages_];
    for (std::size_t l = 0; l < n_languages_; ++l) {
      if (!(languages_[record] >> l & 1)) continue;
      bool repeated = false;
      for (std::size_t before = 0; before < l; ++before)
        repeated |= (languages_[record] >> before & 1) && own[before] == own[l];
      if (!repeated) emit(stems_[own[l]]);
    }
  }

 private:
  std::size_t n_languages_;
  Vocabulary words_, stems_;
  std::vector<std::uint32_t> stem_;  // by word and language
  std::vector<std::uint32_t> languages_;
};

}  // namespace longleaf

#include "text/stem_table.h"

#include <stdexcept>

namespace longleaf {

Vocabulary distinct_words(std::span<const std::string_view> texts, std::span<const std::uint32_t> characters,
                          const Work& work) {
  TextAnalyzer analyzer({Analyzer::word, {1, 1}, {0, 0}, 0, 1}, characters);
  Vocabulary words;
  for (const std::string_view text : texts) {
    work.check();
    analyzer.analyze(text, [&](std::string_view word) {
      work.check();
      words.find_or_add(word);
    });
  }
  return words;
}

StemTable::StemTable(std::span<const std::string_view> words, std::span<const std::vector<std::string_view>> stems,
                     std::span<const std::uint32_t> languages)
    : n_languages_(stems.size()), languages_(languages.begin(), languages.end()) {
  if (n_languages_ == 0 || n_languages_ > kMostLanguages)
    throw std::invalid_argument("stems must be in 1 to 32 languages");
  for (const auto& own : stems)
    if (own.size() != words.size()) throw std::invalid_argument("there must be a stem for every word");
  std::string marked;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words_.find_or_add(words[i]) != i) throw std::invalid_argument("words must differ");
    for (std::size_t l = 0; l < n_languages_; ++l) {
      marked.assign(1, kStemMark).append(stems[l][i]);
      stem_.push_back(stems_.find_or_add(marked));
    }
  }
}

}  // namespace longleaf

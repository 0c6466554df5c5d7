// Names of tags, found where they stand in records. Knows bytes and arrays, not Python.
//
// Problem: which of very many names stand in a record of a few fields, how often, and where first.
// Given:   phrases, which are names as their stemmed words joined by single spaces; texts in UTF-8.
// Out:     per record the phrases in it, ascending, in CSR form.
//
// Each phrase is listed once, by its rarest word: the one that the fewest phrases have (of those the first in order of
// code points). Every word of a text is looked up once, and the phrases listed by it are compared word by word with
// what stands around it. Common words list few phrases, so the work grows with the text and what is found in it, not
// with the number of phrases.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "text/analyzer.h"
#include "text/vocabulary.h"

namespace longleaf {

struct PhraseTexts {
  std::vector<std::uint8_t> bytes;    // of the phrases, in order of their first names
  std::vector<std::int64_t> offsets;  // where each phrase begins, and the end of the last
  std::vector<std::int32_t> phrases;  // of every name; -1 if there is no word in it
};

// Names whose stemmed words are the same are one phrase. `characters` is the table of the TextAnalyzer.
PhraseTexts phrase_texts(std::span<const std::string_view> names, std::span<const std::uint32_t> characters,
                         const Work& work);

struct PhraseMatches {
  explicit PhraseMatches(std::size_t n_records) : indptr(n_records + 1), n_words(n_records) {}

  std::vector<std::int64_t> indptr;  // of the records; what follows has an element per phrase in a record
  std::vector<std::int32_t> phrases;
  std::vector<std::int32_t> in_first;   // how often it stands in the first field
  std::vector<std::int32_t> counts;     // and in all fields
  std::vector<std::int32_t> positions;  // words of the record before it
  std::vector<std::int32_t> n_words;    // of every record
};

class PhraseIndex {
 public:
  // Phrase i is bytes[offsets[i] .. offsets[i + 1]), as of phrase_texts(); what it cannot have returned is refused.
  PhraseIndex(std::span<const char> bytes, std::span<const std::int64_t> offsets, const Work& work);
  std::size_t size() const { return begins_.size() - 1; }

  // Record i is texts[i * n_fields .. (i + 1) * n_fields). No phrase goes on from one field into the next. The result
  // does not depend on the number of threads.
  PhraseMatches find(std::span<const std::string_view> texts, std::size_t n_fields,
                     std::span<const std::uint32_t> characters, int n_threads, Work& work) const;

 private:
  struct Listed {
    std::uint32_t phrase, place;  // of the word in the phrase
  };
  struct Found {
    std::int32_t phrase, in_first, count, position;
  };
  struct Reader {
    TextAnalyzer analyzer;
    std::vector<std::uint32_t> words;  // of the record at hand
    std::vector<Found> found;          // in it
  };
  void split(std::span<const char> bytes, std::span<const std::int64_t> offsets, const Work& work);
  void list(const Work& work);
  std::span<const std::uint32_t> words(std::size_t phrase) const {
    return std::span(words_).subspan(begins_[phrase], begins_[phrase + 1] - begins_[phrase]);
  }
  void read(Reader& reader, std::span<const std::string_view> fields, const Work& work) const;
  void match(Reader& reader, std::size_t begin, bool first, const Work& work) const;
  static void merge(std::vector<Found>& found);

  Vocabulary vocabulary_;
  std::vector<std::uint32_t> words_;         // of all phrases, by their numbers in the vocabulary
  std::vector<std::size_t> begins_;          // of every phrase in it, and the end of the last
  std::vector<Listed> listed_;               // every phrase, by its rarest word
  std::vector<std::uint32_t> listed_begin_;  // of every word in it, and the end of the last
};

}  // namespace longleaf

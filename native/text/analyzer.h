// One text in, its terms out: words, characters, and n-grams of either. Knows bytes, not Python.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longleaf {

// An entry of the character table: the mapped code point in the low bits, and what kind of character that is.
inline constexpr std::uint32_t kCodePoint = (1u << 21) - 1, kWord = 1u << 21, kSpace = 1u << 22;
inline constexpr std::size_t kCodePoints = 0x110000;

enum class Analyzer : int { word, character, character_in_words };

struct NgramRange {
  int low, high;  // both inclusive; 0, 0 is none
};

struct TextOptions {
  Analyzer analyzer;
  NgramRange ngrams;
  NgramRange extra_ngrams;  // of characters through the words, beside them: their terms start with kExtraMark
  std::uint32_t hashing;    // number of columns; 0 counts by vocabulary
  std::uint32_t fields;     // texts of a record, which come one after another and make one row
};

inline constexpr std::size_t kShortestWord = 2;  // characters
// What the terms of pieces of words start with; no word characters, so no word starts with them.
inline constexpr char kExtraMark = '~', kStemMark = '^';

class TextAnalyzer {
 public:
  TextAnalyzer(const TextOptions& options, std::span<const std::uint32_t> characters)
      : options_(options), characters_(characters) {}

  // Calls emit(std::string_view) for every term of the text, a piece of valid UTF-8 (lone surrogates may
  // stand in it as three bytes each). The view is good during that call only. So it is of words().
  template <class Emit>
  void analyze(std::string_view text, Emit&& emit) {
    if (options_.analyzer == Analyzer::word) {
      split_words(text, kShortestWord);
      word_ngrams(emit);
    } else if (options_.analyzer == Analyzer::character) {
      split_characters(text);
      for (std::size_t n = options_.ngrams.low; n <= longest(positions_.size() - 1); ++n)
        for (std::size_t i = 0; i + n < positions_.size(); ++i) emit(characters(i, i + n));
    } else {
      split_padded_words(text);
      padded_ngrams(options_.ngrams, emit);
    }
    if (options_.extra_ngrams.high > 0) extra_ngrams(text, emit);
  }

  // The words of the text that was analyzed last, where terms are n-grams of words.
  template <class Emit>
  void same_words(Emit&& emit) const {
    for (const auto& [begin, end] : words_) emit(std::string_view(buffer_.data() + begin, end - begin));
  }

  // The words of the text, those of a single character too.
  template <class Emit>
  void words(std::string_view text, Emit&& emit) {
    split_words(text, 1);
    for (const auto& [begin, end] : words_) emit(std::string_view(buffer_.data() + begin, end - begin));
  }

 private:
  struct Range {
    std::size_t begin, end;
  };
  void split_words(std::string_view text, std::size_t shortest);
  void split_characters(std::string_view text);
  void split_padded_words(std::string_view text);

  // No n-gram is longer than the text, however long it may be.
  std::size_t longest(std::size_t text) const { return std::min<std::size_t>(options_.ngrams.high, text); }

  std::string_view characters(std::size_t begin, std::size_t end) const {
    return {buffer_.data() + positions_[begin], positions_[end] - positions_[begin]};
  }

  template <class Emit>
  void word_ngrams(Emit&& emit) const {
    for (std::size_t n = options_.ngrams.low; n <= longest(words_.size()); ++n)
      for (std::size_t i = 0; i + n <= words_.size(); ++i)
        emit(std::string_view(buffer_.data() + words_[i].begin, words_[i + n - 1].end - words_[i].begin));
  }

  // A word shorter than n stands for itself, once, and has no longer n-grams: scikit-learn's "char_wb".
  template <class Emit>
  void padded_ngrams(NgramRange range, Emit&& emit) const {
    for (const auto& [begin, end] : words_)
      for (std::size_t n = range.low; n <= static_cast<std::size_t>(range.high); ++n) {
        if (begin + n >= end) {
          emit(characters(begin, end));
          break;
        }
        for (std::size_t i = begin; i + n <= end; ++i) emit(characters(i, i + n));
      }
  }

  // N-grams of all words, which a single space separates, begins and ends: so they also say which words are neighbours.
  template <class Emit>
  void extra_ngrams(std::string_view text, Emit&& emit) {
    if (options_.analyzer != Analyzer::word) split_words(text, kShortestWord);
    join_words();
    const std::size_t longest = std::min<std::size_t>(options_.extra_ngrams.high, positions_.size() - 1);
    for (std::size_t n = options_.extra_ngrams.low; n <= longest; ++n)
      for (std::size_t i = 0; i + n < positions_.size(); ++i) {
        marked_.assign(1, kExtraMark).append(joined_, positions_[i], positions_[i + n] - positions_[i]);
        emit(std::string_view(marked_));
      }
  }
  void join_words();

  TextOptions options_;
  std::span<const std::uint32_t> characters_;
  std::vector<char> buffer_;            // the mapped text
  std::vector<Range> words_;            // bytes of the buffer, one byte apart; or positions, if padded
  std::vector<std::size_t> positions_;  // of every character in the buffer, and the end of the last
  std::string joined_, marked_;
};

}  // namespace longleaf

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
  NgramRange extra_ngrams;  // of characters in words, beside the words: their terms start with kExtraMark
  std::uint32_t hashing;    // number of columns; 0 counts by vocabulary
};

inline constexpr char kExtraMark = '~';  // no word character, so no word starts with it

class TextAnalyzer {
 public:
  TextAnalyzer(const TextOptions& options, std::span<const std::uint32_t> characters)
      : options_(options), characters_(characters) {}

  // Calls emit(std::string_view) for every term of the text, a piece of valid UTF-8 (lone surrogates may
  // stand in it as three bytes each). The view is good during that call only.
  template <class Emit>
  void analyze(std::string_view text, Emit&& emit) {
    if (options_.analyzer == Analyzer::word) {
      split_words(text);
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

 private:
  struct Range {
    std::size_t begin, end;
  };
  void split_words(std::string_view text);
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

  template <class Emit>
  void extra_ngrams(std::string_view text, Emit&& emit) {
    split_padded_words(text);
    padded_ngrams(options_.extra_ngrams, [&](std::string_view term) {
      marked_.assign(1, kExtraMark).append(term);
      emit(std::string_view(marked_));
    });
  }

  TextOptions options_;
  std::span<const std::uint32_t> characters_;
  std::vector<char> buffer_;            // the mapped text
  std::vector<Range> words_;            // bytes of the buffer, one byte apart; or positions, if padded
  std::vector<std::size_t> positions_;  // of every character in the buffer, and the end of the last
  std::string marked_;
};

}  // namespace longleaf

#include "text/analyzer.h"

namespace longleaf {
namespace {

using Bytes = const unsigned char*;

std::uint32_t decode(Bytes& at) {  // a character of two bytes or more
  const std::uint32_t first = *at++;
  auto next = [&] { return *at++ & 0x3fu; };
  if (first < 0xe0) return (first & 0x1fu) << 6 | next();
  std::uint32_t code = first < 0xf0 ? first & 0x0fu : (first & 0x07u) << 6 | next();
  code = code << 6 | next();
  return code << 6 | next();
}

char* encode(std::uint32_t code, char* out) {
  if (code < 0x80) {
    *out++ = static_cast<char>(code);
    return out;
  }
  if (code < 0x800) {
    *out++ = static_cast<char>(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      *out++ = static_cast<char>(0xe0 | code >> 12);
    } else {
      *out++ = static_cast<char>(0xf0 | code >> 18);
      *out++ = static_cast<char>(0x80 | (code >> 12 & 0x3f));
    }
    *out++ = static_cast<char>(0x80 | (code >> 6 & 0x3f));
  }
  *out++ = static_cast<char>(0x80 | (code & 0x3f));
  return out;
}

// Mapping turns a byte into one byte (ASCII stays ASCII) and a longer character into four at most: twice the
// bytes are enough, and for the spaces around single letters too.
std::size_t buffer_bytes(std::string_view text) { return 2 * text.size() + 4; }

}  // namespace

// Words are the longest runs of so many or more word characters: for two the pattern (?u)\b\w\w+\b.
void TextAnalyzer::split_words(std::string_view text, std::size_t shortest) {
  words_.clear();
  if (buffer_.size() < buffer_bytes(text)) buffer_.resize(buffer_bytes(text));
  const std::uint32_t* table = characters_.data();
  auto at = reinterpret_cast<Bytes>(text.data());
  const Bytes end = at + text.size();
  char* const base = buffer_.data();
  char* word = base;
  while (at < end) {
    char* out = word;
    std::size_t length = 0;
    while (at < end) {
      const bool ascii = *at < 0x80;
      const std::uint32_t character = ascii ? table[*at++] : table[decode(at)];
      if (!(character & kWord)) break;
      ++length;
      if (ascii)
        *out++ = static_cast<char>(character);
      else
        out = encode(character & kCodePoint, out);
    }
    if (length < shortest) continue;
    words_.push_back({static_cast<std::size_t>(word - base), static_cast<std::size_t>(out - base)});
    *out++ = ' ';
    word = out;
  }
}

// All characters, with runs of two or more white-space characters as one space.
void TextAnalyzer::split_characters(std::string_view text) {
  positions_.clear();
  if (buffer_.size() < buffer_bytes(text)) buffer_.resize(buffer_bytes(text));
  auto at = reinterpret_cast<Bytes>(text.data());
  const Bytes end = at + text.size();
  char* const base = buffer_.data();
  char* out = base;
  bool after_space = false;
  while (at < end) {
    const std::uint32_t character = *at < 0x80 ? characters_[*at++] : characters_[decode(at)];
    const bool space = character & kSpace;
    if (space && after_space) {
      out = base + positions_.back();
      *out++ = ' ';
    } else {
      positions_.push_back(static_cast<std::size_t>(out - base));
      out = encode(character & kCodePoint, out);
    }
    after_space = space;
  }
  positions_.push_back(static_cast<std::size_t>(out - base));
}

// What white space separates, each with a space on both sides.
void TextAnalyzer::split_padded_words(std::string_view text) {
  words_.clear();
  positions_.clear();
  if (buffer_.size() < buffer_bytes(text)) buffer_.resize(buffer_bytes(text));
  auto at = reinterpret_cast<Bytes>(text.data());
  const Bytes end = at + text.size();
  char* const base = buffer_.data();
  char* out = base;
  auto push = [&](std::uint32_t code) {
    positions_.push_back(static_cast<std::size_t>(out - base));
    out = encode(code, out);
  };
  bool inside = false;
  std::size_t begin = 0;
  auto close = [&] {
    push(' ');
    words_.push_back({begin, positions_.size()});
    inside = false;
  };
  while (at < end) {
    const std::uint32_t character = *at < 0x80 ? characters_[*at++] : characters_[decode(at)];
    if (character & kSpace) {
      if (inside) close();
      continue;
    }
    if (!inside) {
      begin = positions_.size();
      push(' ');
      inside = true;
    }
    push(character & kCodePoint);
  }
  if (inside) close();
  positions_.push_back(static_cast<std::size_t>(out - base));
}

// The words with a space before, between and after them; nothing without a word.
void TextAnalyzer::join_words() {
  joined_.clear();
  positions_.clear();
  for (const auto& [begin, end] : words_) joined_.append(1, ' ').append(buffer_.data() + begin, end - begin);
  if (!words_.empty()) joined_.push_back(' ');
  for (std::size_t i = 0; i < joined_.size(); ++i)
    if ((static_cast<unsigned char>(joined_[i]) & 0xc0) != 0x80) positions_.push_back(i);
  positions_.push_back(joined_.size());
}

}  // namespace longleaf

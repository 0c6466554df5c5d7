// A stem that needs no language. Knows bytes, not Python.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace longleaf {

// What is left of a lower-case word in UTF-8 without the ending of an inflected form, as German and English have most
// of: -ern, -em, -en, -er or -es of six characters or more, otherwise -e, -n or -s of five or more.
inline std::string_view light_stem(std::string_view word) {
  const auto length = std::ranges::count_if(word, [](char byte) { return (byte & 0xc0) != 0x80; });
  if (length >= 6)
    for (const std::string_view ending : {"ern", "em", "en", "er", "es"})
      if (word.ends_with(ending)) return word.substr(0, word.size() - ending.size());
  const bool ends = word.ends_with('e') || word.ends_with('n') || word.ends_with('s');
  return word.substr(0, word.size() - std::size_t(length >= 5 && ends));
}

}  // namespace longleaf

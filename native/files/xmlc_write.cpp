// The writer of the XMLC repository's text files.
#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "files/xmlc.h"

namespace longleaf {
namespace {

template <typename Number>
void append(std::string& text, Number number) {
  char digits[32];  // a float takes at most 15 characters, an int32 11
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// The indices of one row, checked, so that arrays that do not fit together are refused and not read past.
std::span<const int32_t> row_of(const CsrRows& rows, int64_t row) {
  const int64_t begin = rows.indptr[static_cast<size_t>(row)], end = rows.indptr[static_cast<size_t>(row) + 1];
  if (begin < 0 || end < begin || end > static_cast<int64_t>(rows.indices.size()))
    throw std::invalid_argument("indptr must rise from 0 to the number of indices");
  return rows.indices.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

}  // namespace

std::string format_xmlc(const CsrRows& features, const CsrRows& labels, int64_t begin, int64_t end) {
  const auto n_rows = static_cast<int64_t>(std::min(features.indptr.size(), labels.indptr.size())) - 1;
  if (begin < 0 || end < begin || end > n_rows) throw std::invalid_argument("rows must lie inside both matrices");
  if (features.data.size() != features.indices.size())
    throw std::invalid_argument("indices and data must have the same size");
  std::string text;
  for (int64_t row = begin; row < end; ++row) {
    const char* comma = "";
    for (const int32_t label : row_of(labels, row)) {
      text += comma;
      append(text, label);
      comma = ",";
    }
    const auto indices = row_of(features, row);
    const float* value = features.data.data() + features.indptr[static_cast<size_t>(row)];
    for (const int32_t feature : indices) {
      text += ' ';
      append(text, feature);
      text += ':';
      append(text, *value++);
    }
    text += '\n';
  }
  return text;
}

}  // namespace longleaf

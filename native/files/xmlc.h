// Reading and writing sparse text files in the form of the XMLC repository.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/buffer.h"

namespace longleaf {

// A sparse matrix in row order; rows sorted, no column twice. `data` stays empty for labels.
struct ParsedMatrix {
  int64_t n_rows = 0;
  int64_t n_columns = 0;
  Buffer<int64_t> indptr;
  Buffer<int32_t> indices;
  Buffer<float> data;
};

struct ParsedXmlc {
  ParsedMatrix features;
  ParsedMatrix labels;
};

// What is wrong and where: "line 17: feature 7 is out of range; the header says 3 features."
struct XmlcError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// The files' two forms: with labels (header `rows features labels`) and without (header `rows columns`).
enum class XmlcForm { labelled, plain };

// Takes the file in pieces cut anywhere; holds no more text than one unfinished line. Throws XmlcError.
class XmlcParser {
 public:
  explicit XmlcParser(XmlcForm form) : form_(form) {}
  void feed(const char* text, size_t size);
  ParsedXmlc take();    // the rows read since the last call, so that they need not all be held at once
  ParsedXmlc finish();  // once, after the last piece: the rest

 private:
  void keep_unfinished(const char* text, size_t size);
  void read_line(const char* begin, const char* end);
  void read_header(const char* begin, const char* end);
  void read_row(const char* begin, const char* end);
  const char* read_labels(const char* begin, const char* end);
  void read_features(const char* begin, const char* end);
  float read_value(const char* begin, const char* end, uint64_t feature, const char*& stop);
  void sort_labels();
  void sort_features();

  const char* noun() const { return form_ == XmlcForm::labelled ? "feature" : "column"; }
  [[noreturn]] void fail(const std::string& what);
  [[noreturn]] void fail_binary();
  [[noreturn]] void fail_header(std::string_view text);
  [[noreturn]] void fail_range(const char* noun, std::string_view index, int64_t limit);
  [[noreturn]] void fail_labels(std::string_view token);
  [[noreturn]] void fail_value(uint64_t feature, std::string_view value, bool too_large);
  [[noreturn]] void fail_pair(std::string_view token);

  XmlcForm form_;
  bool usable_ = true;
  int64_t line_ = 0;
  int64_t rows_read_ = 0;
  std::string unfinished_;
  ParsedXmlc parsed_;
  std::vector<std::pair<int32_t, float>> row_;  // room for sorting one row
};

// Borrowed rows of a CSR matrix; `data` is not read for labels.
struct CsrRows {
  std::span<const int64_t> indptr;
  std::span<const int32_t> indices;
  std::span<const float> data;
};

// Rows [begin, end) as lines of text: `label,label feature:value ...`, each value in the fewest digits that read back
// as the same float32. Throws std::invalid_argument for arrays that do not fit together.
std::string format_xmlc(const CsrRows& features, const CsrRows& labels, int64_t begin, int64_t end);

}  // namespace longleaf

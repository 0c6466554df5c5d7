// The reader of the XMLC repository's text files.
//
// Given: a first line `rows features labels` (or `rows columns`), then one line a row, `label,label feature:value ...`,
// all counted from 0. Out: two sparse matrices in row order, sorted, repeated features summed, repeated labels once.
// A blank line counts as a row with nothing in it as long as the header promises more rows; after them it is ignored.
// Everything else that is not exactly this form is refused with its line. Memory grows with what has been read, never
// with what the header claims. Every line ends in a byte that is no part of a number, so digit loops need no bounds.
#include "files/xmlc.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "files/decimal.h"

namespace longleaf {
namespace {

constexpr int64_t largest_size = std::numeric_limits<int32_t>::max();
constexpr size_t longest_header = 4096;
constexpr size_t longest_shown = 40;  // of the file's text in a message

bool is_blank(char c) { return c == ' ' || c == '\t'; }

const char* skip_blanks(const char* p, const char* end) {
  while (p != end && is_blank(*p)) ++p;
  return p;
}

const char* token_end(const char* p, const char* end) {
  while (p != end && !is_blank(*p)) ++p;
  return p;
}

std::string_view view(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

// A run of digits from p; returns where it stops. Beyond 18 digits the number stays at "too large for any limit".
const char* read_digits(const char* p, uint64_t& number) {
  const char* start = p;
  number = 0;
  for (; is_digit(*p); ++p) number = number * 10 + static_cast<uint64_t>(*p - '0');
  if (p - start > 18) number = std::numeric_limits<uint64_t>::max();
  return p;
}

// Text from the file as it may stand in a message: short, printable ASCII, in quotes.
std::string quoted(std::string_view text) {
  static const char* hex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, longest_shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
    }
  }
  return out + (text.size() > longest_shown ? "...\"" : "\"");
}

std::string counted(int64_t number, const char* noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

bool is_index(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

void XmlcParser::feed(const char* text, size_t size) {
  if (!usable_) throw std::logic_error("a parser cannot be used again after finish or an error");
  const char* end = text + size;
  while (text != end) {
    const auto* line_break = static_cast<const char*>(std::memchr(text, '\n', static_cast<size_t>(end - text)));
    if (line_break == nullptr) return keep_unfinished(text, static_cast<size_t>(end - text));
    if (unfinished_.empty()) {
      read_line(text, line_break);
    } else {
      unfinished_.append(text, line_break + 1);
      read_line(unfinished_.data(), unfinished_.data() + unfinished_.size() - 1);
      unfinished_.clear();
    }
    text = line_break + 1;
  }
}

// An endless line would be held in memory, so what cannot be text is refused before its line is complete.
void XmlcParser::keep_unfinished(const char* text, size_t size) {
  unfinished_.append(text, size);
  const bool binary = std::memchr(text, '\0', size) != nullptr;
  if (!binary && (line_ > 0 || unfinished_.size() <= longest_header)) return;
  ++line_;
  if (binary) fail_binary();
  fail_header(unfinished_);
}

ParsedXmlc XmlcParser::take() {
  if (!usable_) throw std::logic_error("a parser cannot be used again after finish or an error");
  ParsedXmlc rows = std::move(parsed_);  // what is left are the sizes, and empty buffers
  if (line_ > 0)
    for (ParsedMatrix* matrix : {&parsed_.features, &parsed_.labels}) matrix->indptr.push_back(0);
  return rows;
}

ParsedXmlc XmlcParser::finish() {
  if (!unfinished_.empty()) feed("\n", 1);
  if (!usable_) throw std::logic_error("a parser cannot be used again after finish or an error");
  if (line_ == 0) {
    line_ = 1;
    fail_header("");
  }
  if (const int64_t rows = parsed_.features.n_rows; rows_read_ < rows)
    fail("the file ends after " + counted(rows_read_, "row") + "; the header says " + counted(rows, "row") + ".");
  usable_ = false;
  return std::move(parsed_);
}

// [begin, end) without its line break; *end may be read.
void XmlcParser::read_line(const char* begin, const char* end) {
  ++line_;
  if (line_ == 1 && static_cast<size_t>(end - begin) > longest_header) fail_header(view(begin, end));
  if (begin != end && end[-1] == '\r') --end;
  if (line_ == 1) return read_header(begin, end);
  if (rows_read_ < parsed_.features.n_rows) return read_row(begin, end);
  if (const char* p = skip_blanks(begin, end); p != end)
    fail("a row too many was found; the header says " + counted(parsed_.features.n_rows, "row") + ".");
}

void XmlcParser::read_header(const char* begin, const char* end) {
  const char* names[] = {"row", noun(), "label"};
  const size_t n_sizes = form_ == XmlcForm::labelled ? 3 : 2;
  int64_t sizes[3] = {0, 0, 0};
  const char* p = skip_blanks(begin, end);
  for (size_t i = 0; i < n_sizes; ++i) {
    const char* start = p;
    uint64_t number;
    p = read_digits(p, number);
    if (p == start || (p != end && !is_blank(*p))) fail_header(view(begin, end));
    if (number > static_cast<uint64_t>(largest_size))
      fail("the header says " + std::string(view(start, p).substr(0, longest_shown)) + " " + names[i] + "s; at most " +
           std::to_string(largest_size) + " are possible.");
    sizes[i] = static_cast<int64_t>(number);
    p = skip_blanks(p, end);
  }
  if (p != end) fail_header(view(begin, end));
  parsed_.features.n_rows = parsed_.labels.n_rows = sizes[0];
  parsed_.features.n_columns = sizes[1];
  parsed_.labels.n_columns = sizes[2];
  parsed_.features.indptr.push_back(0);
  parsed_.labels.indptr.push_back(0);
}

void XmlcParser::read_row(const char* begin, const char* end) {
  read_features(form_ == XmlcForm::labelled ? read_labels(begin, end) : begin, end);
  parsed_.features.indptr.push_back(static_cast<int64_t>(parsed_.features.indices.size()));
  parsed_.labels.indptr.push_back(static_cast<int64_t>(parsed_.labels.indices.size()));
  ++rows_read_;
}

// Labels stand at the very beginning of the line. Returns where the features begin: that is the beginning itself if the
// line starts with a blank or with a token that has a colon.
const char* XmlcParser::read_labels(const char* begin, const char* end) {
  if (begin == end || is_blank(*begin)) return begin;
  auto& labels = parsed_.labels.indices;
  const auto n_labels = static_cast<uint64_t>(parsed_.labels.n_columns);
  const size_t row_start = labels.size();
  bool sorted = true;
  for (const char* p = begin;; ++p) {
    const char* start = p;
    uint64_t label;
    p = read_digits(p, label);
    const bool last = p == end || is_blank(*p);
    if (p == start || (!last && *p != ',')) {
      const auto token = view(begin, token_end(p, end));
      if (token.find(':') == token.npos) fail_labels(token);
      labels.truncate(row_start);
      return begin;
    }
    if (label >= n_labels) {
      const auto token = view(begin, token_end(p, end));
      if (token.find(':') != token.npos) fail_pair(token);
      fail_range("label", view(start, p), parsed_.labels.n_columns);
    }
    sorted &= labels.size() == row_start || labels.end()[-1] < static_cast<int32_t>(label);
    labels.push_back(static_cast<int32_t>(label));
    if (!last) continue;
    if (!sorted) sort_labels();
    return p;
  }
}

void XmlcParser::read_features(const char* p, const char* end) {
  auto& [n_rows, n_columns, indptr, indices, data] = parsed_.features;
  const auto limit = static_cast<uint64_t>(n_columns);
  int64_t previous = -1;
  bool sorted = true;
  while ((p = skip_blanks(p, end)) != end) {
    const char* start = p;
    uint64_t index;
    p = read_digits(p, index);
    if (p == start || *p != ':' || index >= limit) fail_pair(view(start, token_end(start, end)));
    const float value = read_value(p + 1, end, index, p);
    sorted &= previous < static_cast<int64_t>(index);
    previous = static_cast<int64_t>(index);
    indices.push_back(static_cast<int32_t>(index));
    data.push_back(value);
  }
  if (!sorted) sort_features();
}

float XmlcParser::read_value(const char* begin, const char* end, uint64_t feature, const char*& stop) {
  float value;
  stop = parse_float32_fast(begin, value);
  if (stop != nullptr && (stop == end || is_blank(*stop))) return value;
  stop = token_end(begin, end);
  const auto status = parse_float32_slowly(begin, stop, value);
  if (status != DecimalStatus::ok) fail_value(feature, view(begin, stop), status == DecimalStatus::too_large);
  return value;
}

void XmlcParser::sort_labels() {
  auto& labels = parsed_.labels.indices;
  int32_t* row = labels.data() + parsed_.labels.indptr.end()[-1];
  std::sort(row, labels.end());
  labels.truncate(static_cast<size_t>(std::unique(row, labels.end()) - labels.data()));
}

// Repeated features are summed in double, in the order of the file, and rounded once.
void XmlcParser::sort_features() {
  auto& [n_rows, n_columns, indptr, indices, data] = parsed_.features;
  auto size = static_cast<size_t>(indptr.end()[-1]);
  row_.clear();
  for (size_t i = size; i < indices.size(); ++i) row_.emplace_back(indices.data()[i], data.data()[i]);
  std::stable_sort(row_.begin(), row_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto entry = row_.begin(); entry != row_.end();) {
    const int32_t index = entry->first;
    double sum = entry->second;
    while (++entry != row_.end() && entry->first == index) sum += entry->second;
    const auto value = static_cast<float>(sum);
    if (!std::isfinite(value))
      fail("the values of " + std::string(noun()) + " " + std::to_string(index) +
           " add up to more than a 32-bit float holds.");
    indices.data()[size] = index;
    data.data()[size++] = value;
  }
  indices.truncate(size);
  data.truncate(size);
}

void XmlcParser::fail(const std::string& what) {
  usable_ = false;
  throw XmlcError("line " + std::to_string(line_) + ": " + what);
}

void XmlcParser::fail_binary() { fail("a NUL byte was found; this is not a text file."); }

void XmlcParser::fail_header(std::string_view text) {
  if (text.find('\0') != text.npos) fail_binary();
  const char* wanted =
      form_ == XmlcForm::labelled ? "three whole numbers, rows features labels" : "two whole numbers, rows columns";
  fail(std::string("the header must be ") + wanted + "; got " + quoted(text) + ".");
}

void XmlcParser::fail_range(const char* noun, std::string_view index, int64_t limit) {
  std::string shown(index.substr(0, longest_shown));
  if (index.size() > longest_shown) shown += "...";
  fail(std::string(noun) + " " + shown + " is out of range; the header says " + counted(limit, noun) + ".");
}

void XmlcParser::fail_labels(std::string_view token) {
  if (token.find('\0') != token.npos) fail_binary();
  for (size_t start = 0; start <= token.size();) {  // a list that is right but for a negative label
    const size_t comma = std::min(token.find(',', start), token.size());
    const auto label = token.substr(start, comma - start);
    if (is_index(label) && label.front() == '-') fail_range("label", label, parsed_.labels.n_columns);
    start = comma + 1;
  }
  fail(quoted(token) + " is not a list of labels, whole numbers joined by commas.");
}

void XmlcParser::fail_value(uint64_t feature, std::string_view value, bool too_large) {
  if (value.empty()) fail(quoted(std::to_string(feature) + ":") + " is not a " + noun() + ":value pair.");
  if (value.find('\0') != value.npos) fail_binary();
  fail("the value of " + std::string(noun()) + " " + std::to_string(feature) + " must " +
       (too_large ? "fit a 32-bit float" : "be a finite number") + "; got " + quoted(value) + ".");
}

void XmlcParser::fail_pair(std::string_view token) {
  if (token.find('\0') != token.npos) fail_binary();
  const size_t colon = token.find(':');
  if (colon != token.npos && is_index(token.substr(0, colon)))
    fail_range(noun(), token.substr(0, colon), parsed_.features.n_columns);
  fail(quoted(token) + " is not a " + noun() + ":value pair.");
}

}  // namespace longleaf

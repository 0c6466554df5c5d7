#include "text/text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <stdexcept>

namespace longleaf {
namespace {

// Where each of n contiguous shares of about the same number of bytes begins, and the end; each begins with a record.
std::vector<std::size_t> shares(std::span<const std::string_view> texts, std::size_t n, std::size_t fields) {
  constexpr std::size_t text_cost = 64;  // so that empty texts are shared too
  std::size_t total = 0, sum = 0;
  for (const auto& text : texts) total += text.size() + text_cost;
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    while (i % fields == 0 && begins.size() < n && sum * n >= total * begins.size()) begins.push_back(i);
    sum += texts[i].size() + text_cost;
  }
  begins.resize(n + 1, texts.size());
  return begins;
}

std::uint64_t first_bytes(std::string_view term) {  // compares as the first eight bytes do
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < 8; ++i) key = key << 8 | (i < term.size() ? static_cast<unsigned char>(term[i]) : 0);
  return key;
}

// scikit-learn's column: the absolute value of the signed hash, whose smallest value wraps to itself.
std::uint32_t hashed_column(std::string_view term, std::uint32_t n_columns) {
  const std::uint32_t hash = murmur3(term);
  return (hash > INT32_MAX ? 0u - hash : hash) % n_columns;
}

}  // namespace

TextCounter::TextCounter(const TextOptions& options, std::span<const std::uint32_t> characters,
                         std::shared_ptr<const Vocabulary> fixed, int n_threads, bool keep_rows)
    : options_(options), fixed_(std::move(fixed)), keep_rows_(keep_rows) {
  for (int i = 0; i < std::max(1, n_threads); ++i)
    workers_.push_back({TextAnalyzer(options_, characters), {}, {}, {}, {}, {}, {}, {}});
}

// Whatever is interrupted halfway leaves a counter that nothing can be read from.
template <class Step>
void TextCounter::change(Step step) {
  if (!whole_) throw std::logic_error("a text counter cannot be used again after an interruption or an error");
  whole_ = false;
  step();
  whole_ = true;
}

void TextCounter::add(std::span<const std::string_view> texts, const StemTable* stems, Work& work) {
  if (texts.size() % options_.fields) throw std::invalid_argument("every record must have all its fields");
  if (stems && options_.analyzer != Analyzer::word) throw std::invalid_argument("only words have stems");
  if (stems && stems->n_records() != texts.size() / options_.fields)
    throw std::invalid_argument("every record must have its languages");
  constexpr std::size_t bytes_per_thread = 1 << 15;
  std::size_t bytes = 0;
  for (const auto& text : texts) bytes += text.size();
  const std::size_t n = std::min(workers_.size(), bytes / bytes_per_thread + 1);
  const std::vector<std::size_t> begins = shares(texts, n, options_.fields);
  std::vector<Chunk> chunks(n);
  change([&] {
    work.for_each(std::int64_t(n), int(n), [&](std::int64_t share, int) {
      const auto i = std::size_t(share);
      chunks[i].worker = i;
      count_texts(workers_[i], texts.subspan(begins[i], begins[i + 1] - begins[i]), stems, begins[i] / options_.fields,
                  chunks[i], work);
    });
  });
  n_rows_ += static_cast<std::int64_t>(texts.size() / options_.fields);
  if (keep_rows_) std::ranges::move(chunks, std::back_inserter(chunks_));
}

std::size_t TextCounter::size() const {
  std::size_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.entries.size();
  for (const Worker& worker : workers_) sum += worker.document_frequency.size();
  return sum;
}

void TextCounter::count_texts(Worker& worker, std::span<const std::string_view> texts, const StemTable* stems,
                              std::size_t first_record, Chunk& chunk, const Work& work) const {
  std::size_t field = 0, begin = chunk.entries.size(), record = first_record;
  for (const auto& text : texts) {
    work.check();
    worker.ids.clear();
    const auto count = [&](std::string_view term) {
      work.check();  // a text may be as long as a book, or a library
      if (options_.hashing) {
        worker.ids.push_back(hashed_column(term, options_.hashing));
      } else if (!fixed_) {
        worker.ids.push_back(worker.vocabulary.find_or_add(term));
      } else if (const auto id = fixed_->find(term); id != Vocabulary::absent) {
        worker.ids.push_back(id);
      }
    };
    worker.analyzer.analyze(text, count);
    if (stems) worker.analyzer.same_words([&](std::string_view word) { stems->stems(word, record, count); });
    count_field(worker, chunk.entries, work);
    chunk.field_ends.push_back(chunk.entries.size());
    if (++field < options_.fields) continue;
    if (!fixed_) count_record(worker, std::span(chunk.entries).subspan(begin));
    if (!keep_rows_) chunk.entries.clear();
    field = 0;
    ++record;
    begin = chunk.entries.size();
  }
  chunk.entries.shrink_to_fit();
}

// Appends the distinct ids of a field with their counts. The table is as small as the field, so it stays in cache.
void TextCounter::count_field(Worker& worker, std::vector<TermCount>& entries, const Work& work) const {
  constexpr std::uint32_t empty = UINT32_MAX;
  const std::size_t begin = entries.size(), n_slots = std::bit_ceil(2 * worker.ids.size() + 2);
  const int shift = 32 - std::countr_zero(n_slots);
  worker.slots.assign(n_slots, {empty, 0});
  for (const std::uint32_t id : worker.ids) {
    work.check();
    std::size_t slot = shift > 0 ? id * 0x9e3779b1u >> shift : id & (n_slots - 1);  // Fibonacci hashing
    while (worker.slots[slot].id != empty && worker.slots[slot].id != id) slot = (slot + 1) & (n_slots - 1);
    auto& [key, place] = worker.slots[slot];
    if (key == empty) {
      key = id;
      place = static_cast<std::uint32_t>(entries.size() - begin);
      entries.push_back({id, 0});
    }
    ++entries[begin + place].count;
  }
}

// Adds a record to the frequencies: a term counts once as in this record, however many fields it is in.
void TextCounter::count_record(Worker& worker, std::span<const TermCount> entries) const {
  const std::size_t n_ids = options_.hashing ? options_.hashing : worker.vocabulary.size();
  worker.document_frequency.resize(n_ids);
  worker.term_frequency.resize(n_ids);
  for (const TermCount& entry : entries) worker.term_frequency[entry.id] += entry.count;
  if (options_.fields == 1) {
    for (const TermCount& entry : entries) ++worker.document_frequency[entry.id];
    return;
  }
  worker.seen.clear();
  for (const TermCount& entry : entries) worker.seen.push_back(entry.id);
  std::ranges::sort(worker.seen);
  const auto repeated = std::ranges::unique(worker.seen);
  worker.seen.erase(repeated.begin(), repeated.end());
  for (const std::uint32_t id : worker.seen) ++worker.document_frequency[id];
}

void TextCounter::merge(Work& work) {
  const std::size_t n_ids = options_.hashing ? options_.hashing : vocabulary().size();
  workers_[0].document_frequency.resize(n_ids);  // it may have seen no text at all
  workers_[0].term_frequency.resize(n_ids);
  change([&] {
    work.run([&] {
      for (std::size_t i = 1; i < workers_.size(); ++i) absorb(workers_[i], work);
    });
  });
}

void TextCounter::absorb(Worker& other, const Work& work) {
  Worker& first = workers_[0];
  const std::size_t n = other.document_frequency.size();
  if (!options_.hashing) {
    other.merged.resize(n);
    for (std::uint32_t id = 0; id < n; ++id) {
      work.check();
      other.merged[id] = first.vocabulary.find_or_add(other.vocabulary[id], other.vocabulary.hash(id));
    }
    first.document_frequency.resize(first.vocabulary.size());
    first.term_frequency.resize(first.vocabulary.size());
  }
  for (std::size_t id = 0; id < n; ++id) {
    const std::size_t merged = options_.hashing ? id : other.merged[id];
    first.document_frequency[merged] += other.document_frequency[id];
    first.term_frequency[merged] += other.term_frequency[id];
  }
  other.vocabulary = {};
  other.document_frequency = {};
  other.term_frequency = {};
}

// UTF-8 sorts as its code points do. Most comparisons are settled by the first eight bytes, as one number.
void TextCounter::sort(std::span<std::uint32_t> ids, Work& work) const {
  struct Key {
    std::uint64_t first;
    std::uint32_t id;
  };
  const Vocabulary& terms = vocabulary();
  auto before = [&](const Key& a, const Key& b) {
    work.check();
    return a.first != b.first ? a.first < b.first : terms[a.id] < terms[b.id];
  };
  const std::size_t n = workers_.size();
  auto begin = [&](std::size_t share) { return static_cast<std::ptrdiff_t>(ids.size() * share / n); };
  std::vector<Key> keys(ids.size());
  work.for_each(std::int64_t(n), int(n), [&](std::int64_t share, int) {
    const auto i = std::size_t(share);
    for (auto k = begin(i); k < begin(i + 1); ++k) {
      work.check();
      keys[k] = {first_bytes(terms[ids[k]]), ids[k]};
    }
    std::sort(keys.begin() + begin(i), keys.begin() + begin(i + 1), before);
  });
  work.run([&] {
    for (std::size_t i = 1; i < n; ++i)
      std::inplace_merge(keys.begin(), keys.begin() + begin(i), keys.begin() + begin(i + 1), before);
  });
  std::ranges::transform(keys, ids.begin(), &Key::id);
}

// Turns the ids of a chunk into columns, drops the entries that have none, and counts those of the matrix.
void TextCounter::renumber(Chunk& chunk, std::span<const std::int32_t> columns, const Work& work) const {
  const auto& merged = workers_[chunk.worker].merged;
  std::size_t from = 0, to = 0;
  for (std::size_t& end : chunk.field_ends) {
    for (; from < end; ++from) {
      auto [id, count] = chunk.entries[from];
      if (!merged.empty()) id = merged[id];
      if (!columns.empty() && columns[id] < 0) continue;
      chunk.entries[to++] = {columns.empty() ? id : static_cast<std::uint32_t>(columns[id]), count};
    }
    end = to;
  }
  chunk.entries.resize(to);
  chunk.n_out = static_cast<std::int64_t>(to);
  if (options_.fields == 1) return;
  std::vector<std::uint32_t> seen;
  std::size_t begin = 0;
  chunk.n_out = 0;
  for (std::size_t last = options_.fields - 1; last < chunk.field_ends.size(); last += options_.fields) {
    work.check();
    seen.clear();
    for (; begin < chunk.field_ends[last]; ++begin) seen.push_back(chunk.entries[begin].id);
    std::ranges::sort(seen);
    chunk.n_out += std::ranges::unique(seen).begin() - seen.begin();
  }
}

// Says where each chunk's rows and entries go in the matrix; returns the number of all entries.
std::int64_t TextCounter::lay_out(std::span<const std::int32_t> columns, Work& work) {
  work.for_each(std::int64_t(chunks_.size()), int(workers_.size()),
                [&](std::int64_t i, int) { renumber(chunks_[std::size_t(i)], columns, work); });
  std::int64_t n_rows = 0, n_entries = 0;
  for (Chunk& chunk : chunks_) {
    chunk.first_row = n_rows;
    chunk.first_entry = n_entries;
    n_rows += static_cast<std::int64_t>(chunk.field_ends.size() / options_.fields);
    n_entries += chunk.n_out;
  }
  return n_entries;
}

TextRows TextCounter::rows(const RowWeighting& weighting, Work& work) {
  TextRows out;
  change([&] { out = weighted_rows(weighting, work); });
  return out;
}

TextRows TextCounter::weighted_rows(const RowWeighting& weighting, Work& work) {
  const std::int64_t n_entries = lay_out(weighting.columns, work);
  TextRows out{n_rows_, n_entries, std::make_unique_for_overwrite<std::int64_t[]>(n_rows_ + 1),
               std::make_unique_for_overwrite<std::int32_t[]>(n_entries),
               std::make_unique_for_overwrite<float[]>(n_entries)};
  out.indptr[0] = 0;
  work.for_each(std::int64_t(chunks_.size()), int(workers_.size()), [&](std::int64_t i, int) {
    Chunk& chunk = chunks_[std::size_t(i)];
    fill(chunk, weighting, out, work);
    chunk.entries = {};  // as the matrix fills, the counts go
  });
  chunks_.clear();
  return out;
}

// Sums in double and in order of columns and fields, so that the bits depend on nothing but the record.
void TextCounter::fill(const Chunk& chunk, const RowWeighting& weighting, TextRows& out, const Work& work) const {
  struct Entry {
    std::uint64_t place;  // column and field in one number, to sort
    double value;
    bool operator<(const Entry& other) const { return place < other.place; }
  };
  std::vector<Entry> row;
  std::int64_t at = chunk.first_entry;
  std::size_t begin = 0;
  for (std::size_t f = 0; f < chunk.field_ends.size(); begin = chunk.field_ends[f++]) {
    work.check();
    const std::size_t field = f % options_.fields, first = row.size();
    for (std::size_t i = begin; i < chunk.field_ends[f]; ++i) {
      const auto [column, number] = chunk.entries[i];
      const double count = number, frequency = !weighting.sublinear ? count : number == 1 ? 1 : 1 + std::log(count);
      row.push_back({std::uint64_t(column) << 32 | field, frequency * weighting.weights[column]});
    }
    const std::span<Entry> own = std::span(row).subspan(first);
    std::sort(own.begin(), own.end());
    double length = 0;
    for (const Entry& one : own) length += weighting.norm == Norm::l2 ? one.value * one.value : std::abs(one.value);
    if (weighting.norm == Norm::l2) length = std::sqrt(length);
    if (weighting.norm == Norm::none || length == 0) length = 1;
    if (const float weight = weighting.fields[field]; weight == 1)
      for (Entry& one : own) one.value /= length;
    else
      for (Entry& one : own) one.value *= weight / length;
    if (field + 1 < options_.fields) continue;
    if (options_.fields > 1) std::sort(row.begin(), row.end());
    for (std::size_t i = 0; i < row.size();) {
      const std::uint64_t column = row[i].place >> 32;
      double sum = row[i].value;
      while (++i < row.size() && row[i].place >> 32 == column) sum += row[i].value;
      out.indices[at] = static_cast<std::int32_t>(column);
      out.data[at++] = static_cast<float>(sum);
    }
    out.indptr[chunk.first_row + static_cast<std::int64_t>(f / options_.fields) + 1] = at;
    row.clear();
  }
}

}  // namespace longleaf

// Texts in, a sparse matrix of weighted term counts out. Knows bytes and arrays, not Python.
//
// Problem: what scikit-learn's TfidfVectorizer computes, in one pass over the texts and on several threads.
// Given:   batches of records in UTF-8, each of one text or of several fields; and one table that says for every code
//          point what it becomes (its lower case) and whether that is a word character or white space.
// Out:     terms in order of code points, how many records have each, and a row per record in CSR form: the sum of its
//          fields, each scaled to unit length by itself and then weighted.
//
// Every thread counts a contiguous share of each batch with a vocabulary of its own. The vocabularies are
// merged at the end and the terms sorted, so the result does not depend on how the rows were shared. An exception, and
// Interrupted is one, leaves a counter that refuses everything else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "text/analyzer.h"
#include "text/stem_table.h"
#include "text/vocabulary.h"

namespace longleaf {

enum class Norm : int { none, l1, l2 };

struct TextRows {
  std::int64_t n_rows = 0, n_entries = 0;
  std::unique_ptr<std::int64_t[]> indptr;
  std::unique_ptr<std::int32_t[]> indices;
  std::unique_ptr<float[]> data;
};

struct RowWeighting {
  std::span<const std::int32_t> columns;  // of every id; -1 drops it; empty: ids are columns
  std::span<const float> weights;         // of every column
  std::span<const float> fields;          // the weight of each field
  bool sublinear;                         // 1 + log(count) instead of count
  Norm norm;
};

class TextCounter {
 public:
  // Counts the terms of `fixed` only, if that is given, and no frequencies (with hashing its terms do not
  // matter). Rows are kept only if asked for.
  TextCounter(const TextOptions& options, std::span<const std::uint32_t> characters,
              std::shared_ptr<const Vocabulary> fixed, int n_threads, bool keep_rows);
  // With stems, which are given for these records, they are counted beside the words.
  void add(std::span<const std::string_view> texts, const StemTable* stems, Work& work);
  std::int64_t n_rows() const { return n_rows_; }
  std::size_t n_fields() const { return options_.fields; }
  std::size_t size() const;  // entries of the rows that are kept, and terms that were counted

  void merge(Work& work);  // once, after the last text and before what follows
  std::span<const std::int64_t> document_frequency() const { return workers_[0].document_frequency; }
  std::span<const std::int64_t> term_frequency() const { return workers_[0].term_frequency; }
  std::size_t n_ids() const {  // what the kept rows may hold
    return options_.hashing ? options_.hashing : fixed_ ? fixed_->size() : vocabulary().size();
  }
  const Vocabulary& vocabulary() const { return workers_[0].vocabulary; }
  bool is_extra(std::uint32_t id) const {  // an n-gram beside the words
    const std::string_view term = vocabulary()[id];
    return !term.empty() && term[0] == kExtraMark;
  }
  void sort(std::span<std::uint32_t> ids, Work& work) const;  // by term, in order of code points
  TextRows rows(const RowWeighting& weighting, Work& work);   // which are not kept any longer

 private:
  struct TermCount {
    std::uint32_t id, count;
  };
  struct Worker {
    TextAnalyzer analyzer;
    Vocabulary vocabulary;
    std::vector<std::int64_t> document_frequency, term_frequency;
    std::vector<std::uint32_t> ids;     // of the text at hand, in order of arrival
    std::vector<TermCount> slots;       // a small hash table that counts them
    std::vector<std::uint32_t> seen;    // the terms of the fields of the record at hand
    std::vector<std::uint32_t> merged;  // its ids after the merge; empty: unchanged
  };
  struct Chunk {
    std::size_t worker;
    std::vector<std::size_t> field_ends;  // of every field of every record
    std::vector<TermCount> entries;
    std::int64_t first_row = 0, first_entry = 0, n_out = 0;  // n_out: entries of the matrix
  };
  void count_texts(Worker& worker, std::span<const std::string_view> texts, const StemTable* stems,
                   std::size_t first_record, Chunk& chunk, const Work& work) const;
  void count_field(Worker& worker, std::vector<TermCount>& entries, const Work& work) const;
  void count_record(Worker& worker, std::span<const TermCount> entries) const;
  void absorb(Worker& other, const Work& work);
  void renumber(Chunk& chunk, std::span<const std::int32_t> columns, const Work& work) const;
  std::int64_t lay_out(std::span<const std::int32_t> columns, Work& work);
  TextRows weighted_rows(const RowWeighting& weighting, Work& work);
  template <class Step>
  void change(Step step);
  void fill(const Chunk& chunk, const RowWeighting& weighting, TextRows& out, const Work& work) const;

  TextOptions options_;
  std::shared_ptr<const Vocabulary> fixed_;
  bool keep_rows_;
  bool whole_ = true;
  std::int64_t n_rows_ = 0;
  std::vector<Worker> workers_;
  std::vector<Chunk> chunks_;
};

}  // namespace longleaf

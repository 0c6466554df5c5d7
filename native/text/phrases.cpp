#include "text/phrases.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "text/stem.h"

namespace longleaf {
namespace {

constexpr TextOptions kWords{Analyzer::word, {1, 1}, {0, 0}, 0, 1};

}  // namespace

PhraseTexts phrase_texts(std::span<const std::string_view> names, std::span<const std::uint32_t> characters,
                         const Work& work) {
  TextAnalyzer analyzer(kWords, characters);
  Vocabulary phrases;
  PhraseTexts out;
  out.phrases.reserve(names.size());
  std::string phrase;
  std::int64_t n_bytes = 0;
  for (const std::string_view name : names) {
    work.check();
    phrase.clear();
    analyzer.words(name, [&](std::string_view word) {
      if (!phrase.empty()) phrase += ' ';
      phrase += light_stem(word);
    });
    const std::size_t known = phrases.size();
    out.phrases.push_back(phrase.empty() ? -1 : static_cast<std::int32_t>(phrases.find_or_add(phrase)));
    if (phrases.size() > known) n_bytes += static_cast<std::int64_t>(phrase.size());
  }
  out.bytes.reserve(static_cast<std::size_t>(n_bytes));
  out.offsets.reserve(phrases.size() + 1);
  out.offsets.push_back(0);
  for (std::uint32_t i = 0; i < phrases.size(); ++i) {
    out.bytes.insert(out.bytes.end(), phrases[i].begin(), phrases[i].end());
    out.offsets.push_back(static_cast<std::int64_t>(out.bytes.size()));
  }
  return out;
}

PhraseIndex::PhraseIndex(std::span<const char> bytes, std::span<const std::int64_t> offsets, const Work& work) {
  {
    const Vocabulary distinct(bytes, offsets, work);  // checks the offsets too
  }
  split(bytes, offsets, work);
  list(work);
}

void PhraseIndex::split(std::span<const char> bytes, std::span<const std::int64_t> offsets, const Work& work) {
  begins_.reserve(std::max<std::size_t>(offsets.size(), 1));
  begins_.push_back(0);
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    work.check();
    std::string_view rest(bytes.data() + offsets[i - 1], static_cast<std::size_t>(offsets[i] - offsets[i - 1]));
    for (bool more = true; more;) {
      const std::size_t end = rest.find(' ');
      const std::string_view word = rest.substr(0, end);
      if (word.empty()) throw std::invalid_argument("a phrase must be words that single spaces separate.");
      words_.push_back(vocabulary_.find_or_add(word));
      more = end != std::string_view::npos;
      if (more) rest.remove_prefix(end + 1);
    }
    begins_.push_back(words_.size());
  }
  words_.shrink_to_fit();
}

void PhraseIndex::list(const Work& work) {
  const std::size_t n_words = vocabulary_.size();
  std::vector<std::uint32_t> frequency(n_words), last(n_words, UINT32_MAX), rarest(size());
  for (std::uint32_t i = 0; i < size(); ++i) {
    work.check();
    for (const std::uint32_t word : words(i))
      if (last[word] != i) {
        last[word] = i;
        ++frequency[word];
      }
  }
  auto rarer = [&](std::uint32_t a, std::uint32_t b) {
    if (frequency[a] != frequency[b] || a == b) return frequency[a] < frequency[b];
    return vocabulary_[a] < vocabulary_[b];
  };
  listed_begin_.assign(n_words + 1, 0);
  for (std::size_t i = 0; i < size(); ++i) {
    work.check();
    const auto of_phrase = words(i);
    const auto place = std::ranges::min_element(of_phrase, rarer);  // the first, if it stands there again
    rarest[i] = static_cast<std::uint32_t>(place - of_phrase.begin());
    ++listed_begin_[*place + 1];
  }
  for (std::size_t word = 0; word < n_words; ++word) listed_begin_[word + 1] += listed_begin_[word];
  listed_.resize(size());
  std::vector<std::uint32_t> next(listed_begin_.begin(), listed_begin_.end() - 1);
  for (std::uint32_t i = 0; i < size(); ++i) listed_[next[words(i)[rarest[i]]]++] = {i, rarest[i]};
}

PhraseMatches PhraseIndex::find(std::span<const std::string_view> texts, std::size_t n_fields,
                                std::span<const std::uint32_t> characters, int n_threads, Work& work) const {
  constexpr std::size_t bytes_per_thread = 1 << 15, block = 64;
  const std::size_t n_records = texts.size() / n_fields, n_blocks = (n_records + block - 1) / block;
  std::size_t bytes = 0;
  for (const auto& text : texts) bytes += text.size();
  const int threads = int(std::min<std::size_t>(std::max(1, n_threads), bytes / bytes_per_thread + 1));
  PhraseMatches out(n_records);
  std::vector<std::vector<Found>> found(n_blocks);
  std::vector<Reader> readers(std::size_t(threads), {TextAnalyzer(kWords, characters), {}, {}});
  work.for_each(std::int64_t(n_blocks), threads, [&](std::int64_t b, int thread) {
    Reader& reader = readers[std::size_t(thread)];
    const std::size_t begin = std::size_t(b) * block, end = std::min(begin + block, n_records);
    for (std::size_t i = begin; i < end; ++i) {
      read(reader, texts.subspan(i * n_fields, n_fields), work);
      out.n_words[i] = static_cast<std::int32_t>(reader.words.size());
      out.indptr[i + 1] = static_cast<std::int64_t>(reader.found.size());
      found[std::size_t(b)].insert(found[std::size_t(b)].end(), reader.found.begin(), reader.found.end());
    }
  });
  for (std::size_t i = 0; i < n_records; ++i) out.indptr[i + 1] += out.indptr[i];
  const auto size = static_cast<std::size_t>(out.indptr.back());
  for (auto* array : {&out.phrases, &out.in_first, &out.counts, &out.positions}) array->reserve(size);
  for (auto& matches : found) {
    for (const Found& match : matches) {
      out.phrases.push_back(match.phrase);
      out.in_first.push_back(match.in_first);
      out.counts.push_back(match.count);
      out.positions.push_back(match.position);
    }
    matches = {};
  }
  return out;
}

// Finds the phrases of one record.
void PhraseIndex::read(Reader& reader, std::span<const std::string_view> fields, const Work& work) const {
  reader.words.clear();
  reader.found.clear();
  for (std::size_t field = 0; field < fields.size(); ++field) {
    const std::size_t begin = reader.words.size();
    reader.analyzer.words(fields[field], [&](std::string_view word) {
      work.check();  // a text may be as long as a book
      reader.words.push_back(vocabulary_.find(light_stem(word)));
    });
    if (reader.words.size() > INT32_MAX) throw std::length_error("a record must have fewer than 2**31 words.");
    match(reader, begin, field == 0, work);
  }
  merge(reader.found);
}

// Finds the phrases of one field, whose words begin there.
void PhraseIndex::match(Reader& reader, std::size_t begin, bool first, const Work& work) const {
  std::size_t most = 4096;
  const std::span text(reader.words);
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text[at] == Vocabulary::absent) continue;
    for (std::size_t i = listed_begin_[text[at]]; i < listed_begin_[text[at] + 1]; ++i) {
      work.check();
      const auto [phrase, place] = listed_[i];
      const auto sought = words(phrase);
      if (place > at - begin || sought.size() > text.size() - (at - place)) continue;
      if (!std::ranges::equal(sought, text.subspan(at - place, sought.size()))) continue;
      reader.found.push_back(
          {static_cast<std::int32_t>(phrase), std::int32_t(first), 1, static_cast<std::int32_t>(at - place)});
    }
    if (reader.found.size() > most) {  // a word may be repeated without end
      merge(reader.found);
      most = 4096 + 2 * reader.found.size();
    }
  }
}

// Sorts by phrase, and adds up what the same phrase has.
void PhraseIndex::merge(std::vector<Found>& found) {
  std::ranges::sort(found, {}, &Found::phrase);
  std::size_t n = 0;
  for (const Found& next : found) {
    if (n > 0 && found[n - 1].phrase == next.phrase) {
      Found& same = found[n - 1];
      same.in_first += next.in_first;
      same.count += next.count;
      same.position = std::min(same.position, next.position);
    } else {
      found[n++] = next;
    }
  }
  found.resize(n);
}

}  // namespace longleaf

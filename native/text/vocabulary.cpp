#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace longleaf {

std::uint32_t murmur3(std::string_view bytes) {
  auto mix = [](std::uint32_t k) { return std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
  auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  std::uint32_t hash = 0;
  const std::size_t whole = bytes.size() / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    const std::uint32_t block = at(i) | at(i + 1) << 8 | at(i + 2) << 16 | at(i + 3) << 24;  // one load
    hash = std::rotl(hash ^ mix(block), 13) * 5 + 0xe6546b64u;
  }
  std::uint32_t tail = 0;
  for (std::size_t i = bytes.size(); i > whole; --i) tail = tail << 8 | at(i - 1);
  hash ^= mix(tail) ^ static_cast<std::uint32_t>(bytes.size());
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

Vocabulary::Vocabulary() { resize(64); }

Vocabulary::Vocabulary(std::span<const char> bytes, std::span<const std::int64_t> offsets, const Work& work) {
  const bool rises = offsets.empty() || (offsets.front() == 0 && std::ranges::is_sorted(offsets));
  if (!rises || (!offsets.empty() && offsets.back() > static_cast<std::int64_t>(bytes.size())))
    throw std::invalid_argument("the offsets of a vocabulary must rise from 0 to at most the number of its bytes.");
  const std::size_t n = offsets.empty() ? 0 : offsets.size() - 1;
  resize(std::bit_ceil(2 * n + 64));
  bytes_.reserve(bytes.size());
  terms_.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    work.check();
    const auto length = static_cast<std::size_t>(offsets[i + 1] - offsets[i]);
    if (find_or_add({bytes.data() + offsets[i], length}) != i)
      throw std::invalid_argument("the terms of a vocabulary must differ from each other.");
  }
}

std::size_t Vocabulary::probe(std::string_view term, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const Slot& here = slots_[slot];
    if (here.id == absent || (here.hash == hash && (*this)[here.id] == term)) return slot;
  }
}

std::uint32_t Vocabulary::find(std::string_view term) const { return slots_[probe(term, murmur3(term))].id; }

std::uint32_t Vocabulary::find_or_add(std::string_view term, std::uint32_t hash) {
  std::size_t slot = probe(term, hash);
  if (slots_[slot].id != absent) return slots_[slot].id;
  if (term.size() > UINT32_MAX) throw std::length_error("a term must be shorter than 4 GiB.");
  if (terms_.size() > INT32_MAX - 1) throw std::length_error("a vocabulary must have fewer than 2**31 terms.");
  if (2 * (terms_.size() + 1) > slots_.size()) {
    resize(2 * slots_.size());
    slot = probe(term, hash);
  }
  const auto id = static_cast<std::uint32_t>(terms_.size());
  terms_.push_back({bytes_.size(), static_cast<std::uint32_t>(term.size()), hash});
  bytes_.insert(bytes_.end(), term.begin(), term.end());
  slots_[slot] = {hash, id};
  return id;
}

void Vocabulary::resize(std::size_t n_slots) {
  slots_.assign(n_slots, {0, absent});
  for (std::uint32_t id = 0; id < terms_.size(); ++id) {
    std::size_t slot = terms_[id].hash & (n_slots - 1);
    while (slots_[slot].id != absent) slot = (slot + 1) & (n_slots - 1);  // all terms differ: no comparing
    slots_[slot] = {terms_[id].hash, id};
  }
}

}  // namespace longleaf

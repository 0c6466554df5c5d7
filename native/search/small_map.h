// A hash map for a search: small, reused from row to row, cleared by what it holds and not by its size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace longleaf {

// From a non-negative integer to an integer; forgets everything in constant time per key in it.
class SmallMap {
 public:
  void clear() {
    for (uint32_t slot : used_) keys_[slot] = -1;
    used_.clear();
  }
  // The value's place; `fresh` tells whether the key is new.
  int32_t& find(int64_t key, bool& fresh) {
    if (used_.size() * 2 >= keys_.size()) grow();
    const uint32_t slot = probe(key);
    fresh = keys_[slot] < 0;
    if (fresh) {
      keys_[slot] = key;
      used_.push_back(slot);
    }
    return values_[slot];
  }
  const int32_t* get(int64_t key) const {
    if (keys_.empty()) return nullptr;
    const uint32_t slot = probe(key);
    return keys_[slot] < 0 ? nullptr : &values_[slot];
  }

 private:
  uint32_t probe(int64_t key) const {
    const uint32_t mask = uint32_t(keys_.size()) - 1;
    uint32_t slot = uint32_t(uint64_t(key) * 0x9e3779b97f4a7c15ull >> 32) & mask;
    while (keys_[slot] >= 0 && keys_[slot] != key) slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    std::vector<int64_t> keys(std::max<size_t>(64, keys_.size() * 2), -1);
    std::vector<int32_t> values(keys.size());
    keys.swap(keys_);
    values.swap(values_);
    std::vector<uint32_t> used;
    used.swap(used_);
    for (uint32_t slot : used) {
      const uint32_t next = probe(keys[slot]);
      keys_[next] = keys[slot];
      values_[next] = values[slot];
      used_.push_back(next);
    }
  }
  std::vector<int64_t> keys_;
  std::vector<int32_t> values_;
  std::vector<uint32_t> used_;
};

}  // namespace longleaf

// The best few of many, in a heap.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

namespace longleaf {

// Keeps the best `size` of a heap, the worst of them in front; returns the one that has no place, if any.
template <class Item>
std::optional<Item> keep_best(std::vector<Item>& heap, Item item, size_t size) {
  const auto better = [](const Item& a, const Item& b) { return b < a; };
  std::optional<Item> dropped;
  if (heap.size() == size) {
    if (item < heap.front()) return item;
    std::pop_heap(heap.begin(), heap.end(), better);
    dropped = heap.back();
    heap.pop_back();
  }
  heap.push_back(item);
  std::push_heap(heap.begin(), heap.end(), better);
  return dropped;
}

}  // namespace longleaf

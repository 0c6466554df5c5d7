// Arrays that are read at random all day: on large pages, where the system has them, so that addresses are found fast.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "scratch.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace longleaf {

template <class T>
struct HugeAllocator {
  using value_type = T;
  static constexpr size_t kPage = size_t(1) << 21;

  HugeAllocator() = default;
  template <class U>
  HugeAllocator(const HugeAllocator<U>&) {}

  T* allocate(size_t n) {
    const size_t bytes = n * sizeof(T);
    if (void* memory = scratch_allocate(bytes)) return static_cast<T*>(memory);
    const size_t alignment = bytes >= kPage ? kPage : 64;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    if (bytes >= kPage) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) {
    if (!scratch_free(memory)) std::free(memory);
  }
  template <class U>
  bool operator==(const HugeAllocator<U>&) const { return true; }
};

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace longleaf

// Arrays that are read at random: on large pages, where the system has them, so that addresses are found fast.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "files/scratch.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace longleaf {

template <class T>
struct HugeAllocator {
  using value_type = T;
  static constexpr size_t kPage = size_t(1) << 21;
  static constexpr size_t kMost = (size_t(1) << 62) / sizeof(T);

  HugeAllocator() = default;
  template <class U>
  HugeAllocator(const HugeAllocator<U>&) {}

  T* allocate(size_t n) {
    if (n > kMost) throw std::bad_alloc();
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
  // resize() leaves new elements as they are
  template <class U>
  void construct(U* element) {
    ::new (static_cast<void*>(element)) U;
  }
  template <class U, class... Arguments>
  void construct(U* element, Arguments&&... arguments) {
    ::new (static_cast<void*>(element)) U(std::forward<Arguments>(arguments)...);
  }
  template <class U>
  bool operator==(const HugeAllocator<U>&) const {
    return true;
  }
};

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace longleaf

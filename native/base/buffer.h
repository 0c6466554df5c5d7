// A growing array whose memory can be handed over as it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace longleaf {

// What std::vector lacks: growth by realloc, which moves the pages of a large array instead of copying
// them (so that the peak stays near the final size), and release(), by which NumPy becomes the owner.
template <typename T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };

 public:
  using Owner = std::unique_ptr<T, Free>;

  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }

  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void push_back(T value) {
    if (size_ == capacity_) resize_memory(std::max<size_t>(1024, capacity_ * 2));
    memory_.get()[size_++] = value;
  }

  void append(const T* values, size_t n) {
    if (n > capacity_ - size_) resize_memory(std::max<size_t>(size_ + n, capacity_ * 2));
    std::copy_n(values, n, memory_.get() + size_);
    size_ += n;
  }

  // Forget all but the first `size` elements.
  void truncate(size_t size) { size_ = std::min(size, size_); }

  // Releases the memory, trimmed to the elements in it; never null, also when there are none.
  Owner release() {
    resize_memory(std::max<size_t>(1, size_));
    size_ = capacity_ = 0;
    return std::move(memory_);
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  void resize_memory(size_t capacity) {
    if (capacity > static_cast<size_t>(-1) / (2 * sizeof(T))) throw std::bad_alloc();
    void* memory = std::realloc(memory_.get(), capacity * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    (void)memory_.release();  // realloc has taken it
    memory_.reset(static_cast<T*>(memory));
    capacity_ = capacity;
  }

  Owner memory_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace longleaf

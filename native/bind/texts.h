// Texts as they come from Python.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "bind/bind.h"

namespace longleaf::python {

template <class T>
std::span<const T> span_of(const In<T>& view) {
  return {view.data(), view.size()};
}

// Borrowed UTF-8 of strings that are ASCII, and of bytes, which must be UTF-8 already.
inline std::vector<std::string_view> borrow_texts(const nb::list& texts) {
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (nb::handle text : texts) {
    Py_ssize_t size = 0;
    char* bytes = nullptr;
    const char* data = nullptr;
    if (PyBytes_Check(text.ptr())) {
      PyBytes_AsStringAndSize(text.ptr(), &bytes, &size);
      data = bytes;
    } else {
      data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    }
    if (data == nullptr) throw nb::python_error();
    views.emplace_back(data, static_cast<std::size_t>(size));
  }
  return views;
}

inline std::size_t total_bytes(std::span<const std::string_view> texts) {
  std::size_t bytes = 0;
  for (const auto& text : texts) bytes += text.size();
  return bytes;
}

}  // namespace longleaf::python

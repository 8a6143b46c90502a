// SPDX-License-Identifier: Apache-2.0
// An array whose size is known when it is made and that lives on the stack up to N elements: for
// the argument lists of a launch, which must not allocate. Neither copied nor moved.
#pragma once

#include <array>
#include <memory>
#include <span>

namespace tpu::exec {

template <class T, size_t N>
class InlineArray {
 public:
  explicit InlineArray(size_t size) : size_(size) {
    if (size > N) heap_ = std::make_unique<T[]>(size);
  }
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;

  T* data() { return heap_ ? heap_.get() : inline_.data(); }
  T& operator[](size_t i) { return data()[i]; }
  size_t size() const { return size_; }
  std::span<T> span() { return {data(), size_}; }
  std::span<T> first(size_t count) { return {data(), count}; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }

 private:
  size_t size_;
  std::unique_ptr<T[]> heap_;
  std::array<T, N> inline_{};
};

}  // namespace tpu::exec

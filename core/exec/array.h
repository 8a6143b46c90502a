// SPDX-License-Identifier: Apache-2.0
// One immutable device value and the counted handle by which cells, saved tensors and pending
// launches share it. The count is what donation asks: an Array held once may give its memory to
// the launch that reads it. Counting is thread-safe; an Array never changes after creation except
// that a donating launch empties it, and that one promised by a launch whose program is still being
// compiled gets its value. May outlive the runtime's shutdown: destroying it then does nothing.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "core/base/result.h"
#include "core/ir/type.h"
#include "core/pjrt/buffer.h"

namespace tpu::exec {

class Device;

class Array {
 public:
  // Counts `type.bytes()` against the device until destroyed. `buffer` is not empty.
  Array(Device& device, ir::Type type, pjrt::Buffer buffer);
  // Promised: counts nothing yet.
  Array(Device& device, ir::Type type);
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  Device& device() const { return device_; }
  const ir::Type& type() const { return type_; }
  size_t bytes() const { return bytes_; }
  // Whether the value is still to come: Device::settle() waits for it.
  bool promised() const { return promised_.load(std::memory_order_acquire); }
  // Empty while promised, after the array was donated, and if the promise was broken.
  const pjrt::Buffer& buffer() const { return buffer_; }
  // Why buffer() is empty, of an array that is not promised.
  Status missing() const;
  bool unique() const { return count_.load(std::memory_order_acquire) == 1; }

 private:
  friend class ArrayRef;
  friend class Device;
  friend class Ledger;
  void empty();         // a launch has consumed the memory
  pjrt::Buffer take();  // the same, for somebody else
  void keep_promise(pjrt::Buffer buffer);
  void break_promise(const Status& failure);

  Device& device_;
  ir::Type type_;
  size_t bytes_;
  pjrt::Buffer buffer_;
  std::unique_ptr<const Status> failure_;  // of the launch that had promised it
  std::atomic<bool> promised_{false};
  std::atomic<int32_t> count_{0};
  Array* newer_ = nullptr;  // neighbours among the live arrays, the ledger's
  Array* older_ = nullptr;
};

class ArrayRef {
 public:
  ArrayRef() = default;
  explicit ArrayRef(Array* array) : array_(array) { retain(); }
  ArrayRef(const ArrayRef& other) : array_(other.array_) { retain(); }
  ArrayRef(ArrayRef&& other) noexcept : array_(std::exchange(other.array_, nullptr)) {}
  ArrayRef& operator=(ArrayRef other) noexcept {
    std::swap(array_, other.array_);
    return *this;
  }
  ~ArrayRef() { release(); }

  Array* get() const { return array_; }
  Array* operator->() const { return array_; }
  Array& operator*() const { return *array_; }
  explicit operator bool() const { return array_ != nullptr; }
  bool operator==(const ArrayRef&) const = default;

 private:
  void retain() {
    if (array_) array_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (array_ && array_->count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete array_;
  }
  Array* array_ = nullptr;
};

}  // namespace tpu::exec

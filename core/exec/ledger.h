// SPDX-License-Identifier: Apache-2.0
// The arrays alive on one device and what they weigh: the numbers behind memory_allocated() and
// the decision whether a launch still fits. Links the arrays in a list, walked only to explain an
// out-of-memory error. Thread-safe.
#pragma once

#include <atomic>
#include <limits>
#include <mutex>
#include <string>

#include "core/exec/block_pool.h"
#include "core/exec/device.h"

namespace tpu::exec {

class Ledger {
 public:
  Ledger(int device_index, BlockPool& pool) : device_index_(device_index), pool_(pool) {}

  void add(Array& array);
  void remove(Array& array);

  // Whether `bytes` more fit into the limit; if not at once, the pool's free blocks are given up.
  // kResourceExhausted with PyTorch's text, naming the largest arrays.
  Status admit(size_t bytes) {
    if (fits(bytes)) [[likely]]
      return {};
    return admit_tightly(bytes);
  }
  // Whether they do without giving up anything.
  bool fits(size_t bytes) const {
    const size_t used = live_bytes_.load(std::memory_order_relaxed) + pool_.free_bytes();
    return used + bytes <= limit_bytes_.load(std::memory_order_relaxed);
  }

  MemoryStats stats() const;
  void reset_peak();
  void reset_accumulated();
  void set_limit(size_t bytes) { limit_bytes_.store(bytes, std::memory_order_relaxed); }

 private:
  Status admit_tightly(size_t bytes);
  size_t reserved_bytes() const;       // caller holds lock_
  std::string largest_arrays() const;  // caller holds lock_

  const int device_index_;
  BlockPool& pool_;
  std::atomic<size_t> limit_bytes_{std::numeric_limits<size_t>::max()};
  std::atomic<size_t> live_bytes_{0};  // written under lock_
  mutable std::mutex lock_;            // guards what follows and the links in the arrays
  Array* newest_ = nullptr;
  MemoryStats stats_;
};

}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
// Host memory that arrays of the CPU plugin live in. Fresh pages cost more than computing their
// contents, so blocks are kept and used again. Owns all blocks, taken ones too; must outlive them.
// Thread-safe; give() may be called from a plugin's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "core/base/result.h"

namespace tpu::exec {

class BlockPool {
 public:
  // Smaller values gain nothing from a block of their own.
  static constexpr size_t kSmallest = size_t{1} << 20;

  struct Block {
    void* data = nullptr;  // page-aligned
    size_t bytes = 0;      // at least what was asked for
  };
  // kResourceExhausted if the system gives no memory.
  Result<Block> take(size_t bytes);
  void give(Block block);
  // Returns the free blocks to the system; how many bytes that were.
  size_t trim();

  size_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }
  size_t taken_blocks() const { return taken_.load(std::memory_order_relaxed); }

 private:
  std::mutex lock_;                            // guards free_
  std::map<size_t, std::vector<void*>> free_;  // by size
  std::atomic<size_t> free_bytes_{0};
  std::atomic<size_t> taken_{0};
};

}  // namespace tpu::exec

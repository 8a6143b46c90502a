// SPDX-License-Identifier: Apache-2.0
#include "core/exec/block_pool.h"

#include <sys/mman.h>

#include <bit>
#include <cstdint>

namespace tpu::exec {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kClassesPerDoubling = 8;  // so at most an eighth is wasted

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t size_class(size_t bytes) {
  return round_up(bytes,
                  std::bit_floor(std::max(bytes, BlockPool::kSmallest)) / kClassesPerDoubling);
}

// Page-aligned, from 2 MB on aligned to huge pages; null if there is none.
void* map_pages(size_t bytes) {
  const size_t slack = bytes >= kHugePage ? kHugePage : 0;
  void* mapped =
      mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (slack == 0) return mapped;
  const auto start = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = round_up(start, kHugePage);
  if (aligned > start) munmap(mapped, aligned - start);
  const size_t tail = start + slack - aligned;
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

}  // namespace

Result<BlockPool::Block> BlockPool::take(size_t bytes) {
  const size_t wanted = size_class(bytes);
  {
    const std::lock_guard guard(lock_);
    const auto it = free_.lower_bound(wanted);
    if (it != free_.end() && it->first <= wanted + wanted / 2) {
      const Block block{it->second.back(), it->first};
      it->second.pop_back();
      if (it->second.empty()) free_.erase(it);
      free_bytes_.fetch_sub(block.bytes, std::memory_order_relaxed);
      taken_.fetch_add(1, std::memory_order_relaxed);
      return block;
    }
  }
  void* data = map_pages(wanted);
  if (data == nullptr && trim() > 0) data = map_pages(wanted);
  if (data == nullptr) {
    return Status(Code::kResourceExhausted,
                  fmt::format("the system has no {} bytes of memory left", wanted));
  }
  taken_.fetch_add(1, std::memory_order_relaxed);
  return Block{data, wanted};
}

void BlockPool::give(Block block) {
  const std::lock_guard guard(lock_);
  free_[block.bytes].push_back(block.data);
  free_bytes_.fetch_add(block.bytes, std::memory_order_relaxed);
  taken_.fetch_sub(1, std::memory_order_relaxed);
}

size_t BlockPool::trim() {
  const std::lock_guard guard(lock_);
  for (const auto& [bytes, blocks] : free_) {
    for (void* data : blocks) munmap(data, bytes);
  }
  free_.clear();
  return free_bytes_.exchange(0, std::memory_order_relaxed);
}

}  // namespace tpu::exec

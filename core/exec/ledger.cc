// SPDX-License-Identifier: Apache-2.0
#include "core/exec/ledger.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tpu::exec {
namespace {

constexpr size_t kNamedArrays = 5;

std::string size_text(size_t bytes) {
  const double b = static_cast<double>(bytes);
  if (bytes >= size_t{1} << 30) return fmt::format("{:.2f} GiB", b / (1 << 30));
  if (bytes >= size_t{1} << 20) return fmt::format("{:.2f} MiB", b / (1 << 20));
  if (bytes >= size_t{1} << 10) return fmt::format("{:.2f} KiB", b / (1 << 10));
  return fmt::format("{} bytes", bytes);
}

}  // namespace

void Ledger::add(Array& array) {
  const std::lock_guard guard(lock_);
  array.older_ = newest_;
  if (newest_ != nullptr) newest_->newer_ = &array;
  newest_ = &array;
  const size_t live = live_bytes_.load(std::memory_order_relaxed) + array.bytes_;
  live_bytes_.store(live, std::memory_order_relaxed);
  stats_.peak_bytes = std::max(stats_.peak_bytes, live);
  stats_.peak_reserved_bytes = std::max(stats_.peak_reserved_bytes, reserved_bytes());
  stats_.total_allocated_bytes += array.bytes_;
  ++stats_.live_arrays;
  ++stats_.allocations;
}

void Ledger::remove(Array& array) {
  const std::lock_guard guard(lock_);
  if (array.newer_ != nullptr) array.newer_->older_ = array.older_;
  if (array.older_ != nullptr) array.older_->newer_ = array.newer_;
  if (newest_ == &array) newest_ = array.older_;
  array.newer_ = array.older_ = nullptr;
  live_bytes_.store(live_bytes_.load(std::memory_order_relaxed) - array.bytes_,
                    std::memory_order_relaxed);
  stats_.total_freed_bytes += array.bytes_;
  --stats_.live_arrays;
}

size_t Ledger::reserved_bytes() const {
  return live_bytes_.load(std::memory_order_relaxed) + pool_.free_bytes();
}

Status Ledger::admit_tightly(size_t bytes) {
  pool_.trim();
  const size_t limit = limit_bytes_.load(std::memory_order_relaxed);
  const std::lock_guard guard(lock_);
  const size_t live = live_bytes_.load(std::memory_order_relaxed);
  if (live + bytes <= limit) return {};
  ++stats_.out_of_memory;
  return {Code::kResourceExhausted,
          fmt::format("TPU out of memory. Tried to allocate {}. TPU {} has a total capacity of {} "
                      "of which {} is free. {} is allocated by {} arrays{}",
                      size_text(bytes), device_index_, size_text(limit),
                      size_text(limit > live ? limit - live : 0), size_text(live),
                      stats_.live_arrays, largest_arrays())};
}

std::string Ledger::largest_arrays() const {
  struct Group {
    size_t count = 0;
    size_t bytes = 0;
  };
  std::map<std::string, Group> groups;
  for (const Array* a = newest_; a != nullptr; a = a->older_) {
    Group& group = groups[a->type().str()];
    ++group.count;
    group.bytes += a->bytes();
  }
  std::vector<std::pair<std::string, Group>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  sorted.resize(std::min(sorted.size(), kNamedArrays));
  std::string text;
  for (const auto& [type, group] : sorted) {
    text += fmt::format("{}{} x {} ({})", text.empty() ? ", most of it by " : ", ", group.count,
                        type, size_text(group.bytes));
  }
  return text + ".";
}

MemoryStats Ledger::stats() const {
  const std::lock_guard guard(lock_);
  MemoryStats stats = stats_;
  stats.live_bytes = live_bytes_.load(std::memory_order_relaxed);
  stats.limit_bytes = limit_bytes_.load(std::memory_order_relaxed);
  stats.reserved_bytes = reserved_bytes();
  stats.peak_reserved_bytes = std::max(stats.peak_reserved_bytes, stats.reserved_bytes);
  return stats;
}

void Ledger::reset_peak() {
  const std::lock_guard guard(lock_);
  stats_.peak_bytes = live_bytes_.load(std::memory_order_relaxed);
  stats_.peak_reserved_bytes = reserved_bytes();
}

void Ledger::reset_accumulated() {
  const std::lock_guard guard(lock_);
  stats_.total_allocated_bytes = 0;
  stats_.total_freed_bytes = 0;
  stats_.allocations = 0;
  stats_.out_of_memory = 0;
}

}  // namespace tpu::exec

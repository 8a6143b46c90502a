// SPDX-License-Identifier: Apache-2.0
#include "backend/cell.h"

#include <deque>
#include <mutex>

namespace torch_tpu {

// Cells live in slabs so that the rare lookup by address can walk them.
class CellArena {
 public:
  // Never destroyed: storages may die after static destructors have run.
  static CellArena& instance() {
    static auto* arena = new CellArena;
    return *arena;
  }

  Cell* acquire(size_t bytes, c10::DeviceIndex device) {
    const std::lock_guard lock(mutex_);
    Cell* cell = free_;
    if (cell) {
      free_ = cell->next_free_;
    } else {
      cell = &cells_.emplace_back();
    }
    cell->device_ = device;
    cell->live_ = true;
    cell->bytes_ = bytes;
    cell->address_ = bytes ? next_address_ : 0;
    next_address_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return cell;
  }

  void release(Cell* cell) {
    cell->array = {};
    cell->value.reset();
    cell->recording = nullptr;
    const std::lock_guard lock(mutex_);
    cell->live_ = false;
    cell->next_free_ = free_;
    free_ = cell;
  }

  Cell* find(uintptr_t address) {
    const std::lock_guard lock(mutex_);
    for (Cell& c : cells_) {
      if (c.live_ && address >= c.address_ && address < c.address_ + c.bytes_) return &c;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kAlignment = 512;
  std::mutex mutex_;  // guards everything below
  std::deque<Cell> cells_;
  Cell* free_ = nullptr;
  uintptr_t next_address_ = uintptr_t{1} << 56;  // non-canonical: a stray dereference faults
};

c10::DataPtr Cell::make(size_t bytes, c10::DeviceIndex device) {
  Cell* cell = CellArena::instance().acquire(bytes, device);
  return {reinterpret_cast<void*>(cell->address_), cell, &Cell::release,
          c10::Device(c10::DeviceType::PrivateUse1, device)};
}

void Cell::release(void* cell) { CellArena::instance().release(static_cast<Cell*>(cell)); }

Cell& Cell::of(const c10::StorageImpl& storage) {
  const c10::DataPtr& ptr = storage.data_ptr();
  if (ptr.get_deleter() == &Cell::release) [[likely]] {
    return *static_cast<Cell*>(ptr.get_context());
  }
  Cell* cell = CellArena::instance().find(reinterpret_cast<uintptr_t>(ptr.get()));
  TORCH_CHECK(cell, "this tpu storage was not created by torch_tpu");
  return *cell;
}

}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
// A storage is a Cell: what the DataPtr of a tpu storage owns.
//
// A Cell holds one immutable exec::Array (dense, of any shape, covering the storage's bytes), or a
// value of a graph being recorded, or nothing yet (`empty` costs no device memory). Writing means
// giving the Cell a new array; every alias sees it because aliases share the storage. Its address
// is virtual: unique, stable for the storage's life, never dereferenceable.
//
// A Cell's array is replaced under its device's queue_lock(). guard() is for looking at it without
// that lock: threads that share a tensor without synchronizing may see either value, never a freed
// one.
#pragma once

#include <atomic>
#include <optional>

#include "backend/torch_headers.h"
#include "core/exec/device.h"
#include "core/ir/graph.h"

namespace torch_tpu {

class Recording;

class Cell {
 public:
  // The DataPtr of a new storage of `bytes` on `device`; null address for 0 bytes.
  static c10::DataPtr make(size_t bytes, c10::DeviceIndex device);
  // The Cell of a tpu storage, also one that torch has re-wrapped around the same address. Throws
  // if the storage was not made by this backend.
  static Cell& of(const c10::StorageImpl& storage);
  static Cell& of(const at::Tensor& tensor) { return of(*tensor.storage().unsafeGetStorageImpl()); }

  tpu::exec::ArrayRef array;

  // A value of the private graph being recorded on this thread, instead of an array.
  Recording* recording = nullptr;
  std::optional<tpu::ir::Value> value;

  // Held for a few instructions.
  class Guard {
   public:
    explicit Guard(Cell& cell) : flag_(cell.busy_) {
      while (flag_.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Guard() { flag_.clear(std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic_flag& flag_;
  };
  void replace(tpu::exec::ArrayRef next) {
    {
      const Guard guard(*this);
      std::swap(array, next);
    }
  }

  c10::DeviceIndex device() const { return device_; }
  bool written() const { return array || value; }
  uintptr_t address() const { return address_; }

 private:
  friend class CellArena;
  static void release(void* cell);
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  uintptr_t address_ = 0;
  size_t bytes_ = 0;
  c10::DeviceIndex device_ = 0;
  bool live_ = false;
  Cell* next_free_ = nullptr;
};

}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
// What torch asks of a device backend outside of operators: availability, generators, storages,
// pinned memory, and the allocator behind torch.accelerator's memory functions.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <mutex>
#include <unordered_set>

#include "backend/cell.h"
#include "backend/device.h"
#include "backend/generator.h"

namespace torch_tpu {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

// Host memory that transfers may use; ordinary memory, remembered so that is_pinned() is true.
class PinnedAllocator final : public c10::Allocator {
 public:
  static PinnedAllocator& instance() {
    static auto* allocator = new PinnedAllocator;
    return *allocator;
  }
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr inner = c10::GetCPUAllocator()->allocate(bytes);
    void* data = inner.get();
    {
      const std::lock_guard lock(mutex_);
      live_.insert(data);
    }
    auto* held = new c10::DataPtr(std::move(inner));
    return {data, held, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool owns(const void* data) {
    const std::lock_guard lock(mutex_);
    return live_.contains(data);
  }

 private:
  static void release(void* context) {
    auto* held = static_cast<c10::DataPtr*>(context);
    {
      const std::lock_guard lock(instance().mutex_);
      instance().live_.erase(held->get());
    }
    delete held;
  }
  std::mutex mutex_;  // guards live_
  std::unordered_set<const void*> live_;
};

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return Cell::make(bytes, current_device()); }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* /*to*/, const void* /*from*/, size_t /*bytes*/) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "tpu storages cannot be copied by address");
  }
  bool initialized() override { return tpu::exec::Runtime::started(); }
  void emptyCache(c10::MempoolId_t /*pool*/) override {
    if (!initialized()) return;
    for (int i = 0; i < device_count(); ++i) device(static_cast<c10::DeviceIndex>(i)).empty_cache();
  }
  void recordStream(const c10::DataPtr& /*ptr*/, c10::Stream /*stream*/) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    if (!initialized()) return stats;
    const tpu::exec::MemoryStats m = device(index).memory();
    const auto set = [](auto& array, size_t current, size_t peak, uint64_t up, uint64_t down) {
      auto& s = array[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
      s.current = static_cast<int64_t>(current);
      s.peak = static_cast<int64_t>(peak);
      s.allocated = static_cast<int64_t>(up);
      s.freed = static_cast<int64_t>(down);
    };
    set(stats.allocated_bytes, m.live_bytes, m.peak_bytes, m.total_allocated_bytes,
        m.total_freed_bytes);
    set(stats.active_bytes, m.live_bytes, m.peak_bytes, m.total_allocated_bytes,
        m.total_freed_bytes);
    set(stats.requested_bytes, m.live_bytes, m.peak_bytes, m.total_allocated_bytes,
        m.total_freed_bytes);
    set(stats.reserved_bytes, m.reserved_bytes, m.peak_reserved_bytes, m.reserved_bytes, 0);
    set(stats.allocation, m.live_arrays, m.live_arrays, m.allocations,
        m.allocations - m.live_arrays);
    stats.num_ooms = static_cast<int64_t>(m.out_of_memory);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    if (initialized()) device(index).reset_accumulated_memory();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    if (initialized()) device(index).reset_peak_memory();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const tpu::exec::MemoryStats m = device(index).memory();
    return {m.limit_bytes - std::min(m.limit_bytes, m.live_bytes), m.limit_bytes};
  }
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override {
    return tpu::exec::Runtime::started();
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return new_generator(index);
  }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return exchange_current_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current_device() : exchange_current_device(index);
  }
  at::Device getDeviceFromPtr(void* /*data*/) const override { return {kType, current_device()}; }
  bool isPinnedPtr(const void* data) const override {
    return PinnedAllocator::instance().owns(data);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedAllocator::instance(); }

  // Frees or gives memory: the storage gets a fresh Cell, its old bytes copied as far as they go.
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
    const size_t old_bytes = impl.nbytes();
    if (bytes == old_bytes) return;
    const c10::DeviceIndex index = impl.device().index();
    c10::Storage old(c10::Storage::use_byte_size_t(), static_cast<int64_t>(old_bytes),
                     impl.set_data_ptr(Cell::make(bytes, index)), impl.allocator(), true);
    impl.set_nbytes(bytes);
    const auto kept = static_cast<int64_t>(std::min(bytes, old_bytes));
    if (kept == 0 || !Cell::of(*old.unsafeGetStorageImpl()).written()) return;
    const auto options = at::TensorOptions().device(storage.device()).dtype(at::kByte);
    const auto bytes_of = [&](const c10::Storage& s) {
      return at::empty({0}, options).set_(s, 0, {kept}, {1});
    };
    bytes_of(storage).copy_(bytes_of(old));
  }
};

const bool registered = [] {
  static auto* allocator = new Allocator;
  static auto* hooks = new Hooks;
  c10::SetAllocator(kType, allocator);
  at::RegisterPrivateUse1HooksInterface(hooks);
  return true;
}();

}  // namespace
}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/device.h"

#include <cstring>

#include "core/exec/buffer_type.h"
#include "core/exec/device_impl.h"
#include "core/exec/fork_guard.h"

namespace tpu::exec {

Device::Impl::Impl(Runtime& runtime, int index)
    : runtime(runtime),
      index(index),
      client(runtime.client()),
      device(client.devices()[static_cast<size_t>(index)]),
      host_readable(runtime.is_cpu()),
      ledger(index, pool),
      checks(host_readable),
      words(client, device) {}

Result<pjrt::Buffer> Device::Impl::wrap(BlockPool::Block block, const ir::Type& type) {
  auto wrapped = client.wrap_host_memory({block.data, buffer_type(type.dtype), type.dims}, device);
  if (!wrapped.ok()) {
    pool.give(block);
    return wrapped.status();
  }
  // If this fails, the block is never given back, which is safe.
  TPU_RETURN_IF_ERROR(wrapped->done.on_ready([this, block](const Status&) { pool.give(block); }));
  return std::move(wrapped->buffer);
}

Result<pjrt::Buffer> Device::Impl::destination(const ir::Type& type) {
  auto block = pool.take(type.bytes());
  if (!block.ok()) return block.status();
  return wrap(block.value(), type);
}

Result<pjrt::Buffer> Device::Impl::upload(const void* data, const ir::Type& type) {
  if (!host_readable || type.bytes() < BlockPool::kSmallest) {
    return client.copy_from_host({data, buffer_type(type.dtype), type.dims}, device);
  }
  auto block = pool.take(type.bytes());
  if (!block.ok()) return block.status();
  std::memcpy(block->data, data, type.bytes());
  return wrap(block.value(), type);
}

Array::Array(Device& device, ir::Type type, pjrt::Buffer buffer)
    : device_(device), type_(std::move(type)), bytes_(type_.bytes()), buffer_(std::move(buffer)) {
  TPU_CHECK(buffer_, "an array is made of a value");
  device_.impl_->ledger.add(*this);
}

Array::Array(Device& device, ir::Type type)
    : device_(device), type_(std::move(type)), bytes_(type_.bytes()), promised_(true) {}

Array::~Array() {
  if (buffer_ && !pjrt::handles_abandoned.load(std::memory_order_relaxed)) {
    device_.impl_->ledger.remove(*this);
  }
}

void Array::empty() { (void)take(); }

pjrt::Buffer Array::take() {
  device_.impl_->ledger.remove(*this);
  return std::move(buffer_);
}

void Array::keep_promise(pjrt::Buffer buffer) {
  TPU_CHECK(promised() && buffer, "a promise is kept once, with a value");
  buffer_ = std::move(buffer);
  device_.impl_->ledger.add(*this);
  promised_.store(false, std::memory_order_release);
}

void Array::break_promise(const Status& failure) {
  failure_ = std::make_unique<const Status>(failure);
  promised_.store(false, std::memory_order_release);
}

Status Array::missing() const {
  if (failure_) return *failure_;
  return {Code::kFailedPrecondition,
          fmt::format("the value of {} was donated to a launch", type_.str())};
}

Device::Device(Runtime& runtime, int index) : impl_(std::make_unique<Impl>(runtime, index)) {}
Device::~Device() = default;

int Device::index() const { return impl_->index; }
Runtime& Device::runtime() const { return impl_->runtime; }

Result<ArrayRef> Device::upload(const void* data, const ir::Type& type) {
  if (out_of_service()) return out_of_service_status();
  TPU_RETURN_IF_ERROR(impl_->ledger.admit(type.bytes()));
  auto buffer = impl_->upload(data, type);
  if (!buffer.ok()) return buffer.status();
  return ArrayRef(new Array(*this, type, std::move(buffer).value()));
}

Status Device::download(const Array& array, void* data) {
  if (out_of_service()) return out_of_service_status();
  if (array.promised()) settle();
  if (!array.buffer()) return array.missing();
  if (!impl_->host_readable) {
    auto copied = array.buffer().to_host(data, array.bytes());
    return copied.ok() ? copied->await() : copied.status();
  }
  TPU_RETURN_IF_ERROR(array.buffer().await());
  if (array.bytes() == 0) return {};
  const auto pointer = array.buffer().unsafe_pointer();
  if (!pointer.ok()) return pointer.status();
  std::memcpy(data, pointer.value(), array.bytes());
  return {};
}

Result<ArrayRef> Device::copy_from(const Array& source) {
  if (out_of_service()) return out_of_service_status();
  if (source.promised()) source.device().settle();
  TPU_RETURN_IF_ERROR(impl_->ledger.admit(source.bytes()));
  if (impl_->host_readable && source.bytes() > 0 && source.buffer()) {
    TPU_RETURN_IF_ERROR(source.buffer().await());
    const auto pointer = source.buffer().unsafe_pointer();
    if (!pointer.ok()) return pointer.status();
    return upload(pointer.value(), source.type());
  }
  if (&source.device() != this && source.buffer()) {
    auto buffer = source.buffer().copy_to_device(impl_->device);
    if (!buffer.ok()) return buffer.status();
    return ArrayRef(new Array(*this, source.type(), std::move(buffer).value()));
  }
  std::vector<std::byte> host(source.bytes());
  TPU_RETURN_IF_ERROR(source.device().download(source, host.data()));
  return upload(host.data(), source.type());
}

Status Device::synchronize() {
  if (out_of_service()) return out_of_service_status();
  settle();
  impl_->flights.wait(impl_->flights.last());
  TPU_RETURN_IF_ERROR(impl_->flights.take_error());
  raise_failed_checks();
  return {};
}

void Device::raise_failed_checks() {
  throw_if_error(out_of_service() ? out_of_service_status() : Status());
  settle();
  impl_->checks.raise_first();
}

void Device::raise_known_failures() { impl_->checks.raise_first_ready(); }

bool Device::idle() {
  {
    const std::lock_guard guard(queue_lock_);
    if (!run_postponed()) return false;
  }
  return impl_->flights.finished(impl_->flights.last());
}

Device::Ticket Device::mark() {
  settle();
  return std::make_shared<const Flights::Point>(impl_->flights, impl_->flights.last());
}

MemoryStats Device::memory() {
  settle();
  return impl_->ledger.stats();
}
void Device::reset_peak_memory() { impl_->ledger.reset_peak(); }
void Device::reset_accumulated_memory() { impl_->ledger.reset_accumulated(); }
void Device::set_memory_limit(size_t bytes) { impl_->ledger.set_limit(bytes); }
void Device::empty_cache() { impl_->pool.trim(); }

}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
// The device guard: what autograd, streams and events ask of a device. Each device has one ordered
// queue, so every stream of a device is that queue; an event is a point in it.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>

#include "backend/convert.h"
#include "backend/device.h"

namespace torch_tpu {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
using Clock = std::chrono::steady_clock;

// What a void* event points to. `time` is when the work before it was found finished.
struct Event {
  tpu::exec::Device::Ticket ticket;
  Clock::time_point time;
};

thread_local std::vector<c10::StreamId> current_streams;

c10::Stream stream_of(c10::Device d, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, d.has_index() ? d : c10::Device(kType, current_device()),
                     id);
}

void wait(const tpu::exec::Device::Ticket& ticket) {
  if (!ticket) return;
  const WithoutGil released;
  const tpu::Status status = ticket->await();
  TORCH_CHECK(status.ok(), status.message());
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device d) const override {
    return {kType, exchange_current_device(d.index())};
  }
  c10::Device getDevice() const override { return {kType, current_device()}; }
  void setDevice(c10::Device d) const override { set_current_device(d.index()); }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    if (d.index() >= 0 && d.index() < device_count()) set_current_device(d.index());
  }
  c10::DeviceCapability getDeviceCapability(c10::Device /*device*/) const override {
    c10::DeviceCapability held;
    uint64_t bits = 0;
    held.forEachSupportedScalarType([&](c10::ScalarType t) {
      if (dtype_of_or_none(t)) bits |= uint64_t{1} << static_cast<int>(t);
    });
    held.capability_data.capability_bits = bits;
    return held;
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(device_count());
  }

  c10::Stream getStream(c10::Device d) const override {
    const auto i = static_cast<size_t>(d.has_index() ? d.index() : current_device());
    return stream_of(d, i < current_streams.size() ? current_streams[i] : 0);
  }
  c10::Stream getDefaultStream(c10::Device d) const override { return stream_of(d, 0); }
  c10::Stream getNewStream(c10::Device d, int /*priority*/) const override {
    static std::atomic<c10::StreamId> next{1};
    return stream_of(d, next++);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool /*high_priority*/) const override {
    return getNewStream(d, 0);
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    const c10::Stream previous = getStream(s.device());
    const auto i = static_cast<size_t>(s.device_index());
    if (current_streams.size() <= i) current_streams.resize(i + 1, 0);
    current_streams[i] = s.id();
    return previous;
  }
  bool queryStream(const c10::Stream& s) const override {
    return !tpu::exec::Runtime::started() || device(s.device_index()).idle();
  }
  void synchronizeStream(const c10::Stream& s) const override { synchronize(s.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex i) const override { synchronize(i); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*index*/,
              const c10::EventFlag /*flag*/) const override {
    if (!*event) *event = new Event;
    auto& e = *static_cast<Event*>(*event);
    e.ticket = tpu::exec::Runtime::started() ? device(stream.device_index()).mark() : nullptr;
    e.time = Clock::now();
  }
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {
    // One ordered queue per device: what was recorded is before whatever comes next. Across
    // devices a launch waits for its own operands.
  }
  bool queryEvent(void* event) const override {
    const auto* e = static_cast<Event*>(event);
    return !e || !e->ticket || e->ticket->is_ready();
  }
  void synchronizeEvent(void* event) const override {
    if (auto* e = static_cast<Event*>(event)) wait(e->ticket);
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex /*index*/) const override {
    TORCH_CHECK(start && end, "Both events must be recorded before calculating elapsed time.");
    const auto delta = static_cast<Event*>(end)->time - static_cast<Event*>(start)->time;
    return std::chrono::duration<double, std::milli>(delta).count();
  }
  void recordDataPtrOnStream(const c10::DataPtr& /*ptr*/,
                             const c10::Stream& /*stream*/) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace
}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
#include "backend/device.h"

#include "backend/convert.h"

namespace torch_tpu {
namespace {

thread_local c10::DeviceIndex current = 0;
GilHooks hooks;

void check_index(c10::DeviceIndex index) {
  const int count = device_count();
  TORCH_CHECK(index >= 0 && index < count, "invalid device index ", static_cast<int>(index),
              ": there are ", count, " tpu devices");
}

}  // namespace

c10::DeviceIndex current_device() { return current; }

void set_current_device(c10::DeviceIndex index) {
  check_index(index);
  current = index;
}

c10::DeviceIndex exchange_current_device(c10::DeviceIndex index) {
  const c10::DeviceIndex previous = current;
  if (index != previous) set_current_device(index);
  return previous;
}

void refuse_mixed_devices(c10::Device a, c10::Device b) {
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two devices, ", a,
              " and ", b, "!");
}

int device_count() { return tpu::exec::Runtime::device_count(); }

tpu::exec::Runtime& runtime() {
  return translating_errors([]() -> tpu::exec::Runtime& { return tpu::exec::Runtime::instance(); });
}

tpu::exec::Device& device(c10::DeviceIndex index) {
  return translating_errors(
      [&]() -> tpu::exec::Device& { return tpu::exec::Runtime::instance().device(index); });
}

void synchronize(c10::DeviceIndex index) {
  if (!tpu::exec::Runtime::started()) return;
  const WithoutGil released;
  translating_errors([&] { tpu::throw_if_error(device(index).synchronize()); });
}

void set_gil_hooks(GilHooks h) { hooks = h; }
const GilHooks& gil_hooks() { return hooks; }

}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
// Which tpu device the calling thread is on, and the way to its executor. Nothing here starts the
// runtime except runtime().
#pragma once

#include "backend/torch_headers.h"
#include "core/exec/runtime.h"

namespace torch_tpu {

c10::DeviceIndex current_device();
// RuntimeError if there is no such device.
void set_current_device(c10::DeviceIndex index);
c10::DeviceIndex exchange_current_device(c10::DeviceIndex index);
int device_count();
inline c10::Device tpu_device(c10::DeviceIndex index) {
  return {c10::DeviceType::PrivateUse1, index};
}
// RuntimeError with PyTorch's text about tensors on two devices.
[[noreturn]] void refuse_mixed_devices(c10::Device a, c10::Device b);

// Starts the client on first use; errors arrive as torch exceptions.
tpu::exec::Runtime& runtime();
tpu::exec::Device& device(c10::DeviceIndex index);

// Waits for everything launched on the device and raises deferred errors. Gives up the GIL while
// waiting if this thread holds it.
void synchronize(c10::DeviceIndex index);

// Runs a blocking call without the GIL. Set by the bindings; the torch layer itself has no Python.
struct GilHooks {
  void* (*release)() = nullptr;  // null result: the GIL was not held
  void (*reacquire)(void*) = nullptr;
  std::string (*python_line)() = nullptr;
};
void set_gil_hooks(GilHooks hooks);
const GilHooks& gil_hooks();

class WithoutGil {
 public:
  WithoutGil() : state_(gil_hooks().release ? gil_hooks().release() : nullptr) {}
  ~WithoutGil() {
    if (state_) gil_hooks().reacquire(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* state_;
};

}  // namespace torch_tpu

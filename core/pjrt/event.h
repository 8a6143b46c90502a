// SPDX-License-Identifier: Apache-2.0
// Something the plugin will have finished: a transfer, an execution, the use of host memory.
// Owns the plugin's event; an empty Event is one that has already happened. Const members are
// thread-safe.
#pragma once

#include <memory>

#include "core/pjrt/api.h"

namespace tpu::pjrt {

class Event : public Handle<PJRT_Event, PJRT_Event_Destroy_Args, &PJRT_Api::PJRT_Event_Destroy,
                            &PJRT_Event_Destroy_Args::event> {
 public:
  using Handle::Handle;

  bool is_ready() const;
  // Blocks; the status of what was waited for.
  Status await() const;

  // Runs `callback(Status)` once when ready: before this returns, or on a thread of the plugin,
  // where it must neither block nor take locks that are held around calls of the plugin. The Event
  // itself may be destroyed meanwhile. On failure to register, the callback never runs.
  template <class Callback>
  Status on_ready(Callback callback) const {
    struct Closure {
      const Api* api;
      Callback callback;
    };
    auto closure = std::make_unique<Closure>(Closure{api_, std::move(callback)});
    if (raw_ == nullptr) {
      closure->callback(Status());
      return {};
    }
    const auto run = [](PJRT_Error* error, void* argument) {
      const std::unique_ptr<Closure> owned(static_cast<Closure*>(argument));
      owned->callback(owned->api->take(error));
    };
    TPU_RETURN_IF_ERROR(register_callback(run, closure.get()));
    closure.release();
    return {};
  }

 private:
  Status register_callback(PJRT_Event_OnReadyCallback callback, void* argument) const;
};

}  // namespace tpu::pjrt

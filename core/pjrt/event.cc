// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/event.h"

namespace tpu::pjrt {

bool Event::is_ready() const {
  if (raw_ == nullptr) return true;
  auto args = make_args<PJRT_Event_IsReady_Args>();
  args.event = raw_;
  // A failure to ask is reported by await().
  return !api_->call<&PJRT_Api::PJRT_Event_IsReady>(args).ok() || args.is_ready;
}

Status Event::await() const {
  if (raw_ == nullptr) return {};
  auto args = make_args<PJRT_Event_Await_Args>();
  args.event = raw_;
  return api_->call<&PJRT_Api::PJRT_Event_Await>(args);
}

Status Event::register_callback(PJRT_Event_OnReadyCallback callback, void* argument) const {
  auto args = make_args<PJRT_Event_OnReady_Args>();
  args.event = raw_;
  args.callback = callback;
  args.user_arg = argument;
  return api_->call<&PJRT_Api::PJRT_Event_OnReady>(args);
}

}  // namespace tpu::pjrt

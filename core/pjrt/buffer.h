// SPDX-License-Identifier: Apache-2.0
// A device array of the plugin. Owns the handle: destroying it frees the memory once running
// programs have finished with it. Const members are thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/pjrt/event.h"

namespace tpu::pjrt {

// Bytes of one element; 0 for types that have no whole number of bytes.
size_t element_bytes(PJRT_Buffer_Type type);

class Buffer : public Handle<PJRT_Buffer, PJRT_Buffer_Destroy_Args, &PJRT_Api::PJRT_Buffer_Destroy,
                             &PJRT_Buffer_Destroy_Args::buffer> {
 public:
  using Handle::Handle;

  Result<PJRT_Buffer_Type> element_type() const;
  Result<std::span<const int64_t>> dims() const;  // valid as long as the buffer
  Result<size_t> device_bytes() const;

  // Deleted or donated.
  Result<bool> is_deleted() const;
  // Ready when the value is; carries the error if computing it failed.
  Result<Event> ready_event() const;
  // Blocks until the value is there.
  Status await() const;

  // The address of the data; on plugins that compute on the host it may be read once ready.
  Result<const void*> unsafe_pointer() const;
  // Starts a copy to `data` in dense row-major order; `data` must live until the event.
  Result<Event> to_host(void* data, size_t bytes) const;
  // kInvalidArgument if it is on that device already.
  Result<Buffer> copy_to_device(PJRT_Device* device) const;
};

}  // namespace tpu::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/buffer.h"

#include <vector>

namespace tpu::pjrt {

size_t element_bytes(PJRT_Buffer_Type type) {
  switch (type) {
    case PJRT_Buffer_Type_PRED:
    case PJRT_Buffer_Type_S8:
    case PJRT_Buffer_Type_U8:
    case PJRT_Buffer_Type_F8E5M2:
    case PJRT_Buffer_Type_F8E4M3FN:
    case PJRT_Buffer_Type_F8E4M3B11FNUZ:
    case PJRT_Buffer_Type_F8E5M2FNUZ:
    case PJRT_Buffer_Type_F8E4M3FNUZ:
    case PJRT_Buffer_Type_F8E4M3:
    case PJRT_Buffer_Type_F8E3M4:
    case PJRT_Buffer_Type_F8E8M0FNU:
      return 1;
    case PJRT_Buffer_Type_S16:
    case PJRT_Buffer_Type_U16:
    case PJRT_Buffer_Type_F16:
    case PJRT_Buffer_Type_BF16:
      return 2;
    case PJRT_Buffer_Type_S32:
    case PJRT_Buffer_Type_U32:
    case PJRT_Buffer_Type_F32:
      return 4;
    case PJRT_Buffer_Type_S64:
    case PJRT_Buffer_Type_U64:
    case PJRT_Buffer_Type_F64:
    case PJRT_Buffer_Type_C64:
      return 8;
    case PJRT_Buffer_Type_C128:
      return 16;
    default:
      return 0;
  }
}

Result<PJRT_Buffer_Type> Buffer::element_type() const {
  auto args = make_args<PJRT_Buffer_ElementType_Args>();
  args.buffer = raw_;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Buffer_ElementType>(args));
  return args.type;
}

Result<std::span<const int64_t>> Buffer::dims() const {
  auto args = make_args<PJRT_Buffer_Dimensions_Args>();
  args.buffer = raw_;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Buffer_Dimensions>(args));
  return std::span(args.dims, args.num_dims);
}

Result<size_t> Buffer::device_bytes() const {
  auto args = make_args<PJRT_Buffer_OnDeviceSizeInBytes_Args>();
  args.buffer = raw_;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Buffer_OnDeviceSizeInBytes>(args));
  return args.on_device_size_in_bytes;
}

Result<bool> Buffer::is_deleted() const {
  auto args = make_args<PJRT_Buffer_IsDeleted_Args>();
  args.buffer = raw_;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Buffer_IsDeleted>(args));
  return args.is_deleted;
}

Result<Event> Buffer::ready_event() const {
  auto args = make_args<PJRT_Buffer_ReadyEvent_Args>();
  args.buffer = raw_;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Buffer_ReadyEvent>(args));
  return Event(api_, args.event);
}

Status Buffer::await() const {
  auto event = ready_event();
  return event.ok() ? event->await() : event.status();
}

Result<const void*> Buffer::unsafe_pointer() const {
  auto args = make_args<PJRT_Buffer_UnsafePointer_Args>();
  args.buffer = raw_;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Buffer_UnsafePointer>(args));
  return reinterpret_cast<const void*>(args.buffer_pointer);
}

Result<Event> Buffer::to_host(void* data, size_t bytes) const {
  auto own_dims = dims();
  if (!own_dims.ok()) return own_dims.status();
  // Without a layout the copy would have the device's, which is not row-major on every plugin.
  std::vector<int64_t> minor_to_major;
  for (size_t i = own_dims->size(); i-- > 0;) minor_to_major.push_back(static_cast<int64_t>(i));
  auto layout = make_args<PJRT_Buffer_MemoryLayout>();
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled = make_args<PJRT_Buffer_MemoryLayout_Tiled>();
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();

  auto args = make_args<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = raw_;
  args.host_layout = &layout;
  args.dst = data;
  args.dst_size = bytes;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Buffer_ToHostBuffer>(args));
  return Event(api_, args.event);
}

Result<Buffer> Buffer::copy_to_device(PJRT_Device* device) const {
  auto args = make_args<PJRT_Buffer_CopyToDevice_Args>();
  args.buffer = raw_;
  args.dst_device = device;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Buffer_CopyToDevice>(args));
  return Buffer(api_, args.dst_buffer);
}

}  // namespace tpu::pjrt

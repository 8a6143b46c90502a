// SPDX-License-Identifier: Apache-2.0
// Making tensors on the device; no device memory until the first write.
#pragma once

#include "backend/torch_headers.h"

namespace torch_tpu {

// Empty `strides` with non-empty sizes: contiguous.
at::Tensor make_tensor(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype,
                       c10::DeviceIndex index);

}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
// The plugin's name of an element type.
#pragma once

#include <pjrt_c_api.h>

#include "core/ir/dtype.h"

namespace tpu::exec {

PJRT_Buffer_Type buffer_type(ir::DType dtype);

}  // namespace tpu::exec

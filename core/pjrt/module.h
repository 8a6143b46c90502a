// SPDX-License-Identifier: Apache-2.0
// StableHLO text as the C API takes it.
#pragma once

#include <string>

#include "core/pjrt/api.h"

namespace tpu::pjrt {

// A view of `module`, which must outlive it. kInvalidArgument if a dimension is unbounded: some
// compilers abort on one instead of returning an error.
Result<PJRT_Program> program_of(const std::string& module);

}  // namespace tpu::pjrt

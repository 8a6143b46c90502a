// SPDX-License-Identifier: Apache-2.0
// Operators whose result is as long as the data says. The device counts, the host waits for that
// one number, and the program that fills the result is compiled for a bucket of lengths, so that a
// changing count does not recompile: the result is the front of a longer storage.
#pragma once

#include "backend/torch_headers.h"

namespace torch_tpu {

// The length to compile for: powers of two up to 4096, then multiples of 4096.
int64_t bucket(int64_t count);
// Waits for the device. Abandons a recording.
int64_t count_true(const at::Tensor& mask);

}  // namespace torch_tpu

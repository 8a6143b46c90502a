// SPDX-License-Identifier: Apache-2.0
// Errors that host calls met while their program ran, on the way to the thread that waits: the
// program returns the error's number like the result of a check. Process-wide, thread-safe.
#pragma once

#include <cstdint>

#include "core/base/error.h"

namespace tpu::exec {

// The number, never 0. Of many errors that nobody asks for the oldest are forgotten.
int64_t keep_host_error(const Error& error);
// The error of that number, which is forgotten; a general one if it has been forgotten before.
Error take_host_error(int64_t number);

}  // namespace tpu::exec

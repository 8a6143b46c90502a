// SPDX-License-Identifier: Apache-2.0
// Host calls: PyTorch's CPU kernels called from inside programs, on the CPU plugin. This is the
// side that is called; core/hlo/host_call.h makes the calls. Thread-safe.
#pragma once

#include "backend/torch_headers.h"
#include "core/exec/runtime.h"

namespace torch_tpu {

// Tells the plugin of the function behind the calls, if it takes one.
void register_host_calls(tpu::pjrt::Client& client);

// Whether programs may contain host calls: the setting, the plugin, and a probe that is made once
// per machine.
bool host_calls_allowed();

// TORCH_TPU_HOST_CALLS; part of every program's key.
void set_host_calls(bool enabled);
bool host_calls_enabled();

}  // namespace torch_tpu

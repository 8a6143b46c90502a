// SPDX-License-Identifier: Apache-2.0
// Whether the plugin may be called at all: not in a forked child, where its threads do not exist
// and the first operation would hang, and not after shutdown. Every entry asks here and refuses.
// Thread-safe.
#pragma once

#include "core/base/result.h"
#include "core/pjrt/api.h"

namespace tpu::exec {

inline bool out_of_service() { return pjrt::handles_abandoned.load(std::memory_order_relaxed); }
// The refusal; for a forked child in the words of PyTorch's CUDA backend.
Status out_of_service_status();

bool in_forked_child();

// From now on `in_child` runs in every forked child, and if it returns true, the child is one that
// must not call the plugin. Once per process.
void watch_forks(bool (*in_child)());

}  // namespace tpu::exec

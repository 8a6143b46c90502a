// SPDX-License-Identifier: Apache-2.0
// The parts of a Device, shared by its two source files. Each part says how it is locked.
#pragma once

#include "core/exec/block_pool.h"
#include "core/exec/check_queue.h"
#include "core/exec/device.h"
#include "core/exec/ledger.h"
#include "core/exec/postponed.h"
#include "core/exec/runtime.h"
#include "core/exec/word_cache.h"

namespace tpu::exec {

struct Device::Impl {
  Runtime& runtime;
  const int index;
  pjrt::Client& client;
  PJRT_Device* const device;
  const bool host_readable;  // arrays are host memory
  BlockPool pool;
  Ledger ledger;
  Flights flights;
  CheckQueue checks;
  WordCache words;
  std::deque<Postponed> postponed;  // under queue_lock()
  size_t promised_bytes = 0;        // of their results

  Impl(Runtime& runtime, int index);

  // An array's memory taken from the pool, for a program to write into.
  Result<pjrt::Buffer> destination(const ir::Type& type);
  Result<pjrt::Buffer> upload(const void* data, const ir::Type& type);

 private:
  // A buffer over `block`, which returns to the pool once nothing uses the memory any more.
  Result<pjrt::Buffer> wrap(BlockPool::Block block, const ir::Type& type);
};

}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
#include "backend/mode.h"

#include <atomic>

namespace torch_tpu {
namespace {

std::atomic<int> process_mode{static_cast<int>(EagerMode::kStrict)};
thread_local int thread_mode = -1;

}  // namespace

EagerMode eager_mode() {
  return static_cast<EagerMode>(thread_mode >= 0 ? thread_mode
                                                 : process_mode.load(std::memory_order_relaxed));
}

void set_eager_mode(EagerMode mode) { process_mode = static_cast<int>(mode); }

int exchange_thread_eager_mode(int mode) {
  const int previous = thread_mode;
  thread_mode = mode;
  return previous;
}

}  // namespace torch_tpu

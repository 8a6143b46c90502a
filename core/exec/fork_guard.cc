// SPDX-License-Identifier: Apache-2.0
#include "core/exec/fork_guard.h"

#include <pthread.h>

namespace tpu::exec {
namespace {

std::atomic<bool> forked{false};
bool (*after_fork)() = nullptr;

void mark_child() {
  if (!after_fork()) return;
  forked.store(true);
  pjrt::abandon_handles();
}

}  // namespace

bool in_forked_child() { return forked.load(std::memory_order_relaxed); }

Status out_of_service_status() {
  if (in_forked_child()) {
    return {Code::kFailedPrecondition,
            "Cannot re-initialize TPU in forked subprocess. To use TPU with multiprocessing, you "
            "must use the 'spawn' start method"};
  }
  return {Code::kFailedPrecondition, "TPU was used after its runtime had been shut down"};
}

void watch_forks(bool (*in_child)()) {
  TPU_CHECK(after_fork == nullptr, "forks are watched once per process");
  after_fork = in_child;
  pthread_atfork(nullptr, nullptr, mark_child);
}

}  // namespace tpu::exec

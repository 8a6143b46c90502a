// SPDX-License-Identifier: Apache-2.0
#include "core/exec/flights.h"

namespace tpu::exec {
namespace {

// Launches finish nearly in order, so looking at more than a few of the oldest finds little.
constexpr size_t kLookedAt = 64;

}  // namespace

bool Flights::add(pjrt::Event event) {
  if (event.is_ready()) [[likely]] {
    Status status = event.await();
    if (status.ok()) [[likely]]
      return true;
    const std::lock_guard guard(lock_);
    note(std::move(status));
    return true;
  }
  auto shared = std::make_shared<const pjrt::Event>(std::move(event));
  const std::lock_guard guard(lock_);
  drop_finished();
  flying_.push_back({++last_, std::move(shared)});
  count_.store(flying_.size(), std::memory_order_release);
  return false;
}

uint64_t Flights::last() const {
  const std::lock_guard guard(lock_);
  return last_;
}

bool Flights::finished(uint64_t number) {
  const std::lock_guard guard(lock_);
  drop_finished();
  for (const Flight& f : flying_) {
    if (f.number > number) break;
    if (!f.event->is_ready()) return false;
  }
  return true;
}

void Flights::wait(uint64_t number) {
  while (true) {
    std::shared_ptr<const pjrt::Event> oldest;
    {
      const std::lock_guard guard(lock_);
      drop_finished();
      if (flying_.empty() || flying_.front().number > number) return;
      oldest = flying_.front().event;
    }
    (void)oldest->await();  // its error is noted when it is dropped
  }
}

void Flights::add_failure(Status status) {
  const std::lock_guard guard(lock_);
  note(std::move(status));
}

Status Flights::take_error() {
  const std::lock_guard guard(lock_);
  return std::exchange(error_, Status());
}

void Flights::note(Status status) {
  if (error_.ok()) error_ = std::move(status);
}

void Flights::drop_finished() {
  size_t looked = 0;
  while (!flying_.empty() && looked++ < kLookedAt && flying_.front().event->is_ready()) {
    note(flying_.front().event->await());
    flying_.pop_front();
  }
  count_.store(flying_.size(), std::memory_order_release);
}

}  // namespace tpu::exec

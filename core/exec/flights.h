// SPDX-License-Identifier: Apache-2.0
// The launches of one device that have not finished, and points in their order to wait for. Most
// launches on the CPU plugin finish before they return and never enter the list. Must outlive its
// Points. Thread-safe; waiting holds no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "core/pjrt/event.h"

namespace tpu::exec {

class Flights {
 public:
  // A launch whose completion is `event`. Whether it has finished already.
  bool add(pjrt::Event event);

  // Whether no launch is unfinished; takes the lock only if the list is not empty.
  bool none() { return count_.load(std::memory_order_acquire) == 0 || finished(~uint64_t{0}); }

  // Everything added so far has the number last() or a smaller one.
  uint64_t last() const;
  bool finished(uint64_t number);
  void wait(uint64_t number);

  // A launch that failed before it could fly.
  void add_failure(Status status);
  // The error of the first launch that failed since the last call, if any.
  Status take_error();

  // A point in the order, held by the user of a device.
  class Point {
   public:
    Point(Flights& flights, uint64_t number) : flights_(flights), number_(number) {}
    bool is_ready() const { return flights_.finished(number_); }
    // Blocks; ok always: failures are reported by Device::synchronize().
    Status await() const {
      flights_.wait(number_);
      return {};
    }

   private:
    Flights& flights_;
    const uint64_t number_;
  };

 private:
  struct Flight {
    uint64_t number;
    std::shared_ptr<const pjrt::Event> event;
  };
  void note(Status status);  // caller holds lock_
  void drop_finished();      // caller holds lock_

  mutable std::mutex lock_;  // guards all below
  uint64_t last_ = 0;
  std::deque<Flight> flying_;     // ascending numbers
  std::atomic<size_t> count_{0};  // of flying_, readable without the lock
  Status error_;
};

}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
// One device: its queue of launches, transfers, memory accounting and deferred user errors.
//
// Launches on a device are ordered by queue_lock(), which a caller holds from reading its cells'
// arrays until launch() has returned, so that donation cannot race with a reader. No Python and no
// tensor destruction happens under that lock. All other members are thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "core/exec/array.h"
#include "core/exec/flights.h"
#include "core/exec/program.h"

namespace tpu::exec {

class Runtime;
struct Postponed;

struct MemoryStats {
  size_t live_bytes = 0;  // held by arrays
  size_t peak_bytes = 0;
  size_t live_arrays = 0;
  size_t reserved_bytes = 0;  // live + free blocks kept by the allocator
  size_t peak_reserved_bytes = 0;
  size_t limit_bytes = 0;
  uint64_t total_allocated_bytes = 0;  // ever
  uint64_t total_freed_bytes = 0;
  uint64_t allocations = 0;
  uint64_t out_of_memory = 0;
};

struct Launch {
  const ProgramRef& program;
  std::span<Array* const> arguments;  // one per layout.arrays
  std::span<const int32_t> words;     // layout.words of them
  std::span<const int> donated;       // argument indices to donate, each in layout.aliases
  std::string_view op;                // for error messages
  std::string origin;                 // Python line, for programs with checks; may be empty
};

class Device {
 public:
  Device(Runtime& runtime, int index);
  ~Device();

  int index() const;
  Runtime& runtime() const;
  std::mutex& queue_lock() { return queue_lock_; }

  // Enqueues and returns; results become ready in launch order. On failure nothing was consumed. If
  // the program is still being compiled, or an earlier one is, the launch is postponed: its results
  // are promised, and should it fail then, whatever it was to overwrite keeps its old value.
  // kInvalidArgument if an argument's type is not the parameter's; kResourceExhausted if it would
  // pass the memory limit, naming the largest live arrays; kFailedPrecondition if an argument was
  // donated before. Donated arrays are empty afterwards. Caller holds queue_lock().
  Status launch(const Launch& launch, std::span<ArrayRef> results);

  // Waits for what is being compiled, until no launch is postponed. Not under queue_lock().
  void settle();

  // Copies from the host before returning. `data` is dense, row-major.
  Result<ArrayRef> upload(const void* data, const ir::Type& type);
  // Waits for the value and copies type().bytes() to `data`.
  Status download(const Array& array, void* data);
  // A copy of another device's (or this device's) array.
  Result<ArrayRef> copy_from(const Array& source);

  // Waits until everything launched so far has finished. The error of the first launch that failed
  // since the last call; if none did, throws like raise_failed_checks().
  Status synchronize();
  // Reads the checks of launches so far, waiting for them; tpu::Error of the first that failed.
  // Every later call reports the next one, never the same twice.
  void raise_failed_checks();
  // The same without waiting: only for launches known to have finished.
  void raise_known_failures();
  bool idle();  // nothing launched is unfinished

  // A point in the queue: everything launched before mark() is finished when is_ready(). await()
  // blocks until then.
  using Ticket = std::shared_ptr<const Flights::Point>;
  Ticket mark();

  MemoryStats memory();
  void reset_peak_memory();
  void reset_accumulated_memory();
  void set_memory_limit(size_t bytes);
  void empty_cache();  // gives free blocks back to the system

 private:
  friend class Array;
  struct Impl;
  // Those below: caller holds queue_lock().
  Status run(const Launch& launch, std::span<pjrt::Buffer> results);
  bool may_postpone(const Program& program);
  void postpone(const Launch& launch, std::span<ArrayRef> results);
  void await_turn(const Program& program);
  bool run_postponed();  // as far as programs are ready; whether none is left
  void keep_old_values(const Postponed& failed, std::span<pjrt::Buffer> values);
  void keep_checks(const Launch& launch, pjrt::Buffer result, bool finished);

  std::unique_ptr<Impl> impl_;
  std::mutex queue_lock_;
};

}  // namespace tpu::exec

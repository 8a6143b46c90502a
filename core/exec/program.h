// SPDX-License-Identifier: Apache-2.0
// A program and what a launch must know about its parameters and results. Its compilation may still
// be running on another thread; from ready() on it is immutable and shared by every thread that
// launches it, up to a hint that launches leave in it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/ir/graph.h"
#include "core/pjrt/executable.h"

namespace tpu::exec {

// How much the compiler should try. kFast: one-op programs. kReduction: one-op programs whose run
// time needs the fusion emitters (reductions, softmax, norms). kFused: programs of many ops.
enum class OptionSet : uint8_t { kFast, kReduction, kFused };

// Parameters are: arrays, then s32[words] if words > 0, then one destination per entry of
// `destinations`. Results are as listed, the last being s64[2] of checks if `checks` is not empty.
struct ProgramLayout {
  std::vector<ir::Type> arrays;
  int words = 0;
  std::vector<int> destinations;          // result indices, in parameter order
  std::vector<ir::Graph::Alias> aliases;  // parameters a launch may donate, and to which result
  std::vector<ir::Type> results;          // without the check result
  std::vector<ir::Check> checks;
};

class Program {
 public:
  Program(const Hash128& identity, ProgramLayout layout);

  const Hash128 identity;  // hash of the module text and of all that decides its machine code
  const ProgramLayout layout;
  const size_t result_bytes;  // of layout.results

  // Whether compiling has ended, one way or the other.
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  // Blocks until then; why there is no executable, or ok.
  const Status& wait() const;
  // The compiler's, once: what is below has been written, or cannot be.
  void finish(Status status);

  // To be read only of a program that is ready, and ok.
  pjrt::Executable executable;
  size_t temp_bytes = 0;
  bool may_fail = false;  // calls into host code, so every launch's outcome must be looked at
  // Launches on an idle device that had finished when they returned: such a program runs on the
  // caller, and asking the plugin for its completion costs a tenth of a small launch.
  mutable std::atomic<uint8_t> finished_at_once = 0;

 private:
  std::atomic<bool> ready_ = false;
  Status status_;
};
using ProgramRef = std::shared_ptr<const Program>;

}  // namespace tpu::exec

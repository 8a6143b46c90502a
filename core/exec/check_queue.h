// SPDX-License-Identifier: Apache-2.0
// The results of checks that programs made on data (index ranges, asserts), kept in launch order
// until somebody waits: then the first that failed becomes the user's exception. Thread-safe;
// waiting holds no lock.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/pjrt/buffer.h"

namespace tpu::exec {

class CheckQueue {
 public:
  struct Entry {
    pjrt::Buffer result;  // s64[2]: 1 + index of the failed check or 0, its value
    std::vector<ir::Check> checks;
    std::string op;
    std::string origin;
  };
  explicit CheckQueue(bool host_readable) : host_readable_(host_readable) {}

  // True, and nothing to keep, if the result is there and says that no check failed.
  bool passed(const pjrt::Buffer& ready_result) const;
  void add(Entry entry);
  // Waits for the results so far. Throws tpu::Error for the first failure and forgets it.
  void raise_first();
  // The same for results that are there already: waits for nothing.
  void raise_first_ready();

 private:
  struct Failure {
    int64_t check = 0;  // 1 + index; 0: none
    int64_t value = 0;
  };
  // Waits. A result that was never computed counts as none: the launch's own error is reported.
  Failure read(const pjrt::Buffer& result) const;
  void raise_if_failed(const Entry& entry) const;
  void drop_passed();  // caller holds lock_
  std::optional<Entry> take_first(bool only_ready);

  const bool host_readable_;
  std::mutex lock_;  // guards entries_
  std::deque<Entry> entries_;
};

}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
// Positions are data: a view's offset that keeps changing between otherwise equal calls becomes an
// operand of the program, so that `cache[:, pos:pos+1]` in a loop compiles a few times in all.
//
// An offset turns into an operand at its 9th distinct value, or at its 5th if the values are an
// arithmetic progression. Until then each value has its own program, so that the few fixed
// offsets of a chunk() stay static. Thread-safe.
#pragma once

#include <mutex>

#include "backend/plan.h"

namespace torch_tpu {

class PositionHistory {
 public:
  static PositionHistory& instance();

  // The views of this call (not seen before with these offsets) whose positions should be operands;
  // empty: none.
  Moving moving_views(const OpCall& call);

  // The key of the program with those positions as operands.
  static tpu::Hash128 key(const OpCall& call, const Moving& moving);

 private:
  using Offsets = std::vector<int64_t>;
  // Numbers of the tensors whose offsets have changed enough; remembers this call's.
  std::vector<int> changing_tensors(const OpCall& call);

  std::mutex mutex_;  // guards seen_
  // Distinct offsets by key without them, in order of appearance.
  std::unordered_map<tpu::Hash128, std::vector<Offsets>, tpu::Hash128Hasher> seen_;
};

}  // namespace torch_tpu

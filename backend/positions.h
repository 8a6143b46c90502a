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

  // The tensors of this call (not seen before with these offsets) whose positions should be
  // operands; empty: none.
  DynamicTensors dynamic_tensors(const OpCall& call);

  // The key of the program with those positions as operands.
  static tpu::Hash128 key(const OpCall& call, const DynamicTensors& dynamic);

 private:
  using Offsets = std::vector<int64_t>;
  struct History {
    std::vector<Offsets> seen;  // distinct, in order of appearance
  };
  std::mutex mutex_;  // guards histories_
  std::unordered_map<tpu::Hash128, History, tpu::Hash128Hasher> histories_;
};

}  // namespace torch_tpu

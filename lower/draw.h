// SPDX-License-Identifier: Apache-2.0
// Random numbers of one call. Each draw takes the generator's next 128-bit blocks, so the numbers
// depend on seed, offset and the order of draws only, not on the plugin or the mode.
#pragma once

#include "lower/math.h"

namespace tpu::lower {

class Draw {
 public:
  explicit Draw(Graph& graph) : graph_(&graph) {}

  // Bits of an unsigned type.
  Value bits(const Dims& dims, DType t);
  // In [0, 1), a multiple of 2^-24 for f32, 2^-53 for f64.
  Value uniform(const Dims& dims, DType t);
  // In (0, 1): the middles of as many intervals. Logarithms of it are finite.
  Value open_uniform(const Dims& dims, DType t);
  Value normal(const Dims& dims, DType t);       // mean 0, deviation 1
  Value exponential(const Dims& dims, DType t);  // mean 1, positive
  // pred, true with probability p; p is of f32 or f64 and of these dims.
  Value bernoulli(Value p);
  // In [low, low + range) as s64; `range` is u64 of rank 0, and 0 stands for 2^64.
  Value integers(const Dims& dims, Value low, Value range);

  // For loops that draw an unknown number of times: `rounds` sets of blocks of `dims` elements are
  // taken, and round(i) draws the i-th, i being a s32 of rank 0.
  class Rounds {
   public:
    Value uniform(Value round, const Dims& dims, DType t) const;  // open
    Value normal(Value round, const Dims& dims, DType t) const;

   private:
    friend class Draw;
    Rounds(Value seed, Value offset, int64_t blocks)
        : seed_(seed), offset_(offset), blocks_(blocks) {}
    Value bits(Value round, const Dims& dims, DType t) const;
    Value seed_;
    Value offset_;
    int64_t blocks_;
  };
  Rounds rounds(int64_t rounds, const Dims& dims, DType t);

 private:
  std::pair<Value, Value> take(int64_t blocks);  // seed, offset

  Graph* graph_;
  int64_t taken_ = 0;
};

}  // namespace tpu::lower

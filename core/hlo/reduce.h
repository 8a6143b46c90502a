// SPDX-License-Identifier: Apache-2.0
// Reductions and windowed reductions. Reduced axes disappear from the result.
#pragma once

#include "core/hlo/shape.h"

namespace tpu::hlo {

// Combines (accumulators..., elements...) at rank 0 into new accumulators.
using ReduceBody = std::function<Values(std::span<const Value>)>;
Values reduce(const Values& operands, const Values& initial, const Dims& axes,
              const ReduceBody& body);

Value reduce_sum(Value x, const Dims& axes);  // pred: any
Value reduce_prod(Value x, const Dims& axes);
Value reduce_max(Value x, const Dims& axes);  // empty: lowest(); NaN propagates
Value reduce_min(Value x, const Dims& axes);
Value reduce_and(Value x, const Dims& axes);
Value reduce_or(Value x, const Dims& axes);

struct Window {
  Dims sizes;
  Dims strides;
  Dims base_dilations;
  Dims window_dilations;
  Dims pad_low;
  Dims pad_high;
  static Window of_rank(int64_t rank);  // all ones, no padding
};
Dims window_result_dims(DimSpan dims, const Window& window);
Values reduce_window(const Values& operands, const Values& initial, const Window& window,
                     const ReduceBody& body);
Value reduce_window_sum(Value x, const Window& window);
Value reduce_window_max(Value x, const Window& window);

// Zeros of operand's type, each `source` element added at the position of its window's maximum in
// `operand`: the first of equals, the last NaN. No dilations.
Value select_and_scatter_add(Value operand, Value source, const Window& window);

}  // namespace tpu::hlo

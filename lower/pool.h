// SPDX-License-Identifier: Apache-2.0
// What the pooling families share: maxima that carry their position, sums over ranges, and the way
// back from positions to the image. Pure functions.
#pragma once

#include "lower/math.h"
#include "lower/window.h"

namespace tpu::lower {

// A value and where it came from (s32, flat over the spatial axes).
struct Located {
  Value value;
  Value index;
};

// The greatest element of each window; the first of equals, the last NaN, as PyTorch's loops.
Located window_max(Located x, const AxisWindow& w);
// The same along an axis whose elements beyond lengths[o] of row o do not count; the axis goes.
// Elements are the starts[o] + j-th ones, for j below the greatest length.
Located range_max(Located x, int64_t axis, const Dims& starts, const Dims& lengths);
// Of all elements of an axis, which goes. Order does not matter.
Located axis_max(Located x, int64_t axis);

// Flat positions over the axes [first, rank) of these dims, as s32.
Value flat_positions(Graph& graph, const Dims& dims, int64_t first);

// Sum of the elements starts[o] ... starts[o] + lengths[o] - 1 of an axis, for every o.
Value range_sum(Value x, int64_t axis, const Dims& starts, const Dims& lengths);

// Zeros of dims `dims`, with each gradient element added at its position in the plane of the last
// `spatial` axes. The leading axes are the gradient's.
Value scatter_to_planes(Value gradient, Value index, const Dims& dims, int64_t spatial);

}  // namespace tpu::lower

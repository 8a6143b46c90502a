// SPDX-License-Identifier: Apache-2.0
// Sorting in PyTorch's order: NaN is greater than every number, -0 equals 0, equal elements keep
// their order. Pure functions on a graph under construction.
#pragma once

#include "lower/reduction.h"

namespace tpu::lower {

struct Sorted {
  Value values;
  Value indices;  // s32 positions along the axis
};
// x must have at least one dimension and real numbers.
Sorted sort_along(Value x, int64_t axis, bool descending);

// The position in each ascending row of `sorted` [rows, n] before which an element of `values`
// [rows, m] would be put: the first that is not less, or with `right` the first that is greater.
// s32; both of one type.
Value insertion_points(Value sorted, Value values, bool right);

}  // namespace tpu::lower

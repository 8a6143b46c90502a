// SPDX-License-Identifier: Apache-2.0
// What rules that read or write at data-dependent positions share: range checks with PyTorch's
// texts, negative indices, and the forms of gather and scatter. Pure functions on a graph under
// construction.
#pragma once

#include "core/hlo/shape.h"
#include "lower/reduction.h"

namespace tpu::lower {

using ir::CheckKind;

struct Range {
  int64_t low;   // first allowed
  int64_t high;  // first not allowed
};
// After the run: the error `message`, its "{}" an index outside the range, if there is one.
void check_range(Value index, Range range, std::string message, CheckKind kind = CheckKind::kIndex);
// "index {} is out of bounds for dimension 0 with size 3"
std::string out_of_bounds(int64_t axis, int64_t size, std::string_view prefix = "");

// Indices in [-size, size) as s32 positions in [0, size), or as s64 where s32 cannot count so far.
Value from_end(Value index, int64_t size);
Value as_position(Value index, int64_t size);  // without the wrapping

// Bodies of scatter. Booleans: assign keeps the update, add is `or`, multiply is `and`.
Value keep_update(Value old_value, Value update);

// The element of x at a flat position, for positions of any shape.
Value take_flat(Value x, Value position);
// x with update[i...] combined in at position[i...] along `axis`, other coordinates being the
// update's own: torch.scatter. Position dims are at most x's on the other axes.
Value scatter_along(Value x, Value position, Value update, int64_t axis,
                    const hlo::Combine& combine);
// x with the rows update[..., i, ...] combined in at rows position[i] along `axis`.
Value scatter_rows(Value x, Value position, Value update, int64_t axis,
                   const hlo::Combine& combine);

// Running sum of integers along `axis`.
Value running_count(Value x, int64_t axis);

}  // namespace tpu::lower

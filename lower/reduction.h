// SPDX-License-Identifier: Apache-2.0
// What reductions, softmax, norms and scans share: PyTorch's reading of `dim` and `keepdim`, sums
// in a form that compilers make fast, and putting a reduced value beside the whole one. Pure
// functions on a graph under construction. Axes are wrapped and distinct unless said otherwise.
#pragma once

#include "lower/math.h"

namespace tpu::lower {

// A reduction's axes as PyTorch reads them: absent or empty means all, negative ones count from
// the end, repeated ones are an error. A 0-dim tensor has no axis to reduce.
Dims reduction_axes(const std::optional<Dims>& dim, int64_t rank);
Dims reduction_axis(int64_t dim, int64_t rank);

// How many elements of x make one element of the result.
int64_t reduced_count(Value x, const Dims& axes);

// x with neighbouring axes merged where all or none of them are reduced, and without those of size
// 1: fewer and longer loops. `axes` becomes the reduced axes of the result, whose reduction has
// the same elements as x's.
Value merge_axes(Value x, Dims& axes);

// Reductions over axes, which disappear. In x's type; the sum of bool is a count in s64.
Value sum_over(Value x, const Dims& axes);
Value prod_over(Value x, const Dims& axes);
Value max_over(Value x, const Dims& axes);
Value min_over(Value x, const Dims& axes);
Value any_over(Value x, const Dims& axes);  // of pred
Value all_over(Value x, const Dims& axes);
Value count_over(Value x, const Dims& axes);  // true elements of a pred, as s64
Value mean_over(Value x, const Dims& axes);

// Puts a reduced value back beside the tensor of dims `dims` it came from: with its axes as 1, or
// repeated along them.
Value with_axes(Value reduced, const Dims& dims, const Dims& axes);
Value spread(Value reduced, const Dims& dims, const Dims& axes);
Value keep(Value reduced, Value x, const Dims& axes, bool keepdim);

// The mean, and the sum of squared distances from it, over `axes`; two passes.
struct Moments {
  Value mean;
  Value centered;  // x - mean
  Value squares;
};
Moments moments(Value x, const Dims& axes);

// The first position along `axis` (s64) at which x is greatest, or is NaN; and the value there.
struct Extreme {
  Value value;
  Value index;
};
Extreme first_max(Value x, int64_t axis);
Extreme first_min(Value x, int64_t axis);

// Element i of the result combines elements 0..i along the axis. `initial` is neutral.
Value running(Value x, int64_t axis, Value initial, Value (*combine)(Value, Value));

// x in the type PyTorch computes it in.
Value widened(Value x);

// The permutation that swaps `axis` with the minor one; its own inverse.
Dims swap_with_minor(int64_t axis, int64_t rank);

// A 0-dim tensor as one of one dimension, for rules that work along an axis.
Value at_least_1d(Value x);

}  // namespace tpu::lower

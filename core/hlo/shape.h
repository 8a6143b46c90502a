// SPDX-License-Identifier: Apache-2.0
// StableHLO operations that move elements: reshape, broadcast, slice, gather, scatter, sort.
// Axes are non-negative. Ill-typed operands are an internal error.
#pragma once

#include "core/hlo/elementwise.h"

namespace tpu::hlo {

Value reshape(Value x, const Dims& dims);
// `axes[i]` is the result axis of operand axis i; operand dims are 1 or the result's.
Value broadcast_in_dim(Value x, const Dims& dims, const Dims& axes);
// NumPy broadcasting: axes aligned at the end.
Value broadcast_to(Value x, const Dims& dims);
Value transpose(Value x, const Dims& permutation);  // result axis i is operand axis permutation[i]
Value slice(Value x, const Dims& starts, const Dims& limits, const Dims& strides);
Value slice_axis(Value x, int64_t axis, int64_t start, int64_t limit, int64_t stride = 1);
// Starts are rank-0 integers, clamped to fit.
Value dynamic_slice(Value x, const Values& starts, const Dims& sizes);
Value dynamic_update_slice(Value x, Value update, const Values& starts);
Value concatenate(const Values& parts, int64_t axis);
// Negative low/high crop; `interior` puts that many values between elements.
Value pad(Value x, Value fill, const Dims& low, const Dims& high, const Dims& interior);
Value reverse(Value x, const Dims& axes);
Value iota(Graph& graph, const Type& type, int64_t axis);
Value iota_like(Value x, int64_t axis, DType t);

struct GatherDims {
  Dims offset_dims;
  Dims collapsed_slice_dims;
  Dims operand_batching_dims = {};
  Dims start_indices_batching_dims = {};
  Dims start_index_map;
  int64_t index_vector_dim;
};
// Out-of-range starts are clamped: check ranges with Graph::check.
Value gather(Value operand, Value start_indices, const GatherDims& dims, const Dims& slice_sizes,
             const Dims& result_dims, bool indices_are_sorted = false);

struct ScatterDims {
  Dims update_window_dims;
  Dims inserted_window_dims;
  Dims input_batching_dims = {};
  Dims scatter_indices_batching_dims = {};
  Dims scatter_dims_to_operand_dims;
  int64_t index_vector_dim;
};
using Combine = std::function<Value(Value old_value, Value update)>;
// Out-of-range updates are dropped. `combine` sees rank-0 values.
Value scatter(Value operand, Value indices, Value updates, const ScatterDims& dims,
              const Combine& combine, bool unique_indices = false, bool indices_are_sorted = false);

// x[index] along `axis` for an index of any shape: result dims are x's with `axis` replaced by
// index's dims. Indices must be in range.
Value take(Value x, Value index, int64_t axis);
// torch.gather: result[i,j,k] = x[index[i,j,k],j,k] for axis 0; index dims at most x's.
Value take_along(Value x, Value index, int64_t axis);

// Sorts all operands along `axis` by `less`, which sees (a0, b0, a1, b1, ...) at rank 0.
Values sort(const Values& operands, int64_t axis, bool stable,
            const std::function<Value(std::span<const Value>)>& less);
// The k greatest of each row of the minor axis in falling order, and their s32 positions, the first
// of equal ones first. Total order of floats: -NaN least, -0 before 0, NaN greatest.
Values top_k(Value x, int64_t k);

}  // namespace tpu::hlo

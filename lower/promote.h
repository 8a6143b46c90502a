// SPDX-License-Identifier: Apache-2.0
// PyTorch's type promotion and broadcasting, and the wrappers that make a pointwise rule one line.
#pragma once

#include "lower/rule.h"

namespace tpu::lower {

// torch.promote_types.
DType promote_types(DType a, DType b);

// torch.result_type over tensors: those with dimensions decide, then rank-0 ones, then Python
// numbers (Graph::is_wrapped), which only lift the category.
DType result_type(std::span<const Value> values);
DType result_type(Value x, const Scalar& s);

// Integers and bool compute in PyTorch's default float type.
DType float_type(DType t);
Value to_float(Value x);

// Broadcast dims of all; PyTorch's error text if they do not fit.
Dims broadcast_dims(std::span<const Value> values);

// The values in their common type, broadcast against each other. align() stays in the promoted
// type; align_compute() goes to ir::compute_type of it (f32 for bf16 and f16), in which PyTorch's
// CPU kernels compute: the caller converts the result back with narrow(). align_as() goes to t.
Values align(const Values& values);
Values align_compute(const Values& values);
Values align_as(const Values& values, DType t);

// A pointwise op of N tensors: promote, broadcast, compute in compute_type, round once to the
// promoted type. Use as a table entry: {"aten::mul.Tensor", pointwise<hlo::mul>}.
template <Value (*op)(Value)>
Value pointwise(Value x) {
  return hlo::convert(op(hlo::convert(x, ir::compute_type(x.dtype()))), x.dtype());
}
// The same for functions of real numbers: integers and bool become float first.
template <Value (*op)(Value)>
Value in_float(Value x) {
  const DType t = float_type(x.dtype());
  return hlo::convert(op(hlo::convert(x, ir::compute_type(t))), t);
}
template <Value (*op)(Value, Value)>
Value binary(Value a, Value b) {
  const Values v = align_compute({a, b});
  return hlo::convert(op(v[0], v[1]), result_type(Values{a, b}));
}
template <Value (*op)(Value, Value)>
Value binary_in_float(Value a, Value b) {
  const DType t = float_type(result_type(Values{a, b}));
  const Values v = align_as({a, b}, ir::compute_type(t));
  return hlo::convert(op(v[0], v[1]), t);
}
// Comparisons: promoted operands, pred result.
template <Value (*op)(Value, Value)>
Value compare(Value a, Value b) {
  const Values v = align({a, b});
  return op(v[0], v[1]);
}
// A second operand given as a Scalar: the same rule, with the number as a Python number.
Value number(const Scalar& s);  // rank 0, wrapped
template <Value (*rule)(Value, Value)>
Value with_number(Value x, Scalar s) {
  return rule(x, number(s));
}

// Axis arithmetic with PyTorch's IndexError text. A 0-dim tensor counts as rank 1.
int64_t wrap_axis(int64_t axis, int64_t rank);
Dims wrap_axes(const Dims& axes, int64_t rank);  // duplicates refused
Dims all_axes(int64_t rank);
Dims permuted(ir::DimSpan dims, const Dims& permutation);

}  // namespace tpu::lower

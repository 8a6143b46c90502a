// SPDX-License-Identifier: Apache-2.0
// Element-by-element StableHLO and CHLO operations. Operands of one call have equal dimensions
// and, unless said otherwise, equal element types: no promotion and no broadcasting here (see
// lower/promote.h). Ill-typed operands are an internal error.
#pragma once

#include <complex>
#include <variant>

#include "core/ir/graph.h"

namespace tpu::hlo {

using ir::Dims;
using ir::DimSpan;
using ir::DType;
using ir::Graph;
using ir::Type;
using ir::Value;
using ir::Values;

Value unary(std::string_view op, Value x);  // "stablehlo.tanh", "chlo.erf"
Value binary(std::string_view op, Value a, Value b);

// Any real number type.
Value abs(Value x);  // complex: the magnitude, of the real type
Value neg(Value x);
Value sign(Value x);  // NaN stays NaN; complex: x / |x|
// Floating point.
Value ceil(Value x);
Value floor(Value x);
Value round_half_even(Value x);
Value is_finite(Value x);  // pred
Value reduce_precision(Value x, int exponent_bits, int mantissa_bits);
// Floating point or complex.
Value exp(Value x);
Value expm1(Value x);
Value log(Value x);
Value log1p(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value cbrt(Value x);
Value sin(Value x);
Value cos(Value x);
Value tan(Value x);
Value tanh(Value x);
Value logistic(Value x);
// CHLO, expanded by the compiler.
Value asin(Value x);
Value acos(Value x);
Value atan(Value x);
Value sinh(Value x);
Value cosh(Value x);
Value asinh(Value x);
Value acosh(Value x);
Value atanh(Value x);
Value erf(Value x);
Value erfc(Value x);
Value erf_inv(Value x);
Value lgamma(Value x);
Value digamma(Value x);
Value bessel_i1e(Value x);
Value polygamma(Value n, Value x);
Value zeta(Value x, Value q);
Value next_after(Value from, Value to);

Value add(Value a, Value b);  // pred: or
Value sub(Value a, Value b);
Value mul(Value a, Value b);  // pred: and
Value div(Value a, Value b);  // integers: toward zero
Value rem(Value a, Value b);  // sign of the dividend
Value max(Value a, Value b);  // NaN propagates
Value min(Value a, Value b);
Value pow(Value a, Value b);
Value atan2(Value a, Value b);
// Bit operations on integers, logical on pred.
Value and_(Value a, Value b);
Value or_(Value a, Value b);
Value xor_(Value a, Value b);
Value not_(Value x);
Value shift_left(Value a, Value b);
Value shift_right_arithmetic(Value a, Value b);
Value shift_right_logical(Value a, Value b);
Value popcnt(Value x);
Value count_leading_zeros(Value x);

Value eq(Value a, Value b);  // results are pred; NaN compares as in IEEE 754
Value ne(Value a, Value b);
Value lt(Value a, Value b);
Value le(Value a, Value b);
Value gt(Value a, Value b);
Value ge(Value a, Value b);

Value select(Value predicate, Value on_true, Value on_false);  // predicate: same dims
Value clamp(Value low, Value x, Value high);

Value complex(Value real, Value imaginary);
Value real(Value x);
Value imag(Value x);

// Element type conversion as PyTorch's CPU does it: number to bool is `!= 0`, complex to real
// drops the imaginary part, float to integer truncates. Out of range and NaN give, as on x86, the
// least s32 (types up to 16 bits and s32: its low bits) or s64 (s64, u32); u64 keeps numbers up to
// 2^64. A run-time scalar is read anew as `t`, without intermediate rounding.
Value convert(Value x, DType t);
// Same bits, element types of equal size.
Value bitcast(Value x, DType t);
// Bitcast between sizes: a wider type splits into a new minor dimension, a narrower one consumes
// the minor dimension.
Value bitcast_resize(Value x, DType t);

// A compile-time number.
using Literal = std::variant<bool, int64_t, double, std::complex<double>>;
Value constant(Graph& graph, DType t, Literal value);       // rank 0
Value full(Graph& graph, const Type& type, Literal value);  // splat
Value full_like(Value x, Literal value);                    // x's type
Value constant_array(Graph& graph, const Dims& dims, std::span<const int64_t> values, DType t);
Value constant_array(Graph& graph, const Dims& dims, std::span<const double> values, DType t);

// Extremes of an element type: -inf / inf for floats, least / greatest for integers and bool.
Value lowest(Graph& graph, DType t);
Value highest(Graph& graph, DType t);
Value nan_like(Value x);
Value is_nan(Value x);  // pred; false for non-floats

}  // namespace tpu::hlo

// SPDX-License-Identifier: Apache-2.0
// Arithmetic notation for rules: operators on values of one type; a number beside a value becomes
// a constant of its type. Also the wrappers that give a rule's body its operands in the type it
// computes in and round its result once. Pure functions on a graph under construction.
#pragma once

#include <cmath>

#include "lower/promote.h"

namespace tpu::lower {

inline Value operator+(Value a, Value b) { return hlo::add(a, b); }
inline Value operator-(Value a, Value b) { return hlo::sub(a, b); }
inline Value operator*(Value a, Value b) { return hlo::mul(a, b); }
inline Value operator/(Value a, Value b) { return hlo::div(a, b); }
inline Value operator-(Value x) { return hlo::neg(x); }
inline Value operator+(Value a, double b) { return a + hlo::full_like(a, b); }
inline Value operator-(Value a, double b) { return a - hlo::full_like(a, b); }
Value operator*(Value a, double b);  // of a complex number's parts: infinities stay
inline Value operator/(Value a, double b) { return a / hlo::full_like(a, b); }
inline Value operator+(double a, Value b) { return hlo::full_like(b, a) + b; }
inline Value operator-(double a, Value b) { return hlo::full_like(b, a) - b; }
inline Value operator*(double a, Value b) { return b * a; }
inline Value operator/(double a, Value b) { return hlo::full_like(b, a) / b; }
inline Value operator&(Value a, Value b) { return hlo::and_(a, b); }
inline Value operator|(Value a, Value b) { return hlo::or_(a, b); }
inline Value operator^(Value a, Value b) { return hlo::xor_(a, b); }
inline Value operator~(Value x) { return hlo::not_(x); }
inline Value operator<(Value a, Value b) { return hlo::lt(a, b); }
inline Value operator<=(Value a, Value b) { return hlo::le(a, b); }
inline Value operator>(Value a, Value b) { return hlo::gt(a, b); }
inline Value operator>=(Value a, Value b) { return hlo::ge(a, b); }
inline Value operator<(Value a, double b) { return a < hlo::full_like(a, b); }
inline Value operator<=(Value a, double b) { return a <= hlo::full_like(a, b); }
inline Value operator>(Value a, double b) { return a > hlo::full_like(a, b); }
inline Value operator>=(Value a, double b) { return a >= hlo::full_like(a, b); }
// == and != of values compare handles.
inline Value equals(Value a, double b) { return hlo::eq(a, hlo::full_like(a, b)); }
inline Value differs(Value a, double b) { return hlo::ne(a, hlo::full_like(a, b)); }

inline Value where(Value condition, Value a, Value b) { return hlo::select(condition, a, b); }
inline Value where(Value condition, Value a, double b) {
  return hlo::select(condition, a, hlo::full_like(a, b));
}
inline Value where(Value condition, double a, Value b) {
  return hlo::select(condition, hlo::full_like(b, a), b);
}
inline Value min(Value a, double b) { return hlo::min(a, hlo::full_like(a, b)); }
inline Value max(Value a, double b) { return hlo::max(a, hlo::full_like(a, b)); }
inline Value clip(Value x, Value low, Value high) { return hlo::min(hlo::max(x, low), high); }

// The sign bit of a float, also of zeros and NaN; x < 0 for integers.
Value sign_bit(Value x);
// |magnitude| with the sign bit of `sign`, both of one floating point type.
Value copy_sign(Value magnitude, Value sign);
// Toward zero; integers are returned as they are.
Value truncate(Value x);
Value is_infinite(Value x);
// c[0] + c[1] x + c[2] x^2 + ...
Value polynomial(Value x, std::span<const double> coefficients);
// A Chebyshev expansion (special_tables.h) at x in its interval, to the precision of x's type.
struct Expansion;
Value expand(Value x, const Expansion& expansion);

// body(x) in the type PyTorch computes x in, rounded to x's type.
template <class F>
Value computed(Value x, F body) {
  return hlo::convert(body(hlo::convert(x, ir::compute_type(x.dtype()))), x.dtype());
}
// body of the promoted and broadcast operands, rounded to their common type.
template <class F>
Value computed(Value a, Value b, F body) {
  const Values v = align_compute({a, b});
  return hlo::convert(body(v[0], v[1]), result_type(Values{a, b}));
}
template <class F>
Value computed(Value a, Value b, Value c, F body) {
  const Values v = align_compute({a, b, c});
  return hlo::convert(body(v[0], v[1], v[2]), result_type(Values{a, b, c}));
}
// The same where integers and bool become float first.
template <class F>
Value computed_in_float(Value x, F body) {
  return computed(to_float(x), body);
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/elementwise.h"

#include "core/base/error.h"
#include "core/hlo/attributes.h"
#include "core/hlo/shape.h"

namespace tpu::hlo {
namespace {

void check_same_type(std::string_view op, Value a, Value b) {
  if (a.type() == b.type()) return;
  TPU_CHECK(false, fmt::format("{} of {} and {}", op, a.type().str(), b.type().str()).c_str());
}

// The compiler accepts some of these on complex numbers and then crashes or answers nonsense.
Value real_binary(std::string_view op, Value a, Value b) {
  TPU_CHECK(!is_complex(a.dtype()), "complex numbers have no order and no remainder");
  return binary(op, a, b);
}

std::string_view compare_type(DType t) {
  if (is_signed_integer(t)) return "SIGNED";
  return is_float(t) || is_complex(t) ? "FLOAT" : "UNSIGNED";
}

// Without a compare_type the compiler folds comparisons of signed constants as unsigned ones.
Value compare(std::string_view direction, Value a, Value b) {
  check_same_type("compare", a, b);
  return make("stablehlo.compare", {a, b}, {DType::kPred, a.dims()},
              fmt::format("compare_type = #stablehlo<comparison_type {}>, "
                          "comparison_direction = #stablehlo<comparison_direction {}>",
                          compare_type(a.dtype()), direction));
}

Value order(std::string_view direction, Value a, Value b) {
  TPU_CHECK(!is_complex(a.dtype()), "complex numbers have no order");
  return compare(direction, a, b);
}

}  // namespace

Value unary(std::string_view op, Value x) { return make(op, {x}, x.type()); }

Value binary(std::string_view op, Value a, Value b) {
  check_same_type(op, a, b);
  return make(op, {a, b}, a.type());
}

Value abs(Value x) {
  if (is_bool(x.dtype()) || is_unsigned_integer(x.dtype())) return x;
  return make("stablehlo.abs", {x}, {real_of(x.dtype()), x.dims()});
}

Value neg(Value x) { return unary("stablehlo.negate", x); }

Value sign(Value x) {
  if (is_bool(x.dtype())) return x;
  if (is_unsigned_integer(x.dtype())) return min(x, full_like(x, int64_t{1}));
  return unary("stablehlo.sign", x);
}

Value ceil(Value x) { return unary("stablehlo.ceil", x); }
Value floor(Value x) { return unary("stablehlo.floor", x); }
Value round_half_even(Value x) { return unary("stablehlo.round_nearest_even", x); }

Value is_finite(Value x) { return make("stablehlo.is_finite", {x}, {DType::kPred, x.dims()}); }

Value reduce_precision(Value x, int exponent_bits, int mantissa_bits) {
  return make("stablehlo.reduce_precision", {x}, x.type(),
              fmt::format("exponent_bits = {} : i32, mantissa_bits = {} : i32", exponent_bits,
                          mantissa_bits));
}

Value exp(Value x) { return unary("stablehlo.exponential", x); }
Value expm1(Value x) { return unary("stablehlo.exponential_minus_one", x); }
Value log(Value x) { return unary("stablehlo.log", x); }
Value log1p(Value x) { return unary("stablehlo.log_plus_one", x); }
Value sqrt(Value x) { return unary("stablehlo.sqrt", x); }
Value rsqrt(Value x) { return unary("stablehlo.rsqrt", x); }
Value cbrt(Value x) { return unary("stablehlo.cbrt", x); }
Value sin(Value x) { return unary("stablehlo.sine", x); }
Value cos(Value x) { return unary("stablehlo.cosine", x); }
Value tan(Value x) { return unary("stablehlo.tan", x); }
Value tanh(Value x) { return unary("stablehlo.tanh", x); }
Value logistic(Value x) { return unary("stablehlo.logistic", x); }

Value asin(Value x) { return unary("chlo.asin", x); }
Value acos(Value x) { return unary("chlo.acos", x); }
Value atan(Value x) { return unary("chlo.atan", x); }
Value sinh(Value x) { return unary("chlo.sinh", x); }
Value cosh(Value x) { return unary("chlo.cosh", x); }
Value asinh(Value x) { return unary("chlo.asinh", x); }
Value acosh(Value x) { return unary("chlo.acosh", x); }
Value atanh(Value x) { return unary("chlo.atanh", x); }
Value erf(Value x) { return unary("chlo.erf", x); }
Value erfc(Value x) { return unary("chlo.erfc", x); }
Value erf_inv(Value x) { return unary("chlo.erf_inv", x); }
Value lgamma(Value x) { return unary("chlo.lgamma", x); }
Value digamma(Value x) { return unary("chlo.digamma", x); }
Value bessel_i1e(Value x) { return unary("chlo.bessel_i1e", x); }
Value polygamma(Value n, Value x) { return binary("chlo.polygamma", n, x); }
Value zeta(Value x, Value q) { return binary("chlo.zeta", x, q); }
Value next_after(Value from, Value to) { return binary("chlo.next_after", from, to); }

Value add(Value a, Value b) { return binary("stablehlo.add", a, b); }
Value sub(Value a, Value b) { return binary("stablehlo.subtract", a, b); }
Value mul(Value a, Value b) { return binary("stablehlo.multiply", a, b); }
Value div(Value a, Value b) { return binary("stablehlo.divide", a, b); }
Value rem(Value a, Value b) { return real_binary("stablehlo.remainder", a, b); }
Value max(Value a, Value b) { return real_binary("stablehlo.maximum", a, b); }
Value min(Value a, Value b) { return real_binary("stablehlo.minimum", a, b); }
Value pow(Value a, Value b) { return binary("stablehlo.power", a, b); }
Value atan2(Value a, Value b) { return binary("stablehlo.atan2", a, b); }

Value and_(Value a, Value b) { return binary("stablehlo.and", a, b); }
Value or_(Value a, Value b) { return binary("stablehlo.or", a, b); }
Value xor_(Value a, Value b) { return binary("stablehlo.xor", a, b); }
Value not_(Value x) { return unary("stablehlo.not", x); }
Value shift_left(Value a, Value b) { return binary("stablehlo.shift_left", a, b); }
Value shift_right_arithmetic(Value a, Value b) {
  return binary("stablehlo.shift_right_arithmetic", a, b);
}
Value shift_right_logical(Value a, Value b) {
  return binary("stablehlo.shift_right_logical", a, b);
}
Value popcnt(Value x) { return unary("stablehlo.popcnt", x); }
Value count_leading_zeros(Value x) { return unary("stablehlo.count_leading_zeros", x); }

Value eq(Value a, Value b) { return compare("EQ", a, b); }
Value ne(Value a, Value b) { return compare("NE", a, b); }
Value lt(Value a, Value b) { return order("LT", a, b); }
Value le(Value a, Value b) { return order("LE", a, b); }
Value gt(Value a, Value b) { return order("GT", a, b); }
Value ge(Value a, Value b) { return order("GE", a, b); }

Value select(Value predicate, Value on_true, Value on_false) {
  check_same_type("select", on_true, on_false);
  TPU_CHECK(predicate.type() == (Type{DType::kPred, on_true.dims()}),
            "select needs one bool per element");
  return make("stablehlo.select", {predicate, on_true, on_false}, on_true.type());
}

Value clamp(Value low, Value x, Value high) {
  TPU_CHECK(!is_complex(x.dtype()), "complex numbers have no order");
  check_same_type("clamp", low, x);
  check_same_type("clamp", x, high);
  return make("stablehlo.clamp", {low, x, high}, x.type());
}

Value complex(Value real, Value imaginary) {
  check_same_type("complex", real, imaginary);
  return make("stablehlo.complex", {real, imaginary}, {complex_of(real.dtype()), real.dims()});
}

Value real(Value x) {
  if (!is_complex(x.dtype())) return x;
  return make("stablehlo.real", {x}, {real_of(x.dtype()), x.dims()});
}

Value imag(Value x) {
  if (!is_complex(x.dtype())) return full_like(x, int64_t{0});
  return make("stablehlo.imag", {x}, {real_of(x.dtype()), x.dims()});
}

Value is_nan(Value x) {
  if (is_float(x.dtype()) || is_complex(x.dtype())) return ne(x, x);
  return full(x.graph(), {DType::kPred, x.dims()}, false);
}

}  // namespace tpu::hlo

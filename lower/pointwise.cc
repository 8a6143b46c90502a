// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two and three tensors. Bit operations are in bitwise.cc, comparisons in compare.cc,
// functions of one tensor in unary.cc, activations in activation.cc.
#include "core/hlo/control.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// self + alpha * other
Value add(Value self, Value other, Coefficient alpha) {
  alpha.require_fits(result_type(Values{self, other}));
  return computed(self, other, [&](Value x, Value y) { return x + alpha.times(y); });
}

Value sub(Value self, Value other, Coefficient alpha) {
  const bool one_bool = ir::is_bool(self.dtype()) || ir::is_bool(other.dtype());
  const bool two_bools = ir::is_bool(self.dtype()) && ir::is_bool(other.dtype());
  require(!two_bools,
          "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
          "`logical_xor()` operator instead.");
  require(!one_bool,
          "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
          "to invert a mask, use the `~` or `logical_not()` operator instead.");
  alpha.require_fits(result_type(Values{self, other}));
  return computed(self, other, [&](Value x, Value y) { return x - alpha.times(y); });
}

// other - alpha * self
Value rsub(Value self, Value other, Coefficient alpha) { return sub(other, self, alpha); }

// self + value * a * b
Value addcmul(Value self, Value a, Value b, Scalar value) {
  return computed(self, a, b,
                  [&](Value x, Value y, Value z) { return x + value.exact_like(y) * y * z; });
}

// self + value * a / b
Value addcdiv(Value self, Value a, Value b, Scalar value) {
  return computed(self, a, b,
                  [&](Value x, Value y, Value z) { return x + value.exact_like(y) * y / z; });
}

Value lerp_value(Value start, Value end, Value weight) {
  const Value span = end - start;
  return where(hlo::abs(weight) < 0.5, start + weight * span, end - span * (1.0 - weight));
}
Value lerp_tensor(Value self, Value end, Value weight) {
  return computed(self, end, weight, lerp_value);
}
Value lerp_scalar(Value self, Value end, Scalar weight) {
  return computed(self, end,
                  [&](Value x, Value y) { return lerp_value(x, y, weight.exact_like(x)); });
}

// Integers have no quotient by zero to return; the CPU's kernel refuses it.
void refuse_zero(Value divisor) {
  if (!ir::is_integer(divisor.dtype())) return;
  const Value any = hlo::reduce_or(equals(divisor, 0), all_axes(divisor.rank()));
  divisor.graph().check(any, hlo::constant(divisor.graph(), DType::kS64, int64_t{0}),
                        "ZeroDivisionError", ir::CheckKind::kRuntime);
}

Value opposite_signs(Value a, Value b) { return hlo::ne(a < 0.0, b < 0.0); }

// Rounds toward negative infinity by way of the exact remainder, so that a quotient just below an
// integer does not become that integer.
Value floor_quotient(Value a, Value b) {
  if (ir::is_unsigned_integer(a.dtype())) return a / b;
  const Value rest = hlo::rem(a, b);
  const Value below = differs(rest, 0) & opposite_signs(rest, b);
  if (ir::is_integer(a.dtype())) return where(below, a / b - 1, a / b);
  const Value exact = (a - rest) / b;
  const Value quotient = where(below, exact - 1, exact);
  const Value floor = hlo::floor(quotient);
  const Value rounded = where(quotient - floor > 0.5, floor + 1, floor);
  const Value zero = copy_sign(hlo::full_like(a, 0.0), a / b);
  return where(equals(b, 0), a / b, where(equals(quotient, 0), zero, rounded));
}

void require_quotient(const char* kernel, DType t) {
  require_dtype(!ir::is_bool(t) && !ir::is_complex(t), kernel, t);
}

Value floor_divide(Value self, Value other) {
  return computed(self, other, [](Value a, Value b) {
    require_quotient("div_floor_cpu", a.dtype());
    refuse_zero(b);
    return floor_quotient(a, b);
  });
}

Value trunc_divide(Value self, Value other) {
  return computed(self, other, [](Value a, Value b) {
    require_quotient("div_trunc_cpu", a.dtype());
    refuse_zero(b);
    return truncate(a / b);
  });
}

Value div_mode(Value self, Value other, std::optional<std::string> mode) {
  if (!mode) return binary_in_float<hlo::div>(self, other);
  require(*mode == "trunc" || *mode == "floor",
          "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'",
          *mode);
  return *mode == "floor" ? floor_divide(self, other) : trunc_divide(self, other);
}

// The sign is the divisor's.
Value remainder(Value self, Value other) {
  return computed(self, other, [](Value a, Value b) {
    refuse_zero(b);
    const Value rest = hlo::rem(a, b);
    return where(differs(rest, 0) & opposite_signs(rest, b), rest + b, rest);
  });
}
Value remainder_scalar_tensor(Scalar self, Value other) { return remainder(number(self), other); }

// The sign is the dividend's.
Value fmod(Value self, Value other) {
  return computed(self, other, [](Value a, Value b) {
    refuse_zero(b);
    return hlo::rem(a, b);
  });
}

// x^n for n > 0, by products.
Value power_of(Value x, int64_t n) {
  if (n == 1) return x;
  const Value half = power_of(x, n / 2);
  return n % 2 ? half * half * x : half * half;
}

// Products wrap, as on the CPU, for exponents of any size (the compiler's own power looks at their
// low bits only). A negative exponent leaves what the reciprocal truncates to.
Value integer_power(Value x, Value exponent) {
  const auto odd = [](Value n) { return differs(n & hlo::full_like(n, int64_t{1}), 0); };
  const auto more = [](std::span<const Value> v) {
    return hlo::reduce_or(differs(v[0], 0), all_axes(v[0].rank()));
  };
  const auto next = [&](std::span<const Value> v) -> Values {
    const Value rest = hlo::shift_right_logical(v[0], hlo::full_like(v[0], int64_t{1}));
    return {rest, v[1] * v[1], where(odd(v[0]), v[2] * v[1], v[2])};
  };
  const Value power =
      hlo::while_loop({max(exponent, 0.0), x, hlo::full_like(x, 1.0)}, more, next)[2];
  if (ir::is_unsigned_integer(x.dtype())) return power;
  const Value alternating = where(odd(exponent), x, 1.0);
  const Value reciprocal =
      where(equals(x, 1), 1.0, where(equals(x, -1), alternating, hlo::full_like(x, 0.0)));
  return where(exponent < 0.0, reciprocal, power);
}

Value power(Value x, Value exponent) {
  if (ir::is_integer(x.dtype())) return integer_power(x, exponent);
  const Value y = hlo::pow(x, exponent);
  if (!ir::is_complex(x.dtype())) return y;
  // By way of the logarithm of zero there is none.
  return where(equals(x, 0) & (hlo::real(exponent) > 0.0), 0.0, y);
}

// What the CPU reads the exponent as, where it does not compute in wider numbers.
void require_exponent(const Scalar& exponent, DType t) {
  if (ir::is_integer(t) || ir::compute_type(t) != t) exponent.require_fits(t);
}

Value pow_tensor_scalar(Value self, Exponent exponent) {
  const DType t = result_type(self, exponent.scalar());
  require(!ir::is_integer(t) || !exponent.negative(),
          "Integers to negative integer powers are not allowed.");
  require_exponent(exponent.scalar(), t);
  const Value x = hlo::convert(self, ir::compute_type(t));
  const auto e = exponent.special();
  const auto narrow = [&](Value v) { return hlo::convert(v, t); };
  if (e == 0.0) return narrow(hlo::full_like(x, 1.0));
  if (e && *e >= 1) return narrow(power_of(x, static_cast<int64_t>(*e)));
  if (ir::is_float(t) || ir::is_complex(t)) {
    if (e == 0.5) return narrow(hlo::sqrt(x));
    if (e == -0.5) return narrow(hlo::rsqrt(x));
    if (e == -1.0) return narrow(1.0 / x);
    if (e == -2.0) return narrow(1.0 / (x * x));
  }
  return narrow(power(x, exponent.scalar().like(x)));
}
Value pow_scalar_tensor(Scalar self, Value exponent) {
  return binary<power>(number(self), exponent);
}

// Scaled by the larger side, so that squares neither overflow nor vanish.
Value hypotenuse(Value a, Value b) {
  const Value long_side = hlo::max(hlo::abs(a), hlo::abs(b));
  const Value short_side = hlo::min(hlo::abs(a), hlo::abs(b));
  const Value ratio = short_side / long_side;
  const Value length = long_side * hlo::sqrt(1.0 + ratio * ratio);
  const Value infinite = is_infinite(a) | is_infinite(b);
  return where(infinite, INFINITY, where(equals(long_side, 0), long_side, length));
}

Value clamp_values(Value x, std::optional<Value> low, std::optional<Value> high) {
  require(low || high, "torch.clamp: At least one of 'min' or 'max' must not be None");
  Values all = {x};
  if (low) all.push_back(*low);
  if (high) all.push_back(*high);
  const Values v = align_compute(all);
  Value y = low ? hlo::max(v[0], v[1]) : v[0];
  if (high) y = hlo::min(y, v.back());
  return hlo::convert(y, result_type(all));
}

// The CPU looks for a NaN among the limits, as doubles.
void require_limits(Value self, const std::vector<std::optional<Scalar>>& limits) {
  Values all{self};
  for (const auto& s : limits) {
    if (!s) continue;
    s->require_fits(DType::kF64);
    all.push_back(number(*s));
  }
  for (const auto& s : limits) {
    if (s) s->require_fits(result_type(all));
  }
}

Value clamp_scalar(Value self, std::optional<Scalar> low, std::optional<Scalar> high) {
  require_limits(self, {low, high});
  const auto as_value = [](const std::optional<Scalar>& s) {
    return s ? std::optional<Value>(number(*s)) : std::nullopt;
  };
  return clamp_values(self, as_value(low), as_value(high));
}

Value clamp_min(Value self, Scalar low) {
  require_limits(self, {low});
  return binary<hlo::max>(self, number(low));
}
Value clamp_max(Value self, Scalar high) {
  require_limits(self, {high});
  return binary<hlo::min>(self, number(high));
}

// The other operand where one is NaN.
Value maximum_number(Value a, Value b) {
  return where(hlo::is_nan(a), b, where(hlo::is_nan(b), a, hlo::max(a, b)));
}
Value minimum_number(Value a, Value b) {
  return where(hlo::is_nan(a), b, where(hlo::is_nan(b), a, hlo::min(a, b)));
}

// log(exp(a) + exp(b)) of complex numbers, ordered by their real parts.
Value log_add_exp_complex(Value a, Value b) {
  const Value a_less = hlo::real(a) < hlo::real(b);
  const Value low = where(a_less | hlo::is_nan(a), a, b);
  const Value high = where(a_less | hlo::is_nan(a), b, a);
  const Value low_real = hlo::real(low);
  const Value infinite = is_infinite(low_real) & hlo::eq(low_real, hlo::real(high));
  const Value at_infinity = where(low_real < 0.0, low, hlo::log(hlo::exp(low) + hlo::exp(high)));
  const Value sum = high + hlo::log1p(hlo::exp(low - high));
  return where(hlo::is_nan(low), hlo::nan_like(low), where(infinite, at_infinity, sum));
}

Value log_add_exp(Value a, Value b) {
  if (ir::is_complex(a.dtype())) return log_add_exp_complex(a, b);
  const Value same_infinity = is_infinite(a) & hlo::eq(a, b);
  return where(same_infinity, a, hlo::max(a, b) + hlo::log1p(hlo::exp(-hlo::abs(a - b))));
}

Value log_add_exp2(Value a, Value b) {
  const Value same_infinity = is_infinite(a) & hlo::eq(a, b);
  const Value rest = hlo::log1p(hlo::exp(-hlo::abs(a - b) * M_LN2)) * M_LOG2E;
  return where(same_infinity, a, hlo::max(a, b) + rest);
}

// x * log(y), 0 for x = 0 unless y is NaN.
template <Value (*log)(Value)>
Value x_log(Value x, Value y) {
  return where(hlo::is_nan(y), y, where(equals(x, 0), 0.0, x * log(y)));
}
template <Value (*log)(Value)>
Value x_log_tensor(Value x, Value y) {
  return binary_in_float<x_log<log>>(x, y);
}
Value step(Value x, Value at_zero) {
  const Value positive = hlo::convert(x > 0.0, x.dtype());
  return where(equals(x, 0), at_zero, positive);
}

// self * 2^other; the power is exact.
Value ldexp(Value self, Value other) {
  const Value y = to_float(other);
  const DType t = result_type(Values{self, y});
  const Values v = align_compute({self, y});
  const Value power = hlo::pow(hlo::full_like(v[1], 2.0), v[1]);
  return hlo::convert(v[0] * power, t);
}

Value where_self(Value condition, Value self, Value other) {
  require(ir::is_bool(condition.dtype()) || condition.dtype() == DType::kU8,
          "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
          scalar_type_name(condition.dtype()));
  const DType t = result_type(Values{self, other});
  const Dims dims = broadcast_dims(Values{condition, self, other});
  const auto wide = [&](Value v, DType as) { return hlo::broadcast_to(hlo::convert(v, as), dims); };
  return hlo::select(wide(condition, DType::kPred), wide(self, t), wide(other, t));
}

Value masked_fill(Value self, Value mask, Value value) {
  require(ir::is_bool(mask.dtype()),
          "masked_fill_ only supports boolean masks, but got mask with dtype {}",
          cpp_name(mask.dtype()));
  const Dims dims = broadcast_dims(Values{self, mask});
  return hlo::select(hlo::broadcast_to(mask, dims), hlo::broadcast_to(value, dims),
                     hlo::broadcast_to(self, dims));
}
Value masked_fill_scalar(Value self, Value mask, Scalar value) {
  return masked_fill(self, mask, value.exact(self.dtype()));
}
Value masked_fill_tensor(Value self, Value mask, Value value) {
  require(value.rank() == 0,
          "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
          "dimension(s).",
          value.rank());
  return masked_fill(self, mask, hlo::convert(value, self.dtype()));
}

}  // namespace

Rules pointwise_rules() {
  const Traits pointwise{.strides = Strides::kPointwise};
  const Traits checked{.strides = Strides::kPointwise, .indexes = true};
  return {
      {"aten::add.Tensor", add},
      {"aten::sub.Tensor", sub},
      {"aten::rsub.Tensor", rsub, pointwise},
      {"aten::mul.Tensor", binary<hlo::mul>},
      {"aten::div.Tensor", binary_in_float<hlo::div>},
      {"aten::div.Tensor_mode", div_mode, checked},
      {"aten::floor_divide", floor_divide, checked},
      {"aten::remainder.Tensor", remainder, checked},
      {"aten::remainder.Scalar_Tensor", remainder_scalar_tensor, checked},
      {"aten::fmod.Tensor", fmod, checked},
      {"aten::pow.Tensor_Tensor", binary<power>},
      {"aten::pow.Tensor_Scalar", pow_tensor_scalar},
      {"aten::pow.Scalar", pow_scalar_tensor},
      {"aten::addcmul", addcmul},
      {"aten::addcdiv", addcdiv},
      {"aten::lerp.Tensor", lerp_tensor},
      {"aten::lerp.Scalar", lerp_scalar},
      {"aten::atan2", binary_in_float<hlo::atan2>},
      {"aten::hypot", binary<hypotenuse>},
      {"aten::copysign.Tensor", binary_in_float<copy_sign>},
      {"aten::nextafter", binary<hlo::next_after>},
      {"aten::ldexp.Tensor", ldexp, pointwise},
      {"aten::maximum", binary<hlo::max>},
      {"aten::minimum", binary<hlo::min>},
      {"aten::fmax", binary<maximum_number>},
      {"aten::fmin", binary<minimum_number>},
      {"aten::clamp", clamp_scalar},
      {"aten::clamp.Tensor", clamp_values},
      {"aten::clamp_min", clamp_min},
      {"aten::clamp_min.Tensor", binary<hlo::max>},
      {"aten::clamp_max", clamp_max},
      {"aten::clamp_max.Tensor", binary<hlo::min>},
      {"aten::logaddexp", binary<log_add_exp>},
      {"aten::logaddexp2", binary<log_add_exp2>},
      {"aten::xlogy.Tensor", x_log_tensor<hlo::log>},
      {"aten::special_xlog1py", x_log_tensor<hlo::log1p>},
      {"aten::heaviside", binary<step>},
      {"aten::where.self", where_self, pointwise},
      {"aten::masked_fill.Scalar", masked_fill_scalar, {.strides = Strides::kPreserve}},
      {"aten::masked_fill.Tensor", masked_fill_tensor, {.strides = Strides::kPreserve}},
  };
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor. Those without a StableHLO or CHLO operation of their own and more than
// a line long are in special.cc.
#include "lower/families.h"
#include "lower/math.h"

namespace tpu::lower {
namespace {

// Identity on integers and bool, which are their own rounding.
template <Value (*op)(Value)>
Value rounding(Value x) {
  return ir::is_float(x.dtype()) ? computed(x, op) : x;
}

Value absolute(Value x) { return ir::is_complex(x.dtype()) ? hlo::abs(x) : pointwise<hlo::abs>(x); }
// The CPU's comparisons leave 0 of NaN and of -0.
Value sign(Value x) {
  const Value y = hlo::sign(x);
  if (!ir::is_float(x.dtype())) return y;
  const Value zero = hlo::eq(x, hlo::full_like(x, 0.0)) | hlo::is_nan(x);
  return where(zero, 0.0, y);
}
Value frac(Value x) { return x - truncate(x); }
Value reciprocal(Value x) { return 1.0 / x; }
Value log2(Value x) { return hlo::log(x) * M_LOG2E; }
Value log10(Value x) { return hlo::log(x) * M_LOG10E; }

Value exp2(Value x) {
  if (ir::is_complex(x.dtype())) return hlo::exp(x * M_LN2);
  return hlo::pow(hlo::full_like(x, 2.0), x);
}

Value sinc(Value x) {
  const Value y = x * M_PI;
  return where(equals(x, 0), 1.0, hlo::sin(y) / y);
}

template <Value (*op)(Value)>
Value real_only(Value x, const char* name) {
  require(!ir::is_complex(x.dtype()), "{} is not supported for complex tensors.", name);
  return in_float<op>(x);
}
Value to_degrees(Value x) { return x * (180 / M_PI); }
Value to_radians(Value x) { return x * (M_PI / 180); }
Value rad2deg(Value x) { return real_only<to_degrees>(x, "rad2deg"); }
Value deg2rad(Value x) { return real_only<to_radians>(x, "deg2rad"); }

Value angle(Value x) {
  if (ir::is_complex(x.dtype())) return hlo::atan2(hlo::imag(x), hlo::real(x));
  return computed_in_float(x, [](Value y) {
    const Value half_turn = where(y < 0.0, M_PI, hlo::full_like(y, 0.0));
    return where(hlo::is_nan(y), y, half_turn);
  });
}

Value conjugate(Value x) {
  return ir::is_complex(x.dtype()) ? hlo::complex(hlo::real(x), -hlo::imag(x)) : x;
}
Value log_odds(Value x) { return hlo::log(x / (1.0 - x)); }

Value logit(Value x, std::optional<Scalar> eps) {
  if (eps) eps->require_fits(float_type(x.dtype()));
  return computed_in_float(x, [&](Value y) {
    if (!eps) return log_odds(y);
    const Value low = eps->like(y);
    return log_odds(clip(y, low, 1.0 - low));
  });
}

Value round_decimals(Value x, int64_t decimals) {
  const double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return computed(x, [&](Value y) {
    return decimals >= 0 ? hlo::round_half_even(y * power) / power
                         : hlo::round_half_even(y / power) * power;
  });
}

struct FloatLayout {
  DType bits;
  int mantissa;  // width of the field
  int bias;
};
FloatLayout layout_of(DType t) {
  return t == DType::kF64 ? FloatLayout{DType::kS64, 52, 1023} : FloatLayout{DType::kS32, 23, 127};
}

// (mantissa in [0.5, 1), exponent), read from the bits; a subnormal number is scaled up first.
std::pair<Value, Value> split_float(Value x) {
  const FloatLayout f = layout_of(x.dtype());
  const double scale = std::ldexp(1.0, f.mantissa + 1);
  const double smallest = std::ldexp(1.0, 1 - f.bias);
  const Value subnormal = hlo::abs(x) < smallest;
  const Value bits = hlo::bitcast(where(subnormal, x * scale, x), f.bits);
  const auto constant = [&](int64_t c) { return hlo::full_like(bits, c); };
  const int64_t exponent_mask = int64_t{2} * f.bias + 1;
  const Value field =
      hlo::shift_right_arithmetic(bits, constant(f.mantissa)) & constant(exponent_mask);
  const Value low_bits = bits & constant(~(exponent_mask << f.mantissa));
  const Value mantissa =
      hlo::bitcast(low_bits | constant(int64_t{f.bias - 1} << f.mantissa), x.dtype());
  const Value exponent = field - (f.bias - 1);
  const Value plain = equals(x, 0) | ~hlo::is_finite(x);
  return {where(plain, x, mantissa),
          where(plain, 0.0, where(subnormal, exponent - (f.mantissa + 1), exponent))};
}

std::pair<Value, Value> frexp(Value x) {
  require(ir::is_float(x.dtype()), "torch.frexp() only supports floating-point dtypes");
  const auto [mantissa, exponent] = split_float(hlo::convert(x, ir::compute_type(x.dtype())));
  return {hlo::convert(mantissa, x.dtype()), hlo::convert(exponent, DType::kS32)};
}

Value replace_non_finite(Value x, const std::optional<Scalar>& nan,
                         const std::optional<Scalar>& high, const std::optional<Scalar>& low,
                         double greatest) {
  const auto chosen = [&](const std::optional<Scalar>& s, double other) {
    return s ? s->like(x) : hlo::full_like(x, other);
  };
  Value y = where(hlo::is_nan(x), chosen(nan, 0), x);
  y = where(equals(x, INFINITY), chosen(high, greatest), y);
  return where(equals(x, -INFINITY), chosen(low, -greatest), y);
}

Value nan_to_num(Value x, std::optional<Scalar> nan, std::optional<Scalar> high,
                 std::optional<Scalar> low) {
  const double greatest = greatest_finite(ir::real_of(x.dtype()));
  const auto replace = [&](Value y) { return replace_non_finite(y, nan, high, low, greatest); };
  if (ir::is_complex(x.dtype())) return hlo::complex(replace(hlo::real(x)), replace(hlo::imag(x)));
  return ir::is_float(x.dtype()) ? computed(x, replace) : x;
}

}  // namespace

Rules unary_rules() {
  const Traits as_input{.strides = Strides::kPointwise};
  return {
      {"aten::abs", absolute, as_input},
      {"aten::neg", pointwise<hlo::neg>},
      {"aten::sign", pointwise<sign>},
      {"aten::sgn", pointwise<sign>},
      {"aten::angle", angle, as_input},
      {"aten::_conj_physical", conjugate, as_input},
      {"aten::conj_physical_", conjugate, as_input},
      {"aten::conj_physical.out", conjugate, as_input},
      {"aten::ceil", rounding<hlo::ceil>},
      {"aten::floor", rounding<hlo::floor>},
      {"aten::round", rounding<hlo::round_half_even>},
      {"aten::round.decimals", round_decimals},
      {"aten::trunc", rounding<truncate>},
      {"aten::frac", pointwise<frac>},
      {"aten::reciprocal", in_float<reciprocal>},
      {"aten::sqrt", in_float<hlo::sqrt>},
      {"aten::rsqrt", in_float<hlo::rsqrt>},
      {"aten::exp", in_float<hlo::exp>},
      {"aten::exp2", in_float<exp2>},
      {"aten::expm1", in_float<hlo::expm1>},
      {"aten::log", in_float<hlo::log>},
      {"aten::log1p", in_float<hlo::log1p>},
      {"aten::log2", in_float<log2>},
      {"aten::log10", in_float<log10>},
      {"aten::sin", in_float<hlo::sin>},
      {"aten::cos", in_float<hlo::cos>},
      {"aten::tan", in_float<hlo::tan>},
      {"aten::asin", in_float<hlo::asin>},
      {"aten::acos", in_float<hlo::acos>},
      {"aten::atan", in_float<hlo::atan>},
      {"aten::sinh", in_float<hlo::sinh>},
      {"aten::cosh", in_float<hlo::cosh>},
      {"aten::tanh", in_float<hlo::tanh>},
      {"aten::asinh", in_float<hlo::asinh>},
      {"aten::acosh", in_float<hlo::acosh>},
      {"aten::atanh", in_float<hlo::atanh>},
      {"aten::sigmoid", in_float<hlo::logistic>},
      {"aten::logit", logit, as_input},
      {"aten::sinc", in_float<sinc>},
      {"aten::rad2deg", rad2deg, as_input},
      {"aten::deg2rad", deg2rad, as_input},
      {"aten::erf", in_float<hlo::erf>},
      {"aten::erfc", in_float<hlo::erfc>},
      {"aten::erfinv", in_float<hlo::erf_inv>},
      {"aten::frexp.Tensor", frexp, as_input},
      {"aten::nan_to_num", nan_to_num, as_input},
  };
}

}  // namespace tpu::lower

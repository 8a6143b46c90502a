// SPDX-License-Identifier: Apache-2.0
// The gamma function and its kin, and functions of the normal distribution.
#include "core/hlo/control.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/special_tables.h"

namespace tpu::lower {
namespace {

// Poles: infinite at zero (by the sign of zero), undefined at the other non-positive integers.
Value digamma(Value x) {
  const Value pole = (x < 0.0) & hlo::eq(x, hlo::floor(x));
  const Value at_zero = copy_sign(hlo::full_like(x, INFINITY), -x);
  return where(equals(x, 0), at_zero, where(pole, hlo::nan_like(x), hlo::digamma(x)));
}

// Reflected to x >= 1/2, moved up by recurrence to where the asymptotic series holds.
Value trigamma(Value x) {
  const Value reflected = x < 0.5;
  const Value sine = hlo::sin(x * M_PI);
  Value y = where(reflected, 1.0 - x, x);
  Value sum = hlo::full_like(x, 0.0);
  for (int i = 0; i < 6; ++i) {
    sum = sum + 1.0 / (y * y);
    y = y + 1;
  }
  constexpr double kTerms[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66};
  const Value inverse = 1.0 / (y * y);
  sum = sum + (1.0 + 0.5 / y + inverse * polynomial(inverse, kTerms)) / y;
  return where(reflected, (M_PI * M_PI) / (sine * sine) - sum, sum);
}

constexpr double kMaxTerms = 10000;

// The terms of zeta(x, q) with negative q + k one by one, and the positive argument that remains.
std::pair<Value, Value> sum_negative_terms(Value x, Value q) {
  const auto negative = [](Value v) { return (v < 0.0) & (v > -kMaxTerms); };
  const auto more = [&](std::span<const Value> v) {
    return hlo::reduce_or(negative(v[0]), all_axes(x.rank()));
  };
  const auto next = [&](std::span<const Value> v) -> Values {
    const Value on = negative(v[0]);
    return {where(on, v[0] + 1, v[0]), where(on, v[1] + hlo::pow(v[0], -x), v[1])};
  };
  const Values done = hlo::while_loop({q, hlo::full_like(x, 0.0)}, more, next);
  return {done[1], done[0]};
}

Value zeta(Value x, Value q) {
  const Value pole = (q <= 0.0) & hlo::eq(q, hlo::floor(q));
  const Value undefined = (x < 1) | ((q <= 0.0) & hlo::ne(x, hlo::floor(x)) & ~pole);
  const auto [negative_terms, rest] = sum_negative_terms(x, q);
  const Value sum = negative_terms + hlo::zeta(x, rest);
  const Value y = where(equals(x, 1) | (pole & (x > 1)), INFINITY, sum);
  return where(undefined, hlo::nan_like(x), y);
}

Value polygamma(int64_t n, Value x) {
  if (n == 0) return in_float<digamma>(x);
  if (n == 1) return in_float<trigamma>(x);
  return computed_in_float(x, [&](Value y) {
    const double order = static_cast<double>(n) + 1;
    const double sign = n % 2 ? 1 : -1;
    return sign * std::tgamma(order) * zeta(hlo::full_like(y, order), y);
  });
}

Value entr(Value x) {
  const Value y = -x * hlo::log(x);
  return where(hlo::is_nan(x) | (x > 0.0), y,
               where(equals(x, 0), 0.0, hlo::full_like(x, -INFINITY)));
}

// exp(x^2) erfc(x)
Value erfcx(Value x) {
  const Value y = hlo::abs(x);
  const Value positive = expand(1.0 - 4.0 / (y + 2), kErfcx) / (1.0 + 2.0 * y);
  return where(x < 0.0, 2.0 * hlo::exp(x * x) - positive, positive);
}

Value log_ndtr(Value x) {
  const Value t = x * M_SQRT1_2;
  return where(x < -1, hlo::log(erfcx(-t) * 0.5) - t * t, hlo::log1p(hlo::erfc(t) * -0.5));
}

// The quantile function of the normal distribution. Exact in the tails: they are computed from the
// logarithm of the smaller probability.
Value ndtri(Value p) {
  const Value y = p - 0.5;
  const Value middle = y * expand(y * y, kQuantileMiddle);
  const Value small = hlo::min(p, 1.0 - p);
  const Value z = hlo::sqrt(-2.0 * hlo::log(small));
  const Value inverse = 1.0 / z;
  const Value correction =
      where(z < 8, expand(inverse, kQuantileNear), expand(inverse, kQuantileFar));
  const Value tail = z - hlo::log(z) * inverse - correction;
  const Value finite = where(hlo::abs(y) < 0.36, middle, where(y < 0.0, -tail, tail));
  const Value infinite = hlo::full_like(p, INFINITY);
  const Value inside = where(equals(p, 0), -infinite, where(equals(p, 1), infinite, finite));
  return where((p < 0.0) | (p > 1), hlo::nan_like(p), inside);
}

// log(1 + u) - u without cancellation: with r = u / (2 + u), log(1 + u) = 2 atanh(r).
Value log1p_minus(Value u) {
  constexpr double kTerms[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                               2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const Value r = u / (u + 2);
  const Value near = r * r * (r * polynomial(r * r, kTerms) - 2.0 / (1.0 - r));
  return where(hlo::abs(u) < 0.3, near, hlo::log1p(u) - u);
}

// x^a exp(-x) / gamma(a + 1); for larger a relative to the peak at x = a, by Stirling's series.
Value gamma_density(Value a, Value x) {
  const Value direct = hlo::exp(a * hlo::log(x) - x - hlo::lgamma(a + 1));
  constexpr double kStirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680};
  const Value inverse = 1.0 / a;
  const Value correction = inverse * polynomial(inverse * inverse, kStirling);
  const Value exponent = a * log1p_minus((x - a) * inverse) - correction;
  return where(a < 10, direct, hlo::exp(exponent) * hlo::rsqrt(a * (2 * M_PI)));
}

double epsilon(DType t) { return t == DType::kF64 ? 0x1p-52 : 0x1p-23; }

// The sum over k of x^k / ((a + 1) ... (a + k)); 1 outside `needed`.
Value gamma_series(Value a, Value x, Value needed) {
  const double eps = epsilon(x.dtype()) / 2;
  const auto more = [&](std::span<const Value> v) {
    const Value any = hlo::reduce_or(v[1] > v[2] * eps, all_axes(x.rank()));
    return any & (v[0] < kMaxTerms);
  };
  const auto next = [&](std::span<const Value> v) -> Values {
    const Value term = v[1] * x / (a + hlo::broadcast_to(v[0], a.dims()));
    return {v[0] + 1, term, v[2] + term};
  };
  const Value one = hlo::constant(x.graph(), x.dtype(), 1.0);
  const Value first = where(needed, 1.0, hlo::full_like(x, 0.0));
  return hlo::while_loop({one, first, hlo::full_like(x, 1.0)}, more, next)[2];
}

// The continued fraction of the upper function over its density, by Lentz's method.
Value gamma_fraction(Value a, Value x, Value needed) {
  const double eps = 2 * epsilon(x.dtype());
  constexpr double kTiny = 1e-30;
  const auto not_zero = [&](Value v) { return where(hlo::abs(v) < kTiny, kTiny, v); };
  // An element that has converged stays: further factors are rounding errors.
  const auto changing = [&](Value factor) { return hlo::abs(factor - 1) > eps; };
  const auto more = [&](std::span<const Value> v) {
    return hlo::reduce_or(changing(v[4]), all_axes(x.rank())) & (v[0] < kMaxTerms);
  };
  const auto next = [&](std::span<const Value> v) -> Values {
    const Value i = hlo::broadcast_to(v[0], x.dims());
    const Value numerator = i * (a - i);
    const Value denominator = x + (1.0 - a) + 2.0 * i;
    const Value d = 1.0 / not_zero(numerator * v[2] + denominator);
    const Value c = not_zero(denominator + numerator / v[1]);
    const Value factor = where(changing(v[4]), c * d, 1.0);
    return {v[0] + 1, c, d, v[3] * factor, factor};
  };
  const Value one = hlo::constant(x.graph(), x.dtype(), 1.0);
  const Value first = 1.0 / not_zero(x + (1.0 - a));
  const Value begun = where(needed, 2.0, hlo::full_like(x, 1.0));
  const Values start{one, hlo::full_like(x, 1 / kTiny), first, first, begun};
  return hlo::while_loop(start, more, next)[3];
}

// Regularized incomplete gamma functions: the lower one by series below x = a + 1, the upper one by
// its fraction above.
Value incomplete_gamma(Value a, Value x, bool upper) {
  const Value inside = (a > 0.0) & (x > 0.0) & hlo::is_finite(a) & hlo::is_finite(x);
  const Value below = x < a + 1;
  const Value density = gamma_density(a, x);
  const Value lower_part = density * gamma_series(a, x, inside & below);
  const Value upper_part = density * a * gamma_fraction(a, x, inside & ~below);
  const Value value = upper ? where(below, 1.0 - lower_part, upper_part)
                            : where(below, lower_part, 1.0 - upper_part);
  const Value nothing = hlo::full_like(x, upper ? 1.0 : 0.0);  // of the lower integral
  const Value all = hlo::full_like(x, upper ? 0.0 : 1.0);
  const Value a_infinite = is_infinite(a);
  Value edge = where(is_infinite(x), where(a_infinite, hlo::nan_like(x), all), value);
  edge = where(a_infinite & ~is_infinite(x), nothing, edge);
  edge = where(equals(x, 0), nothing, edge);
  edge = where(equals(a, 0), where(x > 0.0, all, hlo::nan_like(x)), edge);
  const Value undefined = (a < 0.0) | (x < 0.0) | hlo::is_nan(a) | hlo::is_nan(x);
  return where(undefined, hlo::nan_like(x), edge);
}
Value igamma(Value a, Value x) { return incomplete_gamma(a, x, false); }
Value igammac(Value a, Value x) { return incomplete_gamma(a, x, true); }

}  // namespace

Rules special_rules() {
  return {
      {"aten::lgamma", in_float<hlo::lgamma>},
      {"aten::digamma", in_float<digamma>},
      {"aten::polygamma", polygamma},
      {"aten::special_zeta", binary_in_float<zeta>},
      {"aten::igamma", binary<igamma>},
      {"aten::igammac", binary<igammac>},
      {"aten::special_entr", in_float<entr>},
      {"aten::special_erfcx", in_float<erfcx>},
      {"aten::special_log_ndtr", in_float<log_ndtr>},
      {"aten::special_ndtri", in_float<ndtri>},
  };
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
// Orthogonal polynomials of degree n (a tensor) by their three-term recurrences, all elements
// together until the largest degree is reached; Chebyshev's of high degree by trigonometry.
#include "core/hlo/control.h"
#include "lower/families.h"
#include "lower/math.h"

namespace tpu::lower {
namespace {

// The member of degree j + 1 from those of degree j and j - 1; j is a float of x's type.
using Step = Value (*)(Value j, Value x, Value current, Value previous);

Value chebyshev_step(Value, Value x, Value q, Value p) { return (x + x) * q - p; }
Value hermite_step(Value j, Value x, Value q, Value p) { return (x + x) * q - (j + j) * p; }
Value hermite_e_step(Value j, Value x, Value q, Value p) { return x * q - j * p; }
Value laguerre_step(Value j, Value x, Value q, Value p) {
  return ((j + j + 1 - x) * q - j * p) / (j + 1);
}
Value legendre_step(Value j, Value x, Value q, Value p) {
  return ((j + j + 1) * x * q - j * p) / (j + 1);
}

// `linear` is the member of degree 1. Elements outside `needed` are left at it.
Value recurrence(Value x, Value n, Value linear, Value needed, Step step) {
  Graph& graph = x.graph();
  const auto active = [&](Value j, Value q, Value degree, Value wanted) {
    return wanted & (degree > hlo::broadcast_to(j, degree.dims())) & ~hlo::is_nan(q);
  };
  const auto more = [&](std::span<const Value> v) {
    return hlo::reduce_or(active(v[0], v[1], n, needed), all_axes(n.rank()));
  };
  const auto next = [&](std::span<const Value> v) -> Values {
    const Value j = hlo::broadcast_to(v[0], x.dims());
    const Value on = active(v[0], v[1], n, needed);
    return {v[0] + 1, where(on, step(j, x, v[1], v[2]), v[1]), where(on, v[1], v[2])};
  };
  const Value one = hlo::constant(graph, x.dtype(), int64_t{1});
  const Value top = hlo::while_loop({one, linear, hlo::full_like(x, 1.0)}, more, next)[1];
  return where(n < 0.0, 0.0, where(n < 1, 1.0, top));
}

Value whole(Value n) { return truncate(n); }
Value everywhere(Value x) { return hlo::full(x.graph(), {DType::kPred, x.dims()}, true); }

enum class Kind { kFirst, kSecond, kThird, kFourth };

Value linear_member(Value x, Kind kind) {
  switch (kind) {
    case Kind::kFirst:
      return x;
    case Kind::kSecond:
      return x + x;
    case Kind::kThird:
      return x + x - 1;
    case Kind::kFourth:
      return x + x + 1;
  }
  return x;
}

// With x = cos(angle).
Value trigonometric(Value angle, Value n, Kind kind) {
  switch (kind) {
    case Kind::kFirst:
      return hlo::cos(n * angle);
    case Kind::kSecond:
      return hlo::sin((n + 1) * angle) / hlo::sin(angle);
    case Kind::kThird:
      return hlo::cos((n + 0.5) * angle) / hlo::cos(angle * 0.5);
    case Kind::kFourth:
      return hlo::sin((n + 0.5) * angle) / hlo::sin(angle * 0.5);
  }
  return angle;
}

template <Kind kind>
Value chebyshev_member(Value x, Value degree) {
  const Value n = whole(degree);
  const Value high = (n > (kind == Kind::kFirst ? 6.0 : 8.0)) & (hlo::abs(x) < 1);
  const Value low = recurrence(x, n, linear_member(x, kind), ~high, chebyshev_step);
  return where(high, trigonometric(hlo::acos(x), n, kind), low);
}

template <Kind kind>
Value shifted_member(Value x, Value n) {
  return chebyshev_member<kind>(x + x - 1, n);
}

// PyTorch stops here, where the values of the type have long overflowed.
double hermite_limit(DType t) { return t == DType::kF64 ? 512 : 128; }

Value hermite_member(Value x, Value n, Value linear, Step step) {
  const Value y = recurrence(x, n, linear, n <= hermite_limit(x.dtype()), step);
  return where(n > hermite_limit(x.dtype()), hlo::nan_like(x), y);
}
Value hermite(Value x, Value degree) {
  const Value n = where(hlo::is_finite(degree), whole(degree), -1.0);
  return hermite_member(x, n, x + x, hermite_step);
}
Value hermite_e(Value x, Value degree) {
  return hermite_member(x, whole(degree), x, hermite_e_step);
}
Value laguerre(Value x, Value degree) {
  return recurrence(x, whole(degree), 1.0 - x, everywhere(x), laguerre_step);
}
Value legendre(Value x, Value degree) {
  return recurrence(x, whole(degree), x, everywhere(x), legendre_step);
}

}  // namespace

Rules polynomial_rules() {
  return {
      {"aten::special_chebyshev_polynomial_t", binary_in_float<chebyshev_member<Kind::kFirst>>},
      {"aten::special_chebyshev_polynomial_u", binary_in_float<chebyshev_member<Kind::kSecond>>},
      {"aten::special_chebyshev_polynomial_v", binary_in_float<chebyshev_member<Kind::kThird>>},
      {"aten::special_chebyshev_polynomial_w", binary_in_float<chebyshev_member<Kind::kFourth>>},
      {"aten::special_shifted_chebyshev_polynomial_t",
       binary_in_float<shifted_member<Kind::kFirst>>},
      {"aten::special_shifted_chebyshev_polynomial_u",
       binary_in_float<shifted_member<Kind::kSecond>>},
      {"aten::special_shifted_chebyshev_polynomial_v",
       binary_in_float<shifted_member<Kind::kThird>>},
      {"aten::special_shifted_chebyshev_polynomial_w",
       binary_in_float<shifted_member<Kind::kFourth>>},
      {"aten::special_hermite_polynomial_h", binary_in_float<hermite>},
      {"aten::special_hermite_polynomial_he", binary_in_float<hermite_e>},
      {"aten::special_laguerre_polynomial_l", binary_in_float<laguerre>},
      {"aten::special_legendre_polynomial_p", binary_in_float<legendre>},
  };
}

}  // namespace tpu::lower

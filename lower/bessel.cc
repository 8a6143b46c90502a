// SPDX-License-Identifier: Apache-2.0
// Bessel and Airy functions: a Chebyshev expansion near the origin, another of the amplitude (and,
// for oscillating functions, phase) in the inverse argument beyond it.
#include "lower/families.h"
#include "lower/math.h"
#include "lower/special_tables.h"

namespace tpu::lower {
namespace {

Value i0_scaled(Value x) {
  const Value y = hlo::abs(x);
  return where(y <= 8, expand(y, kI0Small), expand(1.0 / y, kI0Large) * hlo::rsqrt(y));
}

Value i1_scaled(Value x) {
  const Value y = hlo::abs(x);
  const Value size =
      where(y <= 8, y * expand(y, kI1Small), expand(1.0 / y, kI1Large) * hlo::rsqrt(y));
  return where(x < 0.0, -size, size);
}

Value i0(Value x) { return hlo::exp(hlo::abs(x)) * i0_scaled(x); }
Value i1(Value x) { return hlo::exp(hlo::abs(x)) * i1_scaled(x); }

// Not a number below zero, by way of the logarithm.
Value k0_small(Value x) { return expand(x * x, kK0Small) - hlo::log(x * 0.5) * i0(x); }
Value k1_small(Value x) {
  const Value y = hlo::log(x * 0.5) * i1(x) + expand(x * x, kK1Small) / x;
  return where(equals(x, 0), INFINITY, y);
}
Value k0_large_scaled(Value x) { return expand(1.0 / x, kK0Large) * hlo::rsqrt(x); }
Value k1_large_scaled(Value x) { return expand(1.0 / x, kK1Large) * hlo::rsqrt(x); }

Value k0(Value x) { return where(x > 2, hlo::exp(-x) * k0_large_scaled(x), k0_small(x)); }
Value k1(Value x) { return where(x > 2, hlo::exp(-x) * k1_large_scaled(x), k1_small(x)); }
Value k0_scaled(Value x) { return where(x > 2, k0_large_scaled(x), hlo::exp(x) * k0_small(x)); }
Value k1_scaled(Value x) { return where(x > 2, k1_large_scaled(x), hlo::exp(x) * k1_small(x)); }

// cos and sin of x - pi/4.
struct Phase {
  explicit Phase(Value x)
      : cos((hlo::cos(x) + hlo::sin(x)) * M_SQRT1_2),
        sin((hlo::sin(x) - hlo::cos(x)) * M_SQRT1_2) {}
  Value cos;
  Value sin;
};

// The parts of the large-argument form and their common factor.
struct Hankel {
  Hankel(Value x, const Expansion& p_table, const Expansion& q_table)
      : scale(hlo::rsqrt(x * M_PI_2)),
        p(expand(64.0 / (x * x), p_table)),
        q(expand(64.0 / (x * x), q_table) * 8 / x) {}
  Value scale;
  Value p;
  Value q;
};

Value j0(Value x) {
  const Value y = hlo::abs(x);
  const Hankel h(y, kP0, kQ0);
  const Phase phase(y);
  const Value far = h.scale * (h.p * phase.cos - h.q * phase.sin);
  return where(y <= 8, expand(y * y, kJ0Small), far);
}

// The phase is a quarter turn behind: cos(x - 3 pi/4) = sin(x - pi/4).
Value j1(Value x) {
  const Value y = hlo::abs(x);
  const Hankel h(y, kP1, kQ1);
  const Phase phase(y);
  const Value far = h.scale * (h.p * phase.sin + h.q * phase.cos);
  return where(y <= 8, x * expand(y * y, kJ1Small), where(x < 0.0, -far, far));
}

Value y0(Value x) {
  const Hankel h(x, kP0, kQ0);
  const Phase phase(x);
  const Value near = expand(x * x, kY0Small) + M_2_PI * hlo::log(x) * j0(x);
  return where(x > 8, h.scale * (h.p * phase.sin + h.q * phase.cos), near);
}

Value y1(Value x) {
  const Hankel h(x, kP1, kQ1);
  const Phase phase(x);
  const Value near = x * expand(x * x, kY1Small) + M_2_PI * (hlo::log(x) * j1(x) - 1.0 / x);
  const Value y = where(x > 8, h.scale * (h.q * phase.sin - h.p * phase.cos), near);
  return where(equals(x, 0), -INFINITY, y);
}

Value spherical_j0(Value x) {
  const Value y = where(equals(x, 0), 1.0, hlo::sin(x) / x);
  return where(is_infinite(x), 0.0, y);
}

Value airy_ai(Value x) {
  const Value y = hlo::abs(x);
  const Value root = hlo::sqrt(y);
  const Value zeta = y * root * (2.0 / 3);
  const Value scale = hlo::rsqrt(root * M_PI);
  const Value decay = 0.5 * scale * hlo::exp(-zeta) * expand(1.0 / zeta, kAiryDecay);
  const Value inverse = 1.0 / (zeta * zeta);
  const Phase phase(zeta);  // sin(zeta + pi/4) = cos(zeta - pi/4)
  const Value wave = scale * (phase.cos * expand(inverse, kAirySin) +
                              phase.sin * expand(inverse, kAiryCos) / zeta);
  const Value far = where(x < 0.0, wave, decay);
  const Value finite = where(y <= 2, expand(x, kAiryMiddle), far);
  return where(is_infinite(x), hlo::nan_like(x), finite);
}

}  // namespace

Rules bessel_rules() {
  return {
      {"aten::i0", in_float<i0>},
      {"aten::special_i0e", in_float<i0_scaled>},
      {"aten::special_i1", in_float<i1>},
      {"aten::special_i1e", in_float<i1_scaled>},
      {"aten::special_modified_bessel_i0", in_float<i0>},
      {"aten::special_modified_bessel_i1", in_float<i1>},
      {"aten::special_modified_bessel_k0", in_float<k0>},
      {"aten::special_modified_bessel_k1", in_float<k1>},
      {"aten::special_scaled_modified_bessel_k0", in_float<k0_scaled>},
      {"aten::special_scaled_modified_bessel_k1", in_float<k1_scaled>},
      {"aten::special_bessel_j0", in_float<j0>},
      {"aten::special_bessel_j1", in_float<j1>},
      {"aten::special_bessel_y0", in_float<y0>},
      {"aten::special_bessel_y1", in_float<y1>},
      {"aten::special_spherical_bessel_j0", in_float<spherical_j0>},
      {"aten::special_airy_ai", in_float<airy_ai>},
  };
}

}  // namespace tpu::lower

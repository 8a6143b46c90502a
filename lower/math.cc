// SPDX-License-Identifier: Apache-2.0
#include "lower/math.h"

#include "lower/special_tables.h"

namespace tpu::lower {
namespace {

DType bits_type(DType t) {
  switch (ir::byte_size(t)) {
    case 1:
      return DType::kS8;
    case 2:
      return DType::kS16;
    case 4:
      return DType::kS32;
    default:
      return DType::kS64;
  }
}

}  // namespace

Value operator*(Value a, double b) {
  if (!ir::is_complex(a.dtype())) return a * hlo::full_like(a, b);
  return hlo::complex(hlo::real(a) * b, hlo::imag(a) * b);
}

Value sign_bit(Value x) {
  if (ir::is_bool(x.dtype())) return hlo::full_like(x, false);
  if (!ir::is_float(x.dtype())) return x < 0.0;
  return hlo::bitcast(x, bits_type(x.dtype())) < 0.0;
}

Value copy_sign(Value magnitude, Value sign) {
  const Value positive = hlo::abs(magnitude);
  return where(sign_bit(sign), -positive, positive);
}

Value truncate(Value x) {
  if (!ir::is_float(x.dtype())) return x;
  return where(x < 0.0, hlo::ceil(x), hlo::floor(x));
}

Value is_infinite(Value x) {
  if (!ir::is_float(x.dtype())) return hlo::full(x.graph(), {DType::kPred, x.dims()}, false);
  return hlo::eq(hlo::abs(x), hlo::full_like(x, INFINITY));
}

Value polynomial(Value x, std::span<const double> coefficients) {
  Value sum = hlo::full_like(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// Clenshaw's recurrence, without the terms that x's type cannot see.
Value expand(Value x, const Expansion& expansion) {
  const auto& c = expansion.coefficients;
  const double seen = x.dtype() == DType::kF64 ? 0 : 1e-9 * std::abs(c[0]);
  size_t terms = c.size();
  while (terms > 2 && std::abs(c[terms - 1]) < seen) --terms;
  const double half = (expansion.high - expansion.low) / 2;
  const Value t = x / half - (expansion.low / half + 1);
  const Value twice = t + t;
  Value b1 = hlo::full_like(x, c[terms - 1]);
  Value b2 = hlo::full_like(x, 0.0);
  for (size_t i = terms - 1; i-- > 1;) {
    const Value b0 = twice * b1 - b2 + c[i];
    b2 = b1;
    b1 = b0;
  }
  return t * b1 - b2 + c[0];
}

}  // namespace tpu::lower

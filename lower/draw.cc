// SPDX-License-Identifier: Apache-2.0
#include "lower/draw.h"

#include <cmath>

#include "core/hlo/control.h"
#include "core/hlo/shape.h"

namespace tpu::lower {
namespace {

constexpr double kSqrt2 = 1.41421356237309504880;

struct Fraction {
  DType bits;
  int digits;  // of the fraction

  explicit Fraction(DType t)
      : bits(t == DType::kF64 ? DType::kU64 : DType::kU32), digits(t == DType::kF64 ? 53 : 24) {}
  int unused() const { return (bits == DType::kU64 ? 64 : 32) - digits; }
};

// The number k of the interval, 0 <= k < 2^digits.
Value interval(Value bits, DType t) {
  const Fraction f(t);
  const Value k = hlo::shift_right_logical(bits, hlo::full_like(bits, int64_t{f.unused()}));
  // Signed conversions are the fast ones, and exact here.
  return hlo::convert(hlo::bitcast(k, f.bits == DType::kU64 ? DType::kS64 : DType::kS32), t);
}

Value fraction(Value bits, DType t) {
  return interval(bits, t) * std::ldexp(1.0, -Fraction(t).digits);
}

// One bit less, so that the half is exact.
Value open_fraction(Value bits, DType t) {
  const Fraction f(t);
  const Value k = hlo::shift_right_logical(bits, hlo::full_like(bits, int64_t{f.unused() + 1}));
  const Value odd =
      hlo::convert(hlo::bitcast(k, f.bits == DType::kU64 ? DType::kS64 : DType::kS32), t) * 2.0 +
      1.0;
  return odd * std::ldexp(1.0, -f.digits);
}

Value normal_of(Value bits, DType t) {
  const Fraction f(t);
  // 2k + 1 - 2^digits over 2^digits: symmetric about 0, never +-1.
  const Value k = hlo::shift_right_logical(bits, hlo::full_like(bits, int64_t{f.unused()}));
  const Value whole = hlo::bitcast(k, f.bits == DType::kU64 ? DType::kS64 : DType::kS32);
  const Value odd = hlo::convert(whole * 2.0 + 1.0 - std::ldexp(1.0, f.digits), t);
  return hlo::erf_inv(odd * std::ldexp(1.0, -f.digits)) * kSqrt2;
}

DType bit_type(DType t) { return Fraction(t).bits; }

// The high 64 bits of the product of two u64.
Value high_product(Value a, Value b) {
  const Value mask = hlo::full_like(a, int64_t{0xFFFFFFFF});
  const Value shift = hlo::full_like(a, int64_t{32});
  const auto low = [&](Value x) { return hlo::and_(x, mask); };
  const auto high = [&](Value x) { return hlo::shift_right_logical(x, shift); };
  const Value cross1 = high(a) * low(b);
  const Value cross2 = low(a) * high(b);
  const Value carry = high(high(low(a) * low(b)) + low(cross1) + low(cross2));
  return high(a) * high(b) + high(cross1) + high(cross2) + carry;
}

}  // namespace

std::pair<Value, Value> Draw::take(int64_t blocks) {
  const auto state = graph_->random_state(blocks);
  const Value offset =
      taken_ == 0 ? state.offset : state.offset + hlo::constant(*graph_, DType::kU64, taken_);
  taken_ += blocks;
  return {state.seed, offset};
}

Value Draw::bits(const Dims& dims, DType t) {
  const auto [seed, offset] = take(hlo::philox_blocks(ir::element_count(dims), t));
  if (ir::element_count(dims) == 0) return hlo::full(*graph_, {t, dims}, int64_t{0});
  return hlo::philox_bits(seed, offset, dims, t);
}

Value Draw::uniform(const Dims& dims, DType t) { return fraction(bits(dims, bit_type(t)), t); }
Value Draw::open_uniform(const Dims& dims, DType t) {
  return open_fraction(bits(dims, bit_type(t)), t);
}
Value Draw::normal(const Dims& dims, DType t) { return normal_of(bits(dims, bit_type(t)), t); }
Value Draw::exponential(const Dims& dims, DType t) { return -hlo::log(open_uniform(dims, t)); }
Value Draw::bernoulli(Value p) { return uniform(p.dims(), p.dtype()) < p; }

Value Draw::integers(const Dims& dims, Value low, Value range) {
  const Value random = bits(dims, DType::kU64);
  const Value span = hlo::broadcast_to(range, dims);
  const Value all = hlo::eq(span, hlo::full_like(span, int64_t{0}));
  const Value scaled = where(all, random, high_product(random, span));
  return hlo::bitcast(scaled, DType::kS64) + hlo::broadcast_to(low, dims);
}

Value Draw::Rounds::bits(Value round, const Dims& dims, DType t) const {
  const Value start = offset_ + hlo::convert(round, DType::kU64) * hlo::full_like(offset_, blocks_);
  return hlo::philox_bits(seed_, start, dims, t);
}

Value Draw::Rounds::uniform(Value round, const Dims& dims, DType t) const {
  return open_fraction(bits(round, dims, bit_type(t)), t);
}

Value Draw::Rounds::normal(Value round, const Dims& dims, DType t) const {
  return normal_of(bits(round, dims, bit_type(t)), t);
}

Draw::Rounds Draw::rounds(int64_t rounds, const Dims& dims, DType t) {
  const int64_t blocks = hlo::philox_blocks(ir::element_count(dims), bit_type(t));
  const auto [seed, offset] = take(blocks * rounds);
  return {seed, offset, blocks};
}

}  // namespace tpu::lower

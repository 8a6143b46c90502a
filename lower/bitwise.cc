// SPDX-License-Identifier: Apache-2.0
// Bits, truth values and number theory of integers.
#include "core/hlo/control.h"
#include "lower/families.h"
#include "lower/math.h"

namespace tpu::lower {
namespace {

double bit_width(Value x) { return static_cast<double>(ir::byte_size(x.dtype()) * 8); }

Value valid_shift(Value x, Value by) { return (by >= 0.0) & (by < bit_width(x)); }

// A shift by a negative number or by all bits leaves nothing.
Value left(Value x, Value by) { return where(valid_shift(x, by), hlo::shift_left(x, by), 0.0); }

// A shift by a negative number or by all bits leaves the sign.
Value right(Value x, Value by) {
  if (ir::is_unsigned_integer(x.dtype())) {
    return where(valid_shift(x, by), hlo::shift_right_logical(x, by), 0.0);
  }
  const Value sign = hlo::shift_right_arithmetic(x, hlo::full_like(x, bit_width(x) - 1));
  return where(valid_shift(x, by), hlo::shift_right_arithmetic(x, by), sign);
}

template <Value (*op)(Value, Value)>
Value logical(Value a, Value b) {
  const Dims dims = broadcast_dims(Values{a, b});
  const auto truth = [&](Value v) {
    return hlo::broadcast_to(hlo::convert(v, DType::kPred), dims);
  };
  return op(truth(a), truth(b));
}

Value logical_not(Value x) { return ~hlo::convert(x, DType::kPred); }

// Euclid's algorithm on all elements until none has a remainder. The magnitude of the least
// integer overflows to itself, as on the CPU.
Value greatest_common_divisor(Value a, Value b) {
  const auto more = [](std::span<const Value> v) {
    return hlo::reduce_or(differs(v[1], 0), all_axes(v[1].rank()));
  };
  const auto step = [](std::span<const Value> v) -> Values {
    const Value done = equals(v[1], 0);
    return {where(done, v[0], v[1]), where(done, v[1], hlo::rem(v[0], v[1]))};
  };
  return hlo::while_loop({hlo::abs(a), hlo::abs(b)}, more, step)[0];
}

Value least_common_multiple(Value a, Value b) {
  const Value divisor = greatest_common_divisor(a, b);
  const Value safe = where(equals(divisor, 0), 1.0, divisor);
  return where(equals(divisor, 0), 0.0, hlo::abs(a / safe * b));
}

}  // namespace

Rules bitwise_rules() {
  const Traits pointwise{.strides = Strides::kPointwise};
  return {
      {"aten::bitwise_and.Tensor", binary<hlo::and_>},
      {"aten::bitwise_or.Tensor", binary<hlo::or_>},
      {"aten::bitwise_xor.Tensor", binary<hlo::xor_>},
      {"aten::bitwise_not", hlo::not_},
      {"aten::bitwise_left_shift.Tensor", binary<left>},
      {"aten::bitwise_right_shift.Tensor", binary<right>},
      {"aten::__lshift__.Tensor", binary<left>, pointwise},
      {"aten::__lshift__.Scalar", with_number<binary<left>>, pointwise},
      {"aten::__rshift__.Tensor", binary<right>, pointwise},
      {"aten::__rshift__.Scalar", with_number<binary<right>>, pointwise},
      {"aten::__ilshift__.Tensor", binary<left>, pointwise},
      {"aten::__ilshift__.Scalar", with_number<binary<left>>, pointwise},
      {"aten::__irshift__.Tensor", binary<right>, pointwise},
      {"aten::__irshift__.Scalar", with_number<binary<right>>, pointwise},
      {"aten::logical_and", logical<hlo::and_>, pointwise},
      {"aten::logical_or", logical<hlo::or_>, pointwise},
      {"aten::logical_xor", logical<hlo::xor_>, pointwise},
      {"aten::logical_not", logical_not, pointwise},
      {"aten::gcd", binary<greatest_common_divisor>},
      {"aten::lcm", binary<least_common_multiple>},
  };
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/base/error.h"
#include "core/hlo/attributes.h"
#include "core/hlo/elementwise.h"
#include "core/hlo/shape.h"

namespace tpu::hlo {
namespace {

Value plain_convert(Value x, DType t) {
  if (x.dtype() == t) return x;
  return make("stablehlo.convert", {x}, {t, x.dims()});
}

bool is_narrow_float(DType t) { return is_float(t) && byte_size(t) < 4; }

constexpr int64_t kF32MantissaBits = 23;

// An f8e8m0fnu is the exponent field of a float: sign dropped, ties away from zero (but to even
// below the normal numbers), infinities NaN. By bits, as its least values are subnormal floats.
Value to_e8m0(Value x) {
  const Value bits = bitcast(x, DType::kU32);
  const auto number = [&](int64_t v) { return full_like(bits, v); };
  const Value magnitude = and_(bits, number(0x7FFFFFFF));
  const Value exponent = shift_right_logical(magnitude, number(kF32MantissaBits));
  const Value mantissa = and_(magnitude, number(0x7FFFFF));
  const Value ties_up = min(exponent, number(1));
  const Value rounds_up = gt(add(mantissa, ties_up), number(0x400000));
  const Value rounded = min(add(exponent, plain_convert(rounds_up, DType::kU32)), number(0xFF));
  return bitcast(plain_convert(rounded, DType::kU8), DType::kF8E8M0FNU);
}

Value from_e8m0(Value x) {
  const Value exponent = plain_convert(bitcast(x, DType::kU8), DType::kU32);
  const auto number = [&](int64_t v) { return full_like(exponent, v); };
  const Value power = shift_left(exponent, number(kF32MantissaBits));
  const Value bits =
      select(eq(exponent, number(0xFF)), number(0x7FC00000), max(power, number(0x400000)));
  return bitcast(bits, DType::kF32);
}

Value to_float(Value x, DType t) {
  // PyTorch's narrow types are made from float, also where that rounds twice.
  const bool by_float = is_narrow_float(t) && (!is_float(x.dtype()) || x.dtype() == DType::kF64);
  if (by_float || t == DType::kF8E8M0FNU || t == DType::kF8E4M3FN) {
    x = plain_convert(x, DType::kF32);
  }
  if (t == DType::kF8E8M0FNU) return to_e8m0(x);
  // PyTorch saturates here, and here only.
  if (t == DType::kF8E4M3FN) x = clamp(full_like(x, -448.0), x, full_like(x, 448.0));
  return plain_convert(x, t);
}

// cvttss2si and its kin: NaN and numbers out of range give the least integer. XLA's own conversion
// saturates, which differs only above the range and for NaN.
Value truncate_to_signed(Value x, DType t) {
  const double limit = t == DType::kS64 ? 0x1p63 : 0x1p31;
  const Value below = lt(x, full_like(x, limit));
  const Value least = broadcast_to(lowest(x.graph(), t), x.dims());
  return select(below, plain_convert(x, t), least);
}

// Numbers from 2^63 on keep their value; the others go by way of the signed type and wrap.
Value truncate_to_u64(Value x) {
  const Value half = full_like(x, 0x1p63);
  const Value big = ge(x, half);
  const Value bits = truncate_to_signed(select(big, sub(x, half), x), DType::kS64);
  const Value u = plain_convert(bits, DType::kU64);
  const Value top = full_like(u, std::numeric_limits<int64_t>::min());
  return select(big, xor_(u, top), u);
}

Value float_to_integer(Value x, DType t) {
  x = plain_convert(x, compute_type(x.dtype()));
  if (t == DType::kU64) return truncate_to_u64(x);
  if (t == DType::kS64 || t == DType::kU32) {
    return plain_convert(truncate_to_signed(x, DType::kS64), t);
  }
  return plain_convert(truncate_to_signed(x, DType::kS32), t);
}

Value to_complex(Value x, DType t) {
  const DType part = real_of(t);
  if (is_complex(x.dtype()))
    return complex(plain_convert(real(x), part), plain_convert(imag(x), part));
  const Value re = to_float(x, part);
  return complex(re, full_like(re, int64_t{0}));
}

Value not_zero(Value x) {
  if (is_narrow_float(x.dtype())) x = plain_convert(x, DType::kF32);
  return ne(x, full_like(x, int64_t{0}));
}

Value convert_array(Value x, DType t) {
  if (x.dtype() == t) return x;
  if (x.dtype() == DType::kF8E8M0FNU) x = from_e8m0(x);
  if (is_bool(t)) return not_zero(x);
  if (is_complex(t)) return to_complex(x, t);
  if (is_complex(x.dtype())) x = real(x);
  if (is_float(t)) return to_float(x, t);
  return is_float(x.dtype()) ? float_to_integer(x, t) : plain_convert(x, t);
}

int64_t ratio(DType wide, DType narrow) {
  return static_cast<int64_t>(byte_size(wide) / byte_size(narrow));
}

// Between types that are neither bool nor complex.
Value bitcast_real(Value x, DType t) {
  if (x.dtype() == t) return x;
  Dims dims = x.dims();
  if (byte_size(t) < byte_size(x.dtype())) {
    dims.push_back(ratio(x.dtype(), t));
  } else if (byte_size(t) > byte_size(x.dtype())) {
    TPU_CHECK(!dims.empty() && dims.back() == ratio(t, x.dtype()),
              "the minor dimension holds the parts of one element");
    dims.pop_back();
  }
  return make("stablehlo.bitcast_convert", {x}, {t, dims});
}

Value split_complex(Value x) {
  Dims dims = x.dims();
  dims.push_back(1);
  return concatenate({reshape(real(x), dims), reshape(imag(x), dims)}, x.rank());
}

Value join_complex(Value pairs) {
  const int64_t axis = pairs.rank() - 1;
  Dims dims = pairs.dims();
  dims.pop_back();
  return complex(reshape(slice_axis(pairs, axis, 0, 1), dims),
                 reshape(slice_axis(pairs, axis, 1, 2), dims));
}

// A complex number is a pair of reals, in a minor dimension of 2.
Value bitcast_from_complex(Value x, DType t) {
  const Value pairs = split_complex(x);
  Dims dims = x.dims();
  if (byte_size(t) > byte_size(x.dtype())) {
    dims.back() *= 2;
    return bitcast_resize(reshape(pairs, dims), t);
  }
  const Value bits = bitcast_resize(pairs, t);
  if (byte_size(t) >= byte_size(pairs.dtype())) return bits;
  dims.push_back(ratio(x.dtype(), t));
  return reshape(bits, dims);
}

Value bitcast_to_complex(Value x, DType t) {
  const DType part = real_of(t);
  if (byte_size(x.dtype()) < byte_size(part)) {
    Dims dims = x.dims();
    dims.back() = 2;
    dims.push_back(ratio(part, x.dtype()));
    x = reshape(x, dims);
  }
  return join_complex(bitcast_resize(x, part));
}

std::optional<int> slot_to_read_anew(Value x, DType t) {
  const std::optional<int> slot = x.graph().scalar_slot(x);
  // Truth is asked of the number as it was read: an integer carrier would drop a fraction. The
  // generator's state is exact as it is.
  const bool anew = slot && *slot >= 0 && !is_bool(t);
  return anew ? slot : std::nullopt;
}

}  // namespace

Value convert(Value x, DType t) {
  if (x.dtype() == t) return x;
  const auto slot = slot_to_read_anew(x, t);
  return convert_array(slot ? x.graph().scalar(*slot, t) : x, t);
}

Value bitcast(Value x, DType t) {
  TPU_CHECK(byte_size(x.dtype()) == byte_size(t), "bitcast keeps the size of elements");
  return bitcast_resize(x, t);
}

Value bitcast_resize(Value x, DType t) {
  if (x.dtype() == t) return x;
  if (is_bool(x.dtype())) return bitcast_resize(convert_array(x, DType::kU8), t);
  if (is_bool(t)) return convert_array(bitcast_resize(x, DType::kU8), t);
  if (is_complex(x.dtype())) return bitcast_from_complex(x, t);
  if (is_complex(t)) return bitcast_to_complex(x, t);
  return bitcast_real(x, t);
}

}  // namespace tpu::hlo

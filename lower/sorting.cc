// SPDX-License-Identifier: Apache-2.0
#include "lower/sorting.h"

#include <bit>

#include "core/hlo/control.h"
#include "core/hlo/reduce.h"

namespace tpu::lower {
namespace {

// Up to this many boundaries, comparing with all of them beats searching.
constexpr int64_t kFewBoundaries = 64;

// A signed integer that orders as PyTorch orders the floats.
Value float_key(Value x) {
  const DType t = x.dtype() == DType::kF64 ? DType::kS64 : DType::kS32;
  const Value bits = hlo::bitcast(where(equals(x, 0), 0, x), t);
  const Value greatest = hlo::broadcast_to(hlo::highest(x.graph(), t), x.dims());
  const Value negative = hlo::lt(bits, hlo::full_like(bits, int64_t{0}));
  const Value ordered = hlo::select(negative, bits ^ greatest, bits);
  return hlo::select(hlo::is_nan(x), greatest, ordered);
}

Value key_of(Value x) {
  if (ir::is_float(x.dtype())) return float_key(widened(x));
  if (x.dtype() == DType::kU64) {
    const Value bits = hlo::bitcast(x, DType::kS64);
    return bits ^ hlo::broadcast_to(hlo::lowest(x.graph(), DType::kS64), x.dims());
  }
  const bool narrow = ir::byte_size(x.dtype()) < 4 || x.dtype() == DType::kS32;
  return hlo::convert(x, narrow ? DType::kS32 : DType::kS64);
}

Value less(std::span<const Value> v) { return hlo::lt(v[0], v[1]); }

// `position` sorted along the minor axis by key, which is packed above it in one number: XLA:CPU
// sorts single integers several times faster than pairs.
Value packed_order(Value key, Value position) {
  const Value wide = hlo::convert(key, DType::kS64);
  const Value high = hlo::shift_left(wide, hlo::full_like(wide, int64_t{32}));
  const Value packed = high | hlo::convert(position, DType::kS64);
  const Value sorted = hlo::sort({packed}, key.rank() - 1, true, less)[0];
  return hlo::convert(sorted & hlo::full_like(sorted, int64_t{0x7FFFFFFF}), DType::kS32);
}

// A key of 64 bits in two rounds, the lower half first.
Value packed_order_of_halves(Value key, Value position) {
  const Value half = hlo::full_like(key, int64_t{32});
  const Value bits = hlo::convert(hlo::convert(key, DType::kU32), DType::kS64);
  const Value low = hlo::convert(bits - hlo::full_like(key, int64_t{1} << 31), DType::kS32);
  const Value high = hlo::convert(hlo::shift_right_arithmetic(key, half), DType::kS32);
  const Value first = packed_order(low, position);
  const Value place = packed_order(hlo::take_along(high, first, key.rank() - 1), position);
  return hlo::take_along(first, place, key.rank() - 1);
}

// Positions along the minor axis in the order of key.
Value order_of(Value key) {
  const int64_t axis = key.rank() - 1;
  const Value position = hlo::iota_like(key, axis, DType::kS32);
  if (!key.graph().target().cpu) return hlo::sort({key, position}, axis, true, less)[1];
  return key.dtype() == DType::kS32 ? packed_order(key, position)
                                    : packed_order_of_halves(key, position);
}

// Whether an element of the sorted row lies before the place of `value`.
Value before(Value element, Value value, bool right) {
  return ~(right ? element > value : element >= value);
}

Value compare_with_all(Value sorted, Value values, bool right) {
  const Dims dims{values.dim(0), values.dim(1), sorted.dim(1)};
  const Value element = hlo::broadcast_in_dim(sorted, dims, {0, 2});
  const Value value = hlo::broadcast_in_dim(values, dims, {0, 1});
  return hlo::reduce_sum(hlo::convert(before(element, value, right), DType::kS32), {2});
}

Value elements_at(Value sorted, Value index) {
  if (sorted.dim(0) != 1) return hlo::take_along(sorted, index, 1);
  return hlo::take(hlo::reshape(sorted, {sorted.dim(1)}), index, 0);
}

Value binary_search(Value sorted, Value values, bool right) {
  const int64_t n = sorted.dim(1);
  const Value low = hlo::full(values.graph(), {DType::kS32, values.dims()}, int64_t{0});
  const Value high = hlo::full_like(low, n);
  const auto halve = [&](Value, std::span<const Value> state) {
    const Value middle =
        hlo::shift_right_logical(state[0] + state[1], hlo::full_like(low, int64_t{1}));
    const Value inside = hlo::min(middle, hlo::full_like(low, n - 1));
    const Value open = state[0] < state[1];
    const Value later = before(elements_at(sorted, inside), values, right);
    return Values{hlo::select(open & later, middle + 1, state[0]),
                  hlo::select(open & ~later, middle, state[1])};
  };
  const int steps = std::bit_width(static_cast<uint64_t>(n));
  return hlo::for_loop(steps, {low, high}, halve)[0];
}

}  // namespace

Sorted sort_along(Value x, int64_t axis, bool descending) {
  Value key = key_of(x);
  if (descending) key = ~key;
  const Dims swap = swap_with_minor(axis, x.rank());
  const Value order = hlo::transpose(order_of(hlo::transpose(key, swap)), swap);
  return {hlo::take_along(x, order, axis), order};
}

Value insertion_points(Value sorted, Value values, bool right) {
  if (sorted.dim(1) == 0 || values.numel() == 0) {
    return hlo::full(values.graph(), {DType::kS32, values.dims()}, int64_t{0});
  }
  return sorted.dim(1) <= kFewBoundaries ? compare_with_all(sorted, values, right)
                                         : binary_search(sorted, values, right);
}

}  // namespace tpu::lower

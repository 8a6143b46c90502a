// SPDX-License-Identifier: Apache-2.0
// Running sums, products, extremes and log-sum-exps along one axis, as windowed reductions that
// reach back to the beginning: XLA rewrites these into a few passes over blocks.
#include <bit>

#include "core/hlo/control.h"
#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/reduction.h"
#include "lower/unsupported.h"

namespace tpu::lower {

using Body = Value (*)(Value, Value);

namespace {

// One operand only: XLA:CPU crashes on windows of this form with several.
Value running_on_minor(Value x, Value initial, Body combine) {
  const int64_t n = x.dims().back();
  hlo::Window window = hlo::Window::of_rank(x.rank());
  window.sizes.back() = n;
  window.pad_low.back() = n - 1;
  const auto body = [combine](std::span<const Value> v) { return Values{combine(v[0], v[1])}; };
  return hlo::reduce_window({x}, {initial}, window, body)[0];
}

// By doubling: a windowed reduction would combine each element some 30 times, which is too often
// for a combination of many operations.
Value running_by_doubling(Value x, Value initial, Body combine) {
  const int64_t n = x.dims().back();
  Dims zeros(x.dims().size(), 0);
  Dims low = zeros;
  low.back() = n;
  const Value zero = hlo::constant(x.graph(), DType::kS32, int64_t{0});
  const Value one = hlo::full_like(zero, int64_t{1});
  const Value length = hlo::full_like(zero, n);
  const auto step = [&](Value i, std::span<const Value> state) {
    Values starts(x.dims().size(), zero);
    starts.back() = length - hlo::shift_left(one, i);
    const Value earlier = hlo::pad(state[0], initial, low, zeros, zeros);
    return Values{combine(hlo::dynamic_slice(earlier, starts, x.dims()), state[0])};
  };
  return hlo::for_loop(std::bit_width(static_cast<uint64_t>(n - 1)), {x}, step)[0];
}

using Scan = Value (*)(Value, Value, Body);

// Along the minor axis, where XLA:CPU scans several times faster.
Value along(Value x, int64_t axis, Value initial, Body combine, Scan scan) {
  if (x.rank() == 0 || x.numel() == 0 || x.dim(axis) == 1) return x;
  const Dims swap = swap_with_minor(axis, x.rank());
  return hlo::transpose(scan(hlo::transpose(x, swap), initial, combine), swap);
}

}  // namespace

Value running(Value x, int64_t axis, Value initial, Body combine) {
  return along(x, axis, initial, combine, running_on_minor);
}

namespace {

DType sum_type(Value x, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  return ir::is_bool(x.dtype()) || ir::is_integer(x.dtype()) ? DType::kS64 : x.dtype();
}

template <Body combine, int64_t neutral>
Value accumulate(Value self, int64_t dim, std::optional<DType> dtype) {
  const int64_t axis = wrap_axis(dim, self.rank());
  const DType t = sum_type(self, dtype);
  const Value x = widened(hlo::convert(self, t));
  const Value initial = hlo::constant(x.graph(), x.dtype(), neutral);
  return hlo::convert(running(x, axis, initial, combine), t);
}

// The position of the last element that the running extreme `best` equals; a NaN is replaced only
// by a later NaN.
Value last_hit(Value x, Value best, int64_t axis) {
  const Value hit = hlo::eq(x, best) | hlo::is_nan(x);
  const Value position = hlo::iota_like(x, axis, DType::kS32);
  const Value first = hlo::constant(x.graph(), DType::kS32, int64_t{0});
  return running(hlo::select(hit, position, hlo::full_like(position, int64_t{0})), axis, first,
                 hlo::max);
}

template <Body best_of>
Values running_extreme(Value self, int64_t dim) {
  const bool max = best_of == hlo::max;
  require_dtype(!ir::is_complex(self.dtype()), max ? "cummax_cpu" : "cummin_cpu", self.dtype());
  const int64_t axis = wrap_axis(dim, self.rank());
  const Value x = at_least_1d(widened(self));
  const Value initial =
      max ? hlo::lowest(x.graph(), x.dtype()) : hlo::highest(x.graph(), x.dtype());
  const Value best = running(x, axis, initial, best_of);
  return {hlo::convert(hlo::reshape(best, self.dims()), self.dtype()),
          hlo::convert(hlo::reshape(last_hit(x, best, axis), self.dims()), DType::kS64)};
}

// The helper's form: the caller's tensors take the results.
template <Body best_of>
Values running_extreme_into(Value self, Value, Value, int64_t dim) {
  return running_extreme<best_of>(self, dim);
}

Value log_add_exp(Value a, Value b) {
  const Value greater = hlo::max(a, b);
  const Value distance = hlo::min(a, b) - greater;
  const Value sum = greater + hlo::log1p(hlo::exp(distance));
  return hlo::select(hlo::is_nan(distance), greater, sum);  // two equal infinities, or a NaN
}

Value log_add_exp_complex(Value a, Value b) {
  const Value greater = hlo::max(hlo::real(a), hlo::real(b));
  const Value shift = hlo::convert(where(is_infinite(greater), 0, greater), a.dtype());
  return hlo::log(hlo::exp(a - shift) + hlo::exp(b - shift)) + shift;
}

Value log_cumsum_exp(Value self, int64_t dim) {
  require_dtype(ir::is_float(self.dtype()) || ir::is_complex(self.dtype()), "logcumsumexp_out_cpu",
                self.dtype());
  const int64_t axis = wrap_axis(dim, self.rank());
  const Value x = widened(self);
  const Value initial = hlo::convert(hlo::lowest(x.graph(), ir::real_of(x.dtype())), x.dtype());
  const Body combine = ir::is_complex(x.dtype()) ? log_add_exp_complex : log_add_exp;
  return hlo::convert(along(x, axis, initial, combine, running_by_doubling), self.dtype());
}

}  // namespace

Rules scan_rules() {
  Rules rules = {
      {"aten::cumsum", accumulate<hlo::add, 0>},
      {"aten::cumprod", accumulate<hlo::mul, 1>},
      {"aten::cummax", running_extreme<hlo::max>},
      {"aten::cummin", running_extreme<hlo::min>},
      {"aten::_cummax_helper", running_extreme_into<hlo::max>},
      {"aten::_cummin_helper", running_extreme_into<hlo::min>},
      {"aten::_logcumsumexp", log_cumsum_exp},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

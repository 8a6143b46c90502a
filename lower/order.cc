// SPDX-License-Identifier: Apache-2.0
// Order statistics: medians, the k-th least and the mode. Among equal elements the first position
// is reported, of the mode the last.
#include <cmath>

#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/sorting.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// A tensor sorted along the axis that a rule reduces; 0-dim tensors count as one element.
struct Line {
  Value x;
  int64_t axis;
  int64_t length;
  Sorted sorted;
  bool keepdim;

  Line(Value self, int64_t dim, bool keepdim)
      : x(at_least_1d(self)),
        axis(wrap_axis(dim, self.rank())),
        length(x.dim(axis)),
        sorted(sort_along(x, axis, false)),
        keepdim(keepdim && self.rank() > 0) {}

  Values result(Value value, Value index) const {
    const auto shape = [&](Value v) {
      Dims dims = x.dims();
      dims[static_cast<size_t>(axis)] = 1;
      if (!keepdim) dims.erase(dims.begin() + axis);
      return hlo::reshape(v, dims);
    };
    return {shape(value), hlo::convert(shape(index), DType::kS64)};
  }
  Values at(int64_t position) const {
    const auto pick = [&](Value v) { return hlo::slice_axis(v, axis, position, position + 1); };
    return result(pick(sorted.values), pick(sorted.indices));
  }
  // `position`: s32, of x's dims with 1 along the axis.
  Values at(Value position) const {
    return result(hlo::take_along(sorted.values, position, axis),
                  hlo::take_along(sorted.indices, position, axis));
  }
};

void check_line(std::string_view name, Value self, int64_t dim) {
  const int64_t axis = wrap_axis(dim, self.rank());
  if (self.rank() == 0 || self.dim(axis) > 0) return;
  fail(ErrorKind::kIndex, "{}(): Expected reduction dim {} to have non-zero size.", name, axis);
}

void require_order(std::string_view kernel, Value x) {
  require_dtype(!ir::is_complex(x.dtype()) && !ir::is_bool(x.dtype()), kernel, x.dtype());
}

enum class Nan { kWins, kIgnored };

// Where the median stands in a sorted line: its NaNs come last.
template <Nan nan>
Value median_position(const Line& line) {
  const Value numbers =
      with_axes(hlo::convert(count_over(~hlo::is_nan(line.x), {line.axis}), DType::kS32),
                line.x.dims(), {line.axis});
  const Value one = hlo::full_like(numbers, int64_t{1});
  if (nan == Nan::kIgnored) {
    const Value some = hlo::gt(numbers, one - one);
    const Value counted = hlo::select(some, numbers, hlo::full_like(numbers, line.length));
    return (counted - one) / (one + one);
  }
  const Value all = hlo::full_like(numbers, line.length);
  return hlo::select(numbers < all, numbers, (all - one) / (one + one));
}

template <Nan nan>
Values median_of(Value self, int64_t dim, bool keepdim) {
  const Line line(self, dim, keepdim);
  if (!ir::is_float(self.dtype())) return line.at((line.length - 1) / 2);
  return line.at(median_position<nan>(line));
}

template <Nan nan>
Values median_dim(Value self, int64_t dim, bool keepdim) {
  check_line("median", self, dim);
  require_order("median_out", self);
  return median_of<nan>(self, dim, keepdim);
}

template <Nan nan>
Value median(Value self) {
  const DType t = self.dtype();
  require_order("median_cpu", self);
  if (self.numel() == 0) {
    return ir::is_float(t) ? hlo::constant(self.graph(), t, std::nan(""))
                           : hlo::lowest(self.graph(), t);
  }
  return median_of<nan>(hlo::reshape(self, {self.numel()}), 0, false)[0];
}

Values kth_value(Value self, int64_t k, int64_t dim, bool keepdim) {
  check_line("kthvalue", self, dim);
  const int64_t axis = wrap_axis(dim, self.rank());
  require(k >= 1 && k <= at_least_1d(self).dim(axis),
          "kthvalue(): selected number k out of range for dimension {}", axis);
  if (self.rank() > 0) require_order("kthvalue_cpu", self);
  return Line(self, dim, keepdim).at(k - 1);
}

// How many elements up to each one of a sorted line are equal to it, as s32.
Value run_lengths(const Line& line) {
  const Value& v = line.sorted.values;
  const Value position = hlo::iota_like(v, line.axis, DType::kS32);
  if (line.length == 1) return position;
  const Value previous = hlo::slice_axis(v, line.axis, 0, line.length - 1);
  const Value next = hlo::slice_axis(v, line.axis, 1, line.length);
  Value starts = hlo::ne(previous, next);
  const Dims zeros(v.dims().size(), 0);
  Dims low = zeros;
  low[static_cast<size_t>(line.axis)] = 1;
  starts = hlo::pad(starts, hlo::constant(v.graph(), DType::kPred, true), low, zeros, zeros);
  const Value start = hlo::select(starts, position, hlo::full_like(position, int64_t{0}));
  const Value zero = hlo::constant(v.graph(), DType::kS32, int64_t{0});
  return position - running(start, line.axis, zero, hlo::max);
}

Values mode(Value self, int64_t dim, bool keepdim) {
  check_line("mode", self, dim);
  require_dtype(!ir::is_complex(self.dtype()), "mode_cpu", self.dtype());
  const Line line(self, dim, keepdim);
  const Value best = first_max(run_lengths(line), line.axis).index;
  return line.at(with_axes(hlo::convert(best, DType::kS32), line.x.dims(), {line.axis}));
}

}  // namespace

Rules order_rules() {
  Rules rules = {
      {"aten::median", median<Nan::kWins>},
      {"aten::median.dim", median_dim<Nan::kWins>},
      {"aten::nanmedian", median<Nan::kIgnored>},
      {"aten::nanmedian.dim", median_dim<Nan::kIgnored>},
      {"aten::kthvalue", kth_value},
      {"aten::mode", mode},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

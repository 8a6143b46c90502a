// SPDX-License-Identifier: Apache-2.0
// Padding by a constant, by reflection and by replication, with gradients. Negative amounts crop.
#include <algorithm>

#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/reduction.h"

namespace tpu::lower {
namespace {

std::string list_of(const Dims& dims) {
  std::string text;
  for (const int64_t d : dims) text += fmt::format("{}{}", text.empty() ? "" : ", ", d);
  return "[" + text + "]";
}

enum class Mode { kReflect, kReplicate };

// Padding of one axis; PyTorch lists pairs from the last axis on.
struct AxisPad {
  int64_t axis, low, high;
};

std::vector<AxisPad> axis_pads(const Dims& pad, int64_t rank) {
  std::vector<AxisPad> pads;
  for (size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    pads.push_back({rank - 1 - static_cast<int64_t>(i), pad[2 * i], pad[2 * i + 1]});
  }
  return pads;
}

Value constant_pad(Value x, Dims pad, Scalar value) {
  require(pad.size() % 2 == 0, "Length of pad must be even but instead it equals {}", pad.size());
  require(static_cast<int64_t>(pad.size()) <= 2 * x.rank(),
          "Length of pad should be no more than twice the number of dimensions of the input. Pad "
          "length is {} while the input has {} dimensions.",
          pad.size(), x.rank());
  Dims low(x.dims().size(), 0);
  Dims high = low;
  for (const AxisPad& p : axis_pads(pad, x.rank())) {
    const int64_t size = x.dim(p.axis);
    require(size + p.low + p.high >= 0,
            "The input size {}, plus negative padding {} and {} resulted in a negative output "
            "size, which is invalid. Check dimension {} of your input.",
            size, p.low, p.high, p.axis);
    low[static_cast<size_t>(p.axis)] = p.low;
    high[static_cast<size_t>(p.axis)] = p.high;
  }
  return hlo::pad(x, value.exact(x.dtype()), low, high, Dims(x.dims().size(), 0));
}

Value repeat_edge(Value x, int64_t axis, int64_t at, int64_t count) {
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = count;
  return hlo::broadcast_in_dim(hlo::slice_axis(x, axis, at, at + 1), dims, all_axes(x.rank()));
}

Value pad_one(Value x, const AxisPad& p, Mode mode) {
  const int64_t n = x.dim(p.axis);
  Values parts;
  if (p.low > 0) {
    parts.push_back(mode == Mode::kReplicate
                        ? repeat_edge(x, p.axis, 0, p.low)
                        : hlo::reverse(hlo::slice_axis(x, p.axis, 1, p.low + 1), {p.axis}));
  }
  parts.push_back(
      hlo::slice_axis(x, p.axis, std::max<int64_t>(-p.low, 0), n - std::max<int64_t>(-p.high, 0)));
  if (p.high > 0) {
    parts.push_back(
        mode == Mode::kReplicate
            ? repeat_edge(x, p.axis, n - 1, p.high)
            : hlo::reverse(hlo::slice_axis(x, p.axis, n - 1 - p.high, n - 1), {p.axis}));
  }
  return parts.size() == 1 ? parts[0] : hlo::concatenate(parts, p.axis);
}

// x placed at `start` of an axis of `size` zeros.
Value place(Value x, int64_t axis, int64_t start, int64_t size) {
  Dims low(x.dims().size(), 0);
  Dims high = low;
  low[static_cast<size_t>(axis)] = start;
  high[static_cast<size_t>(axis)] = size - start - x.dim(axis);
  return hlo::pad(x, hlo::constant(x.graph(), x.dtype(), int64_t{0}), low, high,
                  Dims(x.dims().size(), 0));
}

// What the padded border [from, to) of a gradient adds to the elements it was copied from.
Value border(Value gradient, const AxisPad& p, Mode mode, int64_t from, int64_t to, int64_t target,
             int64_t n) {
  const Value part = hlo::slice_axis(gradient, p.axis, from, to);
  if (mode == Mode::kReflect) return place(hlo::reverse(part, {p.axis}), p.axis, target, n);
  Dims one = part.dims();
  one[static_cast<size_t>(p.axis)] = 1;
  return place(hlo::reshape(sum_over(part, {p.axis}), one), p.axis, target, n);
}

Value unpad_one(Value gradient, const AxisPad& p, Mode mode, int64_t n) {
  const int64_t total = gradient.dim(p.axis);
  const int64_t first = std::max<int64_t>(p.low, 0);
  const Value middle =
      hlo::slice_axis(gradient, p.axis, first, total - std::max<int64_t>(p.high, 0));
  const bool reflect = mode == Mode::kReflect;
  Value sum = place(middle, p.axis, std::max<int64_t>(-p.low, 0), n);
  if (p.low > 0) sum = sum + border(gradient, p, mode, 0, p.low, reflect ? 1 : 0, n);
  if (p.high > 0) {
    sum =
        sum + border(gradient, p, mode, total - p.high, total, reflect ? n - 1 - p.high : n - 1, n);
  }
  return sum;
}

template <Mode mode>
Value pad_rule(Value x, Dims pad) {
  for (const AxisPad& p : axis_pads(pad, x.rank())) {
    require(mode == Mode::kReplicate || (p.low < x.dim(p.axis) && p.high < x.dim(p.axis)),
            "Padding size should be less than the corresponding input dimension, but got: padding "
            "({}, {}) at dimension {} of input {}",
            p.low, p.high, p.axis, list_of(x.dims()));
    x = pad_one(x, p, mode);
  }
  return x;
}

template <Mode mode>
Value pad_backward(Value gradient, Value self, Dims pad) {
  const std::vector<AxisPad> pads = axis_pads(pad, self.rank());
  for (const AxisPad& p : pads) {
    require(gradient.dim(p.axis) == self.dim(p.axis) + p.low + p.high,
            "gradOutput width unexpected. Expected: {}, Got: {}", self.dim(p.axis) + p.low + p.high,
            gradient.dim(p.axis));
  }
  Value x = widened(gradient);
  for (const AxisPad& p : pads) x = unpad_one(x, p, mode, self.dim(p.axis));
  return hlo::convert(x, gradient.dtype());
}

}  // namespace

Rules pad_rules() {
  const Traits traits{.strides = Strides::kSuggest};
  Rules rules{{"aten::constant_pad_nd", constant_pad, traits}};
  for (int n = 1; n <= 3; ++n) {
    const std::string reflection = fmt::format("aten::reflection_pad{}d", n);
    const std::string replication = fmt::format("aten::replication_pad{}d", n);
    rules.emplace_back(reflection, pad_rule<Mode::kReflect>, traits);
    rules.emplace_back(reflection + "_backward", pad_backward<Mode::kReflect>, traits);
    rules.emplace_back(replication, pad_rule<Mode::kReplicate>, traits);
    rules.emplace_back(replication + "_backward", pad_backward<Mode::kReplicate>, traits);
  }
  return rules;
}

}  // namespace tpu::lower

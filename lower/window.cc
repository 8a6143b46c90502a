// SPDX-License-Identifier: Apache-2.0
#include "lower/window.h"

#include <algorithm>

#include "core/hlo/shape.h"

namespace tpu::lower {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Pads (or crops, where negative) one axis.
Value pad_axis(Value x, int64_t axis, Value fill, int64_t low, int64_t high) {
  if (low == 0 && high == 0) return x;
  Dims lows(x.dims().size(), 0);
  Dims highs = lows;
  const Dims none = lows;
  lows[static_cast<size_t>(axis)] = low;
  highs[static_cast<size_t>(axis)] = high;
  return hlo::pad(x, fill, lows, highs, none);
}

Value zero_of(Value x) { return hlo::constant(x.graph(), x.dtype(), int64_t{0}); }

// The parts whose offsets fall on residue r of the stride, on their common grid of `count` points.
Value phase(const Values& parts, const AxisWindow& w, int64_t r, int64_t count) {
  std::optional<Value> sum;
  for (int64_t k = 0; k < w.kernel; ++k) {
    if (k * w.dilation % w.stride != r) continue;
    const int64_t shift = k * w.dilation / w.stride;
    const Value part = parts[static_cast<size_t>(k)];
    if (shift >= count) continue;
    const Value placed = pad_axis(part, w.axis, zero_of(part), shift, count - w.out - shift);
    sum = sum ? hlo::add(*sum, placed) : placed;
  }
  if (sum) return *sum;
  Type type = parts[0].type();
  type.dims[static_cast<size_t>(w.axis)] = count;
  return hlo::full(parts[0].graph(), type, int64_t{0});
}

// [.., n, ..] x s  ->  [.., n * s, ..] with the phases interleaved.
Value interleave(const Values& phases, int64_t axis) {
  if (phases.size() == 1) return phases[0];
  Dims dims = phases[0].dims();
  dims.insert(dims.begin() + axis + 1, 1);
  Values columns;
  for (const Value& p : phases) columns.push_back(hlo::reshape(p, dims));
  const Value joined = hlo::concatenate(columns, axis + 1);
  dims = phases[0].dims();
  dims[static_cast<size_t>(axis)] *= static_cast<int64_t>(phases.size());
  return hlo::reshape(joined, dims);
}

}  // namespace

Value window_element(Value x, const AxisWindow& w, int64_t k, Value fill) {
  const int64_t first = w.position(0, k);
  const int64_t low =
      std::clamp<int64_t>(divide_up(std::max<int64_t>(-first, 0), w.stride), 0, w.out);
  const int64_t high =
      std::clamp<int64_t>(first >= w.size ? 0 : divide_up(w.size - first, w.stride), low, w.out);
  if (low == high) {
    Dims dims = x.dims();
    dims[static_cast<size_t>(w.axis)] = w.out;
    return hlo::broadcast_to(fill, dims);
  }
  const int64_t start = w.position(low, k);
  const Value inside =
      hlo::slice_axis(x, w.axis, start, start + (high - low - 1) * w.stride + 1, w.stride);
  return pad_axis(inside, w.axis, fill, low, w.out - high);
}

Value window_element(Value x, const std::vector<AxisWindow>& windows, const Dims& k, Value fill) {
  for (size_t i = 0; i < windows.size(); ++i) x = window_element(x, windows[i], k[i], fill);
  return x;
}

Value fold(const Values& parts, const AxisWindow& w) {
  const int64_t count = divide_up(w.pad + w.size, w.stride);
  Values phases;
  for (int64_t r = 0; r < w.stride; ++r) phases.push_back(phase(parts, w, r, count));
  return hlo::slice_axis(interleave(phases, w.axis), w.axis, w.pad, w.pad + w.size);
}

Value fold(Values parts, const std::vector<AxisWindow>& windows) {
  for (size_t i = windows.size(); i-- > 0;) {
    const auto n = static_cast<size_t>(windows[i].kernel);
    Values folded;
    for (size_t start = 0; start < parts.size(); start += n) {
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(start);
      folded.push_back(fold(Values(begin, begin + static_cast<std::ptrdiff_t>(n)), windows[i]));
    }
    parts = std::move(folded);
  }
  return parts[0];
}

std::vector<AxisWindow> axis_windows(const Dims& dims, int64_t first_axis, const Dims& kernel,
                                     const Dims& stride, const Dims& pad, const Dims& dilation,
                                     const Dims& out) {
  std::vector<AxisWindow> windows;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const auto axis = first_axis + static_cast<int64_t>(i);
    windows.push_back(
        {axis, dims[static_cast<size_t>(axis)], kernel[i], stride[i], pad[i], dilation[i], out[i]});
  }
  return windows;
}

int64_t offset_count(const std::vector<AxisWindow>& windows) {
  int64_t n = 1;
  for (const AxisWindow& w : windows) n *= w.kernel;
  return n;
}

std::vector<Dims> offsets(const std::vector<AxisWindow>& windows) {
  std::vector<Dims> all{{}};
  for (const AxisWindow& w : windows) {
    std::vector<Dims> longer;
    for (const Dims& prefix : all) {
      for (int64_t k = 0; k < w.kernel; ++k) {
        longer.push_back(prefix);
        longer.back().push_back(k);
      }
    }
    all = std::move(longer);
  }
  return all;
}

Dims spread(const Dims& values, int64_t count) {
  if (values.size() == 1) return Dims(static_cast<size_t>(count), values[0]);
  return values;
}

}  // namespace tpu::lower

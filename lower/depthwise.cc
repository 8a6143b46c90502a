// SPDX-License-Identifier: Apache-2.0
#include "lower/depthwise.h"

#include <algorithm>

#include "core/hlo/control.h"
#include "core/hlo/reduce.h"
#include "lower/promote.h"

namespace tpu::lower {
namespace {

Value widened(Value x) { return hlo::convert(x, ir::compute_type(x.dtype())); }

// Each channel m times in a row.
Value repeat_channels(Value x, int64_t m) {
  if (m == 1) return x;
  Dims dims = x.dims();
  dims.insert(dims.begin() + 2, m);
  Dims axes = all_axes(x.rank() + 1);
  axes.erase(axes.begin() + 2);
  Dims joined = x.dims();
  joined[1] *= m;
  return hlo::reshape(hlo::broadcast_in_dim(x, dims, axes), joined);
}

// Sums over the m copies of each channel.
Value sum_copies(Value x, int64_t m) {
  if (m == 1) return x;
  Dims dims = x.dims();
  dims[1] /= m;
  dims.insert(dims.begin() + 2, m);
  return hlo::reduce_sum(hlo::reshape(x, dims), {2});
}

// Offset number `i` of every channel's kernel, over `like`'s dims.
Value tap(Value weight, int64_t offsets, int64_t i, Value like) {
  const int64_t channels = like.dim(1);
  const Value column = hlo::slice_axis(hlo::reshape(weight, {channels, offsets}), 1, i, i + 1);
  return hlo::broadcast_in_dim(hlo::reshape(column, {channels}), like.dims(), {1});
}

Value zero_of(Value x) { return hlo::constant(x.graph(), x.dtype(), int64_t{0}); }

// Pads once, apart from the sums, so that their loops read without conditions.
Value pad_first(Value x, DepthwiseWindows& windows) {
  Dims low(x.dims().size(), 0);
  Dims high = low;
  bool any = false;
  for (AxisWindow& w : windows) {
    const int64_t end = w.position(w.out - 1, w.kernel - 1) + 1;
    low[static_cast<size_t>(w.axis)] = w.pad;
    high[static_cast<size_t>(w.axis)] = std::max<int64_t>(end - w.size, 0);
    any = any || w.pad > 0 || end > w.size;
    w.size += w.pad + high[static_cast<size_t>(w.axis)];
    w.pad = 0;
  }
  if (!any) return x;
  return hlo::optimization_barrier(hlo::pad(x, zero_of(x), low, high, Dims(x.dims().size(), 0)));
}

int64_t channel_multiple(Value weight, int64_t channels, const DepthwiseWindows& windows) {
  return weight.numel() / (channels * offset_count(windows));
}

}  // namespace

Value depthwise_forward(Value wide, Value weight, DepthwiseWindows windows) {
  weight = widened(weight);
  const int64_t m = channel_multiple(weight, wide.dim(1), windows);
  const Value x = repeat_channels(pad_first(widened(wide), windows), m);
  const std::vector<Dims> all = offsets(windows);
  std::optional<Value> sum;
  for (size_t i = 0; i < all.size(); ++i) {
    const Value element = window_element(x, windows, all[i], zero_of(x));
    const Value term = hlo::mul(
        element, tap(weight, static_cast<int64_t>(all.size()), static_cast<int64_t>(i), element));
    sum = sum ? hlo::add(*sum, term) : term;
  }
  return *sum;
}

Value depthwise_backward(Value narrow, Value weight, int64_t channels,
                         const DepthwiseWindows& windows) {
  weight = widened(weight);
  const Value y = widened(narrow);
  const int64_t n = offset_count(windows);
  Values parts;
  for (int64_t i = 0; i < n; ++i) parts.push_back(hlo::mul(y, tap(weight, n, i, y)));
  return sum_copies(fold(parts, windows), narrow.dim(1) / channels);
}

Value depthwise_weight_gradient(Value wide, Value narrow, DepthwiseWindows windows) {
  const Value y = widened(narrow);
  const Value x = repeat_channels(pad_first(widened(wide), windows), narrow.dim(1) / wide.dim(1));
  Dims axes = all_axes(x.rank());
  axes.erase(axes.begin() + 1);
  Values columns;
  for (const Dims& k : offsets(windows)) {
    const Value product = hlo::mul(window_element(x, windows, k, zero_of(x)), y);
    columns.push_back(hlo::reshape(hlo::reduce_sum(product, axes), {y.dim(1), 1}));
  }
  return hlo::concatenate(columns, 1);
}

}  // namespace tpu::lower

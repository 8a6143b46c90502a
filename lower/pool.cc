// SPDX-License-Identifier: Apache-2.0
// Average and maximum pooling over sliding windows, with gradients.
#include "lower/pool.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// A gradient of more window positions is scattered instead of being summed in shifted copies.
constexpr int64_t kMaxFolded = 25;

int64_t pooled_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                    bool ceil_mode) {
  const int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t out = (room >= 0 ? room / stride : -((-room + stride - 1) / stride)) + 1;
  // The last window starts inside the image or its left padding.
  if (ceil_mode && (out - 1) * stride >= size + pad) --out;
  return out;
}

struct PoolArguments {
  Dims kernel, stride, pad, dilation;
  bool ceil_mode;
};

template <int n>
std::vector<AxisWindow> pool_windows(const Dims& dims, const PoolArguments& a) {
  const Dims kernel = spread(a.kernel, n);
  const Dims stride = a.stride.empty() ? kernel : spread(a.stride, n);
  const Dims pad = spread(a.pad, n);
  const Dims dilation = spread(a.dilation, n);
  const auto first = static_cast<int64_t>(dims.size()) - n;
  Dims out;
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = dims[static_cast<size_t>(first) + i];
    out.push_back(pooled_size(size, kernel[i], stride[i], pad[i], dilation[i], a.ceil_mode));
  }
  return axis_windows(dims, first, kernel, stride, pad, dilation, out);
}

// How many elements each window of an axis averages over.
Dims window_lengths(const AxisWindow& w, bool include_pad) {
  Dims lengths;
  for (int64_t o = 0; o < w.out; ++o) {
    const int64_t start = o * w.stride - w.pad;
    const int64_t end = std::min(start + w.kernel, w.size + w.pad);
    lengths.push_back(include_pad ? end - start
                                  : std::min(end, w.size) - std::max<int64_t>(start, 0));
  }
  return lengths;
}

// The divisor of every window, of dims `dims`.
Value divisors(Graph& graph, const Type& type, const std::vector<AxisWindow>& windows,
               bool include_pad, const std::optional<int64_t>& override_) {
  if (override_) return hlo::full(graph, type, *override_);
  Value product = hlo::full(graph, type, int64_t{1});
  for (const AxisWindow& w : windows) {
    const Value row =
        hlo::constant_array(graph, {w.out}, window_lengths(w, include_pad), type.dtype);
    product = product * hlo::broadcast_in_dim(row, type.dims, {w.axis});
  }
  return product;
}

Value window_sum(Value x, const AxisWindow& w) {
  const Value zero = hlo::constant(x.graph(), x.dtype(), int64_t{0});
  if (w.kernel <= kMaxFolded) {
    Value sum = window_element(x, w, 0, zero);
    for (int64_t k = 1; k < w.kernel; ++k) sum = sum + window_element(x, w, k, zero);
    return sum;
  }
  Dims starts, lengths;
  for (int64_t o = 0; o < w.out; ++o) {
    const int64_t start = o * w.stride - w.pad;
    const int64_t end = std::clamp<int64_t>(start + w.kernel, 0, w.size);
    starts.push_back(std::clamp<int64_t>(start, 0, w.size - 1));
    lengths.push_back(std::max<int64_t>(end - std::max<int64_t>(start, 0), 0));
  }
  return range_sum(x, w.axis, starts, lengths);
}

template <int n>
Value avg_pool(Value x, Dims kernel, Dims stride, Dims pad, bool ceil_mode, bool include_pad,
               std::optional<int64_t> divisor) {
  const DType t = x.dtype();
  require_dtype(t == DType::kS64 || ir::is_float(t), n == 2 ? "avg_pool2d" : "avg_pool3d_out_frame",
                t);
  const auto windows = pool_windows<n>(x.dims(), {kernel, stride, pad, {1}, ceil_mode});
  Value sum = hlo::convert(x, ir::compute_type(t));
  for (size_t i = windows.size(); i-- > 0;) sum = window_sum(sum, windows[i]);
  const Value by = divisors(x.graph(), sum.type(), windows, include_pad, divisor);
  return hlo::convert(sum / by, t);
}

Value unpool_sum(Value x, const AxisWindow& w) {
  if (w.kernel <= kMaxFolded) return fold(Values(static_cast<size_t>(w.kernel), x), w);
  Dims starts, lengths;
  for (int64_t h = 0; h < w.size; ++h) {
    // Windows o with o * stride - pad <= h < o * stride - pad + kernel.
    const int64_t last = std::min((h + w.pad) / w.stride, w.out - 1);
    const int64_t before = h + w.pad - w.kernel;
    const int64_t first = before < 0 ? 0 : before / w.stride + 1;
    starts.push_back(std::clamp<int64_t>(first, 0, w.out - 1));
    lengths.push_back(std::max<int64_t>(last - first + 1, 0));
  }
  return range_sum(x, w.axis, starts, lengths);
}

template <int n>
Value avg_pool_backward(Value gradient, Value self, Dims kernel, Dims stride, Dims pad,
                        bool ceil_mode, bool include_pad, std::optional<int64_t> divisor) {
  const DType t = gradient.dtype();
  const auto windows = pool_windows<n>(self.dims(), {kernel, stride, pad, {1}, ceil_mode});
  Value x = hlo::convert(gradient, ir::compute_type(t));
  x = x / divisors(x.graph(), x.type(), windows, include_pad, divisor);
  for (size_t i = windows.size(); i-- > 0;) x = unpool_sum(x, windows[i]);
  return hlo::convert(x, t);
}

void require_list(const Dims& list, bool optional, const char* name, const char* kinds) {
  require(list.size() == 1 || list.size() == 3 || (optional && list.empty()),
          "max_pool3d: {} must {} a single int, or a tuple of three ints", name, kinds);
}

// What PyTorch checks without structured metadata, before there are window counts.
void check_volume_arguments(Value x, const PoolArguments& a) {
  require_list(a.kernel, false, "kernel_size", "either be");
  require_list(a.stride, true, "stride", "either be omitted,");
  require_list(a.pad, false, "padding", "either be");
  require_list(a.dilation, false, "dilation", "be either");
  require(x.rank() == 4 || x.rank() == 5,
          "non-empty 4D or 5D (batch mode) tensor expected for input");
  const Dims kernel = spread(a.kernel, 3);
  const Dims stride = a.stride.empty() ? kernel : spread(a.stride, 3);
  const Dims pad = spread(a.pad, 3);
  const Dims dilation = spread(a.dilation, 3);
  for (size_t i = 0; i < 3; ++i) {
    require(stride[i] != 0, "stride should not be zero");
    require(pad[i] >= 0, "pad must be non-negative, but got pad: {}", pad[i]);
    require(pad[i] <= ((kernel[i] - 1) * dilation[i] + 1) / 2,
            "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} "
            "and dilation={}",
            pad[i], kernel[i], dilation[i]);
  }
  require(kernel[0] > 0 && kernel[1] > 0 && kernel[2] > 0,
          "kernel size should be greater than zero, but got kT: {} kH: {} kW: {}", kernel[0],
          kernel[1], kernel[2]);
  require(dilation[0] > 0 && dilation[1] > 0 && dilation[2] > 0,
          "dilation should be greater than zero, but got dilationT: {} dilationH: {} dilationW: {}",
          dilation[0], dilation[1], dilation[2]);
}

void check_volume_sizes(Value x, const std::vector<AxisWindow>& w) {
  for (int64_t a = x.rank() - 4; a < x.rank(); ++a) {
    require(x.dim(a) > 0,
            "max_pool3d_with_indices_out_cpu_template(): Expected input's non-batch dimensions to "
            "have positive length, but input has a shape of [{}] and non-batch dimension {} has "
            "length zero!",
            fmt::join(x.dims(), ", "), x.dim(a));
  }
  const int64_t channels = x.dim(x.rank() - 4);
  require(w[0].out > 0 && w[1].out > 0 && w[2].out > 0,
          "Given input size: ({}x{}x{}x{}). Calculated output size: ({}x{}x{}x{}). Output size is "
          "too small",
          channels, w[0].size, w[1].size, w[2].size, channels, w[0].out, w[1].out, w[2].out);
}

template <int n>
Values max_pool(Value x, Dims kernel, Dims stride, Dims pad, Dims dilation, bool ceil_mode) {
  const DType t = x.dtype();
  const PoolArguments arguments{kernel, stride, pad, dilation, ceil_mode};
  if (n == 3) check_volume_arguments(x, arguments);
  require_number(n == 2 ? "max_pool2d" : "max_pool3d_with_indices_cpu", t);
  const auto windows = pool_windows<n>(x.dims(), arguments);
  if (n == 3) check_volume_sizes(x, windows);
  const int64_t first = x.rank() - n;
  Located best{hlo::convert(x, ir::compute_type(t)), flat_positions(x.graph(), x.dims(), first)};
  for (size_t i = windows.size(); i-- > 0;) best = window_max(best, windows[i]);
  return {hlo::convert(best.value, t), hlo::convert(best.index, DType::kS64)};
}

// Where window offset k lies, flat over the spatial axes, for every window.
Value offset_positions(Value like, const std::vector<AxisWindow>& windows, const Dims& k) {
  Value flat = hlo::full_like(like, int64_t{0});
  for (size_t i = 0; i < windows.size(); ++i) {
    const AxisWindow& w = windows[i];
    const Value o = hlo::iota_like(like, w.axis, like.dtype());
    flat = flat * static_cast<double>(w.size) + o * static_cast<double>(w.stride) +
           static_cast<double>(w.position(0, k[i]));
  }
  return flat;
}

Value folded_max_gradient(Value gradient, Value index, const std::vector<AxisWindow>& windows) {
  const Value wide = hlo::convert(gradient, ir::compute_type(gradient.dtype()));
  const Value at = hlo::convert(index, DType::kS32);
  Values parts;
  for (const Dims& k : offsets(windows)) {
    parts.push_back(where(hlo::eq(at, offset_positions(at, windows, k)), wide, 0.0));
  }
  return hlo::convert(fold(parts, windows), gradient.dtype());
}

template <int n>
Value max_pool_backward(Value gradient, Value self, Dims kernel, Dims stride, Dims pad,
                        Dims dilation, bool ceil_mode, Value index) {
  const auto windows = pool_windows<n>(self.dims(), {kernel, stride, pad, dilation, ceil_mode});
  if (offset_count(windows) <= kMaxFolded && gradient.numel() > 0) {
    return folded_max_gradient(gradient, index, windows);
  }
  return scatter_to_planes(gradient, index, self.dims(), n);
}

}  // namespace

Rules pool_rules() {
  const Traits traits{.strides = Strides::kSuggest};
  return {
      {"aten::avg_pool2d", avg_pool<2>, traits},
      {"aten::avg_pool3d", avg_pool<3>, traits},
      {"aten::avg_pool2d_backward", avg_pool_backward<2>, traits},
      {"aten::avg_pool3d_backward", avg_pool_backward<3>, traits},
      {"aten::max_pool2d_with_indices", max_pool<2>, traits},
      {"aten::max_pool3d_with_indices", max_pool<3>, traits},
      {"aten::max_pool2d_with_indices_backward", max_pool_backward<2>, traits},
      {"aten::max_pool3d_with_indices_backward", max_pool_backward<3>, traits},
  };
}

}  // namespace tpu::lower

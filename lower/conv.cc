// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients. All are correlations of one kind: a gradient by the input runs
// the kernel backwards over a dilated gradient, a gradient by the weight swaps batch and features.
#include <algorithm>

#include "core/hlo/contract.h"
#include "core/hlo/reduce.h"
#include "lower/depthwise.h"
#include "lower/families.h"
#include "lower/host_kernels.h"
#include "lower/matmul.h"
#include "lower/promote.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

using Mask = std::vector<bool>;

// "bf01" with the spatial axes of a rank.
std::string layout(const char* first_two, int64_t spatial) {
  std::string text = first_two;
  for (int64_t i = 0; i < spatial; ++i) text += static_cast<char>('0' + i);
  return text;
}

Value operand(Value x) {
  // XLA:CPU convolves 16-bit floats element by element; a TPU reads them as they are.
  return x.graph().target().cpu ? hlo::convert(x, ir::compute_type(x.dtype())) : x;
}

Value correlate(Value input, Value kernel, const hlo::ConvolutionDims& dims) {
  return hlo::convolution(operand(input), operand(kernel), dims, ir::compute_type(input.dtype()));
}

// What one convolution of the call knows: the forward direction of a plain convolution leads from
// `wide` (the larger side) to `narrow`; a transposed one goes back.
struct Geometry {
  Dims stride, padding, dilation;
  int64_t groups;
  Dims kernel;  // spatial sizes

  size_t spatial() const { return kernel.size(); }
  int64_t extent(size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

Dims spatial_dims(Value x) { return Dims(x.dims().begin() + 2, x.dims().end()); }

// Plain direction: weight [out, in / groups, kernel], result of spatial size `out`.
Value forward(Value input, Value weight, const Geometry& g, const Dims& out) {
  const auto n = static_cast<int64_t>(g.spatial());
  hlo::ConvolutionDims d{.strides = g.stride,
                         .pad_low = g.padding,
                         .pad_high = {},
                         .lhs_dilation = Dims(g.spatial(), 1),
                         .rhs_dilation = g.dilation,
                         .feature_group_count = g.groups,
                         .input = layout("bf", n),
                         .kernel = layout("oi", n),
                         .output = layout("bf", n)};
  for (size_t i = 0; i < g.spatial(); ++i) {
    d.pad_high.push_back((out[i] - 1) * g.stride[i] + g.extent(i) - g.padding[i] -
                         input.dims()[i + 2]);
  }
  return correlate(input, weight, d);
}

// [groups * a, b, ...] -> [a, groups * b, ...]
Value regroup(Value weight, int64_t groups) {
  if (groups == 1) return weight;
  Dims split = weight.dims();
  split[0] /= groups;
  split.insert(split.begin(), groups);
  Dims order = all_axes(weight.rank() + 1);
  std::swap(order[0], order[1]);
  Dims joined = weight.dims();
  joined[0] /= groups;
  joined[1] *= groups;
  return hlo::reshape(hlo::transpose(hlo::reshape(weight, split), order), joined);
}

// The adjoint direction: weight [in, out / groups, kernel], result of spatial size `out`.
Value backward(Value input, Value weight, const Geometry& g, const Dims& out) {
  const auto n = static_cast<int64_t>(g.spatial());
  hlo::ConvolutionDims d{.strides = Dims(g.spatial(), 1),
                         .pad_low = {},
                         .pad_high = {},
                         .lhs_dilation = g.stride,
                         .rhs_dilation = g.dilation,
                         .feature_group_count = g.groups,
                         .input = layout("bf", n),
                         .kernel = layout("io", n),
                         .output = layout("bf", n)};
  Dims axes;
  for (size_t i = 0; i < g.spatial(); ++i) {
    const int64_t dilated = (input.dims()[i + 2] - 1) * g.stride[i] + 1;
    d.pad_low.push_back(g.extent(i) - 1 - g.padding[i]);
    d.pad_high.push_back(out[i] + g.extent(i) - 1 - dilated - d.pad_low[i]);
    axes.push_back(static_cast<int64_t>(i) + 2);
  }
  return correlate(input, hlo::reverse(regroup(weight, g.groups), axes), d);
}

// Gradient by a weight [narrow channels, wide channels / groups, kernel], from the larger and the
// smaller side of the convolution.
Value weight_gradient(Value wide, Value narrow, const Geometry& g) {
  const auto n = static_cast<int64_t>(g.spatial());
  hlo::ConvolutionDims d{.strides = g.dilation,
                         .pad_low = g.padding,
                         .pad_high = {},
                         .lhs_dilation = Dims(g.spatial(), 1),
                         .rhs_dilation = g.stride,
                         .batch_group_count = g.groups,
                         .input = layout("fb", n),
                         .kernel = layout("io", n),
                         .output = layout("fb", n)};
  for (size_t i = 0; i < g.spatial(); ++i) {
    const int64_t dilated = (narrow.dims()[i + 2] - 1) * g.stride[i] + 1;
    d.pad_high.push_back((g.kernel[i] - 1) * g.dilation[i] + dilated - g.padding[i] -
                         wide.dims()[i + 2]);
  }
  return correlate(wide, narrow, d);
}

// XLA:CPU has fast convolutions of one or two spatial axes and one group only. There, three axes
// become two by unrolling the kernel's depth into channels, and gradients of grouped weights become
// one product per kernel offset.
bool unrolls_depth(Value x, const Geometry& g) {
  return x.graph().target().cpu && g.spatial() == 3 && g.groups == 1;
}

Geometry without_depth(const Geometry& g) {
  const auto tail = [](const Dims& d) { return Dims(d.begin() + 1, d.end()); };
  return {tail(g.stride), tail(g.padding), tail(g.dilation), g.groups, tail(g.kernel)};
}

AxisWindow depth_window(const Geometry& g, int64_t size, int64_t out) {
  return {2, size, g.kernel[0], g.stride[0], g.padding[0], g.dilation[0], out};
}

// [n, c, d, h, w] -> [n * d, c, h, w]
Value merge_depth(Value x) {
  const Dims& d = x.dims();
  return hlo::reshape(hlo::transpose(x, {0, 2, 1, 3, 4}), {d[0] * d[2], d[1], d[3], d[4]});
}

// [n * d, c, h, w] -> [n, c, d, h, w]
Value split_depth(Value x, int64_t depth) {
  const Dims& d = x.dims();
  return hlo::transpose(hlo::reshape(x, {d[0] / depth, depth, d[1], d[2], d[3]}), {0, 2, 1, 3, 4});
}

// [o, c, d, h, w] -> [o, d * c, h, w]
Value unroll_kernel(Value weight) {
  const Dims& d = weight.dims();
  return hlo::reshape(hlo::transpose(weight, {0, 2, 1, 3, 4}), {d[0], d[2] * d[1], d[3], d[4]});
}

Value volume_forward(Value input, Value weight, const Geometry& g, const Dims& out) {
  const AxisWindow depth = depth_window(g, input.dim(2), out[2]);
  const Value zero = hlo::constant(input.graph(), input.dtype(), int64_t{0});
  Values slices;
  for (int64_t k = 0; k < depth.kernel; ++k) {
    slices.push_back(window_element(input, depth, k, zero));
  }
  const Value planes = merge_depth(hlo::concatenate(slices, 1));
  const Value y = forward(planes, unroll_kernel(weight), without_depth(g), {out[3], out[4]});
  return split_depth(y, out[2]);
}

Value volume_backward(Value input, Value weight, const Geometry& g, const Dims& out) {
  const Value planes =
      backward(merge_depth(input), unroll_kernel(weight), without_depth(g), {out[3], out[4]});
  const Value slices = split_depth(planes, input.dim(2));
  Values parts;
  for (int64_t k = 0; k < g.kernel[0]; ++k) {
    parts.push_back(hlo::slice_axis(slices, 1, k * out[1], (k + 1) * out[1]));
  }
  return fold(parts, depth_window(g, out[2], input.dim(2)));
}

// [n, groups * c, ...] -> [n, groups, c, positions]
Value by_group(Value x, int64_t groups) {
  const int64_t channels = x.dim(1) / groups;
  return hlo::reshape(x, {x.dim(0), groups, channels, x.numel() / x.dim(0) / x.dim(1)});
}

// Of the weight's dims [narrow channels, wide channels / groups, kernel].
Value product_weight_gradient(Value wide, Value narrow, const Geometry& g) {
  const auto windows =
      axis_windows(wide.dims(), 2, g.kernel, g.stride, g.padding, g.dilation, spatial_dims(narrow));
  const Value zero = hlo::constant(wide.graph(), wide.dtype(), int64_t{0});
  const Value y = by_group(narrow, g.groups);
  Values columns;
  for (const Dims& k : offsets(windows)) {
    const Value x = by_group(window_element(wide, windows, k, zero), g.groups);
    const Value product = wide_dot(
        y, x, {.lhs_batch = {1}, .rhs_batch = {1}, .lhs_contract = {0, 3}, .rhs_contract = {0, 3}});
    columns.push_back(hlo::reshape(product, {narrow.dim(1), wide.dim(1) / g.groups, 1}));
  }
  Dims dims{narrow.dim(1), wide.dim(1) / g.groups};
  dims.insert(dims.end(), g.kernel.begin(), g.kernel.end());
  return hlo::reshape(hlo::concatenate(columns, 2), dims);
}

bool as_products(Value x, const Geometry& g) {
  return x.graph().target().cpu && (g.groups > 1 || g.spatial() == 3) && x.numel() > 0 &&
         ir::element_count(g.kernel) <= kMaxDepthwiseOffsets;
}

Geometry geometry(Value weight, const Dims& stride, const Dims& padding, const Dims& dilation,
                  int64_t groups) {
  const int64_t n = weight.rank() - 2;
  return {spread(stride, n), spread(padding, n), spread(dilation, n), groups, spatial_dims(weight)};
}

bool depthwise(Value x, const Geometry& g, int64_t wide_channels) {
  return x.graph().target().cpu && g.groups > 1 && g.groups == wide_channels &&
         ir::element_count(g.kernel) <= kMaxDepthwiseOffsets;
}

DepthwiseWindows depthwise_windows(const Geometry& g, const Dims& wide, const Dims& narrow) {
  return axis_windows(wide, 2, g.kernel, g.stride, g.padding, g.dilation,
                      Dims(narrow.begin() + 2, narrow.end()));
}

Dims plain_result(Value input, Value weight, const Geometry& g) {
  Dims dims{input.dim(0), weight.dim(0)};
  for (size_t i = 0; i < g.spatial(); ++i) {
    dims.push_back((input.dims()[i + 2] + 2 * g.padding[i] - g.extent(i)) / g.stride[i] + 1);
  }
  return dims;
}

Dims transposed_result(Value input, Value weight, const Geometry& g, const Dims& output_padding) {
  Dims dims{input.dim(0), weight.dim(1) * g.groups};
  for (size_t i = 0; i < g.spatial(); ++i) {
    dims.push_back((input.dims()[i + 2] - 1) * g.stride[i] - 2 * g.padding[i] + g.extent(i) +
                   output_padding[i]);
  }
  return dims;
}

// Kernels of one position multiply channels: [n, c, ...] by [o, c], or by [c, o] transposed.
bool multiplies_channels(Value x, const Geometry& g) {
  const auto all = [](const Dims& d, int64_t v) {
    return std::all_of(d.begin(), d.end(), [v](int64_t e) { return e == v; });
  };
  return x.graph().target().cpu && g.groups == 1 && x.numel() > 0 && all(g.kernel, 1) &&
         all(g.stride, 1) && all(g.padding, 0);
}

Value channel_product(Value input, Value weight, bool transposed, const Dims& out) {
  const Dims batched{input.dim(0), weight.dim(0), weight.dim(1)};
  const Value matrix = hlo::reshape(weight, {weight.dim(0), weight.dim(1)});
  const int64_t positions = input.numel() / input.dim(0) / input.dim(1);
  const Value y = wide_dot(hlo::broadcast_in_dim(matrix, batched, {1, 2}),
                           hlo::reshape(input, {input.dim(0), input.dim(1), positions}),
                           {.lhs_batch = {0},
                            .rhs_batch = {0},
                            .lhs_contract = {transposed ? 1 : 2},
                            .rhs_contract = {1}});
  return hlo::reshape(y, out);
}

// Kernels that lie side by side without touching are products with [c, kernel] columns. XLA:CPU
// would multiply all the zeros of a gradient dilated by the stride.
bool tiles(Value x, const Geometry& g) {
  const auto all = [](const Dims& d, int64_t v) {
    return std::all_of(d.begin(), d.end(), [v](int64_t e) { return e == v; });
  };
  return x.graph().target().cpu && g.groups == 1 && x.numel() > 0 && g.kernel == g.stride &&
         all(g.dilation, 1) && all(g.padding, 0);
}

// [n, o, ...] by [o, c, kernel]: each position becomes a tile; what a stride leaves over is zero.
Value tiled_backward(Value input, Value weight, const Geometry& g, const Dims& out) {
  const auto n = static_cast<int64_t>(g.spatial());
  const int64_t columns = weight.numel() / weight.dim(0);
  const int64_t positions = input.numel() / input.dim(0) / input.dim(1);
  const Value product = wide_dot(hlo::reshape(input, {input.dim(0), input.dim(1), positions}),
                                 hlo::reshape(weight, {weight.dim(0), columns}),
                                 {.lhs_contract = {1}, .rhs_contract = {0}});
  Dims split{input.dim(0)};
  for (int64_t i = 0; i < n; ++i) split.push_back(input.dim(i + 2));
  split.push_back(weight.dim(1));
  split.insert(split.end(), g.kernel.begin(), g.kernel.end());
  Dims order{0, n + 1};
  Dims joined{input.dim(0), weight.dim(1)};
  Dims high{0, 0};
  for (int64_t i = 0; i < n; ++i) {
    order.push_back(i + 1);
    order.push_back(n + 2 + i);
    joined.push_back(input.dim(i + 2) * g.kernel[static_cast<size_t>(i)]);
    high.push_back(out[static_cast<size_t>(i) + 2] - joined.back());
  }
  const Value y = hlo::reshape(hlo::transpose(hlo::reshape(product, split), order), joined);
  const Dims none(high.size(), 0);
  return hlo::pad(y, hlo::constant(y.graph(), y.dtype(), int64_t{0}), none, high, none);
}

HostConvolution host_form(const Geometry& g) { return {g.stride, g.padding, g.dilation, g.groups}; }

// From the larger side to the smaller one, and back. `out` are the result's dims.
Value to_narrow(Value input, Value weight, const Geometry& g, const Dims& out) {
  if (const auto y = host_to_narrow(input, weight, host_form(g), out)) return *y;
  if (depthwise(input, g, input.dim(1))) {
    return depthwise_forward(input, weight, depthwise_windows(g, input.dims(), out));
  }
  if (multiplies_channels(input, g)) return channel_product(input, weight, false, out);
  if (unrolls_depth(input, g)) return volume_forward(input, weight, g, out);
  return forward(input, weight, g, Dims(out.begin() + 2, out.end()));
}

Value to_wide(Value input, Value weight, const Geometry& g, const Dims& out) {
  if (const auto y = host_to_wide(input, weight, host_form(g), out)) return *y;
  if (depthwise(input, g, out[1])) {
    return depthwise_backward(input, weight, out[1], depthwise_windows(g, out, input.dims()));
  }
  if (multiplies_channels(input, g)) return channel_product(input, weight, true, out);
  if (tiles(input, g)) return tiled_backward(input, weight, g, out);
  if (unrolls_depth(input, g)) return volume_backward(input, weight, g, out);
  return backward(input, weight, g, Dims(out.begin() + 2, out.end()));
}

Value to_weight(Value wide, Value narrow, const Geometry& g, const Dims& weight_dims) {
  if (const auto y = host_to_weight(wide, narrow, host_form(g), weight_dims)) return *y;
  if (depthwise(wide, g, wide.dim(1))) {
    const Value gradient =
        depthwise_weight_gradient(wide, narrow, depthwise_windows(g, wide.dims(), narrow.dims()));
    return hlo::reshape(gradient, weight_dims);
  }
  if (as_products(wide, g)) return product_weight_gradient(wide, narrow, g);
  return weight_gradient(wide, narrow, g);
}

std::string kernel_name(int64_t spatial, bool transposed) {
  const int64_t plane = std::max<int64_t>(spatial, 2);
  return transposed ? fmt::format("slow_conv_transpose{}d_out_cpu", plane)
                    : fmt::format("slow_conv{}d_cpu", plane);
}

Value convolution(Value input, Value weight, std::optional<Value> bias, Dims stride, Dims padding,
                  Dims dilation, bool transposed, Dims output_padding, int64_t groups) {
  require(input.dtype() == weight.dtype(), "expected scalar type {} but found {}",
          scalar_type_name(input.dtype()), scalar_type_name(weight.dtype()));
  require_number(kernel_name(weight.rank() - 2, transposed), input.dtype());
  const Geometry g = geometry(weight, stride, padding, dilation, groups);
  const Dims extra = spread(output_padding, weight.rank() - 2);
  Value y = transposed ? to_wide(input, weight, g, transposed_result(input, weight, g, extra))
                       : to_narrow(input, weight, g, plain_result(input, weight, g));
  if (bias) {
    y = hlo::add(y, hlo::broadcast_in_dim(hlo::convert(*bias, y.dtype()), y.dims(), {1}));
  }
  return hlo::convert(y, input.dtype());
}

Value bias_gradient(Value gradient) {
  Dims axes = all_axes(gradient.rank());
  axes.erase(axes.begin() + 1);
  const Value wide = hlo::convert(gradient, ir::compute_type(gradient.dtype()));
  return hlo::convert(hlo::reduce_sum(wide, axes), gradient.dtype());
}

Values convolution_backward(Value gradient, Value input, Value weight, Dims stride, Dims padding,
                            Dims dilation, bool transposed, Dims, int64_t groups, Mask mask) {
  const Geometry g = geometry(weight, stride, padding, dilation, groups);
  Values results(3, undefined(gradient.graph()));
  if (mask[0]) {
    const Value dx = transposed ? to_narrow(gradient, weight, g, input.dims())
                                : to_wide(gradient, weight, g, input.dims());
    results[0] = hlo::convert(dx, input.dtype());
  }
  if (mask[1]) {
    const Value dw = transposed ? to_weight(gradient, input, g, weight.dims())
                                : to_weight(input, gradient, g, weight.dims());
    results[1] = hlo::convert(dw, weight.dtype());
  }
  if (mask[2]) results[2] = bias_gradient(gradient);
  return results;
}

}  // namespace

Rules conv_rules() {
  const Traits traits{.strides = Strides::kSuggest};
  return {
      {"aten::convolution_overrideable", convolution, traits},
      {"aten::convolution_backward_overrideable", convolution_backward, traits},
  };
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
// Sliding windows as plain slices: the forms of pooling, depthwise convolution and im2col that both
// XLA:CPU and a TPU fuse well. Every function works on one axis; windows over several axes apply
// them in turn. Pure functions.
#pragma once

#include "lower/rule.h"

namespace tpu::lower {

// Offset k of window o lies at position o * stride - pad + k * dilation of the axis.
struct AxisWindow {
  int64_t axis = 0;
  int64_t size = 0;  // of the axis before windowing
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  int64_t dilation = 1;
  int64_t out = 0;  // number of windows

  int64_t position(int64_t o, int64_t k) const { return o * stride - pad + k * dilation; }
};

// The element at offset k of every window; `fill` (rank 0) outside the axis.
Value window_element(Value x, const AxisWindow& w, int64_t k, Value fill);
// The same over several axes.
Value window_element(Value x, const std::vector<AxisWindow>& windows, const Dims& k, Value fill);

// The adjoint: adds parts[k][o] at the position of offset k of window o, for every k.
Value fold(const Values& parts, const AxisWindow& w);
// Over several axes; parts are ordered row-major by offset.
Value fold(Values parts, const std::vector<AxisWindow>& windows);

// Windows of all spatial axes [first_axis, ...) of x.
std::vector<AxisWindow> axis_windows(const Dims& dims, int64_t first_axis, const Dims& kernel,
                                     const Dims& stride, const Dims& pad, const Dims& dilation,
                                     const Dims& out);
int64_t offset_count(const std::vector<AxisWindow>& windows);
// The offsets of all windows, row-major.
std::vector<Dims> offsets(const std::vector<AxisWindow>& windows);

// A list argument of a windowed op: one number stands for all axes.
Dims spread(const Dims& values, int64_t count);

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
// Convolutions with one input channel per group, as sums of shifted products: the general grouped
// convolution of XLA:CPU is an order of magnitude slower. Results are in ir::compute_type.
#pragma once

#include "lower/window.h"

namespace tpu::lower {

// Kernels with more positions go to the general form, which compiles in constant time.
inline constexpr int64_t kMaxDepthwiseOffsets = 64;

using DepthwiseWindows = std::vector<AxisWindow>;

// `wide` [n, c, ...] is the larger side, `narrow` [n, c * m, ...] the smaller one; weights have
// c * m * kernel elements in any shape with that order.
Value depthwise_forward(Value wide, Value weight, DepthwiseWindows windows);
Value depthwise_backward(Value narrow, Value weight, int64_t channels,
                         const DepthwiseWindows& windows);
// [c * m, kernel offsets]
Value depthwise_weight_gradient(Value wide, Value narrow, DepthwiseWindows windows);

}  // namespace tpu::lower

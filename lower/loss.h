// SPDX-License-Identifier: Apache-2.0
// The reduction argument that losses share (at::Reduction).
#pragma once

#include "lower/math.h"

namespace tpu::lower {

enum LossReduction : int64_t { kNone, kMean, kSum };

// All elements' sum or mean, rank 0, or the loss itself. The mean of nothing is NaN.
Value reduced_loss(Value loss, int64_t reduction);
// What reaches each of `count` elements of the unreduced loss.
Value loss_gradient(Value grad, int64_t reduction, int64_t count);

}  // namespace tpu::lower

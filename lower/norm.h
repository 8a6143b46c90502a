// SPDX-License-Identifier: Apache-2.0
// What the normalizations share: the types of their parameters and statistics, and results that
// the caller did not ask for. Pure functions.
#pragma once

#include "lower/reduction.h"

namespace tpu::lower {

// The type of parameters and saved statistics: the input's, or f32 beside an f16 or bf16 input.
// PyTorch's error text for any other mixture. Absent parameters do not matter.
DType parameter_type(Value input, const OptionalValues& parameters);

// 1 / sqrt(variance + eps)
Value inverse_deviation(Value variance, Scalar eps);

// The gradient of x̂ = (x - mean) / deviation, given g = dL/dx̂, when mean and deviation (1 / rstd)
// are those of x over `axes`.
struct NormGradient {
  Value gradient;    // dL/dx̂
  Value normalized;  // x̂
  Value rstd;        // of x̂'s dims
};
Value through_statistics(const NormGradient& n, const Dims& axes, bool centered);

}  // namespace tpu::lower

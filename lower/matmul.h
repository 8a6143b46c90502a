// SPDX-License-Identifier: Apache-2.0
// Matrix products as the other families use them: one place decides in which element type a
// target multiplies and accumulates. Pure functions.
#pragma once

#include "core/hlo/contract.h"
#include "lower/rule.h"

namespace tpu::lower {

// dot_general accumulated, and returned, in ir::compute_type of the operands' common type.
Value wide_dot(Value lhs, Value rhs, const hlo::DotDims& dims);
// [..., m, k] x [..., k, n] with equal batch dims.
Value wide_matmul(Value lhs, Value rhs);
// [..., m, k] x [..., n, k]: the second operand as a linear layer keeps its weight.
Value wide_matmul_transposed(Value lhs, Value rhs);

}  // namespace tpu::lower

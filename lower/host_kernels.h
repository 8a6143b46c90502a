// SPDX-License-Identifier: Apache-2.0
// Host forms of ops that XLA:CPU computes many times slower than PyTorch's CPU kernels, from the
// sizes on where they pay. Each has another form beside it, which every other target gets. Pure
// functions; an empty result says that the other form is the one to take.
#pragma once

#include "lower/rule.h"

namespace tpu::lower {

// [..., m, k] x [..., k, n] of one or no batch axis.
std::optional<Value> host_matmul(Value lhs, Value rhs);
// [m, k] x [k].
std::optional<Value> host_matrix_vector(Value matrix, Value vector);
// host_matmul plus a bias that broadcasts to the result, for matrices.
std::optional<Value> host_addmm(Value bias, Value lhs, Value rhs);

// A convolution in the terms of lower/conv.cc, where `wide` is the larger side, [n, channels, ...].
struct HostConvolution {
  Dims stride, padding, dilation;
  int64_t groups;
};
// The smaller side from the larger one, back again, and the weight's gradient from both. Results
// are in ir::compute_type.
std::optional<Value> host_to_narrow(Value wide, Value weight, const HostConvolution& c,
                                    const Dims& out);
std::optional<Value> host_to_wide(Value narrow, Value weight, const HostConvolution& c,
                                  const Dims& out);
std::optional<Value> host_to_weight(Value wide, Value narrow, const HostConvolution& c,
                                    const Dims& weight);

}  // namespace tpu::lower

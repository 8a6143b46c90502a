// SPDX-License-Identifier: Apache-2.0
// Products, convolutions and factorizations.
#pragma once

#include "core/hlo/reduce.h"

namespace tpu::hlo {

struct DotDims {
  Dims lhs_batch = {};
  Dims rhs_batch = {};
  Dims lhs_contract;
  Dims rhs_contract;
};
// Result axes: batch, free axes of lhs, free axes of rhs. `result` may be wider than the operands
// (bf16 x bf16 -> f32, i8 x i8 -> i32). Precision is the graph target's.
Value dot_general(Value lhs, Value rhs, const DotDims& dims, DType result);
Value matmul(Value lhs, Value rhs);  // [..., m, k] x [..., k, n], equal batch dims, same dtype

struct ConvolutionDims {
  Dims strides;
  Dims pad_low;
  Dims pad_high;
  Dims lhs_dilation;
  Dims rhs_dilation;
  int64_t feature_group_count = 1;
  int64_t batch_group_count = 1;
  // Layout strings in StableHLO's notation, one character per axis: 'b', 'f', 'i', 'o' or a digit.
  std::string input;   // "bf01"
  std::string kernel;  // "oi01"
  std::string output;  // "bf01"
};
Value convolution(Value input, Value kernel, const ConvolutionDims& dims, DType result);

Value cholesky(Value a, bool lower);
struct TriangularSolve {
  bool left_side = true;
  bool lower = true;
  bool unit_diagonal = false;
  enum class Transpose { kNo, kTranspose, kAdjoint } transpose = Transpose::kNo;
};
Value triangular_solve(Value a, Value b, const TriangularSolve& options);

enum class FftKind { kFft, kIfft, kRfft, kIrfft };
Value fft(Value x, FftKind kind, const Dims& lengths);  // over the last lengths.size() axes

}  // namespace tpu::hlo

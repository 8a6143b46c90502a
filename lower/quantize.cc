// SPDX-License-Identifier: Apache-2.0
// Fake quantization and products of narrow matrices with scales. Integers of a grid are kept in the
// float type that PyTorch's kernels compute them in.
#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/matmul.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

struct Grid {
  Value scale;       // of x's dims, as f32 numbers
  Value zero_point;  // of x's dims
  double low, high;
};

void require_bounds(int64_t low, int64_t high) {
  require(low <= high, "`quant_min` should be less than or         equal to `quant_max`.");
}

// Scale, zero point, least and greatest.
void check_zero_point(std::span<const Number> n, DType) {
  require_bounds(to_int(n[2]), to_int(n[3]));
  require(to_int(n[1]) >= to_int(n[2]) && to_int(n[1]) <= to_int(n[3]),
          "`zero_point` must be between `quant_min` and `quant_max`.");
}

Value in_units(Value x, const Grid& g) { return x * (1.0 / g.scale); }

// A NaN becomes the least number of the grid.
Value clamped(Value q, Value low, Value high) {
  return hlo::min(hlo::select(hlo::is_nan(q), low, hlo::max(q, low)), high);
}

struct Quantized {
  Value number;  // of the grid, before its bounds
  Value inside;
  Value value;
};

Quantized quantized(Value number, const Grid& g, Value low, Value high) {
  return {number, (number >= low) & (number <= high),
          (clamped(number, low, high) - g.zero_point) * g.scale};
}
Quantized quantized(Value number, const Grid& g) {
  return quantized(number, g, hlo::full_like(number, g.low), hlo::full_like(number, g.high));
}

Value rounded(Value x, const Grid& g) {
  return hlo::round_half_even(in_units(x, g)) + g.zero_point;
}
Value rounded_at_once(Value x, const Grid& g) {
  return hlo::round_half_even(in_units(x, g) + g.zero_point);
}

void require_fake_type(DType t, std::string_view kernel) { require_float(kernel, t); }

Values fake_quantize(Value self, Scalar scale, Scalar zero_point, Scalar least, Scalar greatest) {
  require_fake_type(self.dtype(), "fake_quantize_tensor_cachemask_kernel_type_handling");
  const Value x = widened(self);
  const auto like = [&](Value v) {
    return hlo::broadcast_to(hlo::convert(v, x.dtype()), x.dims());
  };
  const Grid g{like(scale.as(DType::kF32)), like(zero_point.as(DType::kS32)), 0, 0};
  const Quantized q =
      quantized(rounded(x, g), g, like(least.as(DType::kS32)), like(greatest.as(DType::kS32)));
  return {hlo::convert(q.value, self.dtype()), q.inside};
}

Value one_like(Value v, Value x) {
  return hlo::broadcast_to(hlo::convert(hlo::reshape(v, {}), x.dtype()), x.dims());
}
Value as_f32(Value v) { return hlo::convert(v, DType::kF32); }

Values fake_quantize_by_tensors(Value self, Value scale, Value zero_point, Value enabled,
                                int64_t least, int64_t greatest) {
  require_bounds(least, greatest);
  require_fake_type(self.dtype(), "fake_quantize_tensor_cachemask_kernel_type_handling");
  const Value x = widened(self);
  const Value whole = hlo::convert(zero_point, DType::kS32);
  const Grid g{one_like(as_f32(scale), x), one_like(whole, x), static_cast<double>(least),
               static_cast<double>(greatest)};
  const Quantized q = quantized(rounded(x, g), g);
  const Value off = ~one_like(hlo::convert(enabled, DType::kPred), hlo::convert(x, DType::kPred));
  return {hlo::convert(where(off, x, q.value), self.dtype()), off | q.inside};
}

void check_channels(Value self, Value scale, Value zero_point, int64_t axis) {
  require(zero_point.dtype() == DType::kS32 || zero_point.dtype() == DType::kF32 ||
              zero_point.dtype() == DType::kF16,
          "Zero-point must be Int32, Float or Half, found {}",
          scalar_type_name(zero_point.dtype()));
  require(scale.dtype() == DType::kF32 || scale.dtype() == DType::kBF16,
          "Scale must be Float or BFloat16, found {}", scalar_type_name(scale.dtype()));
  require(scale.rank() == 1, "scale should be a 1-D tensor");
  require(zero_point.rank() == 1, "zero point should be a 1-D tensor");
  require(scale.numel() == zero_point.numel(),
          "scale and zero-point need to have the same dimensions");
  require(scale.numel() == self.dim(wrap_axis(axis, self.rank())),
          "dimensions of scale and zero-point are not consistent with input tensor");
  require(axis >= 0 && axis <= self.rank(),
          "`axis` must be between 0 and number of dimensions of input");
}

Value over_channels(Value v, Value x, int64_t axis) {
  return hlo::broadcast_in_dim(hlo::convert(v, x.dtype()), x.dims(), {axis});
}

Values fake_quantize_channels(Value self, Value scale, Value zero_point, int64_t axis,
                              int64_t least, int64_t greatest) {
  check_channels(self, scale, zero_point, axis);
  require_bounds(least, greatest);
  require_fake_type(self.dtype(), "fake_quantize_channel_cachemask_cpu_type_handling");
  const bool whole = zero_point.dtype() == DType::kS32;
  if (whole) {
    check_range(zero_point, {least, greatest + 1},
                "`zero_point` must be between `quant_min` and `quant_max`.", CheckKind::kRuntime);
  }
  const Value x = widened(self);
  const Grid g{over_channels(as_f32(scale), x, axis), over_channels(zero_point, x, axis),
               static_cast<double>(least), static_cast<double>(greatest)};
  const Quantized q = quantized(whole ? rounded(x, g) : rounded_at_once(x, g), g);
  return {hlo::convert(q.value, self.dtype()), q.inside};
}

// Learnable scale and zero point: the zero point is rounded into the grid.

Value first(Value v) { return hlo::slice_axis(hlo::reshape(v, {v.numel()}), 0, 0, 1); }

Value whole_in_grid(Value zero_point, double least, double greatest) {
  const Value z = hlo::round_half_even(as_f32(zero_point));
  return clip(z, hlo::full_like(z, least), hlo::full_like(z, greatest));
}

struct Learnable {
  Value x;
  Grid grid;
};

Learnable learnable(Value self, Value scale, Value whole, std::optional<int64_t> axis,
                    int64_t least, int64_t greatest) {
  const Value x = widened(self);
  const auto spread = [&](Value v) { return axis ? over_channels(v, x, *axis) : one_like(v, x); };
  return {x,
          {spread(as_f32(scale)), spread(whole), static_cast<double>(least),
           static_cast<double>(greatest)}};
}

Value learnable_forward(Value self, Value scale, Value zero_point, std::optional<int64_t> axis,
                        int64_t least, int64_t greatest) {
  const Value whole =
      whole_in_grid(zero_point, static_cast<double>(least), static_cast<double>(greatest));
  const auto [x, g] = learnable(self, scale, whole, axis, least, greatest);
  return hlo::convert(quantized(rounded(x, g), g).value, self.dtype());
}

// Straight through inside the grid; the scale feels the rounding, or the end of the grid.
Values learnable_backward(Value grad, const Learnable& l, Value self, double factor,
                          const Dims& axes) {
  require(grad.numel() == self.numel(), "`X` and `dY` are not the same size");
  const Grid& g = l.grid;
  const Value dy = widened(grad);
  const Quantized q = quantized(rounded_at_once(l.x, g), g);
  const Value end = clamped(q.number, hlo::full_like(l.x, g.low), hlo::full_like(l.x, g.high));
  const Value by_scale = where(q.inside, (q.value - l.x) / g.scale, end - g.zero_point);
  const Value by_zero = where(q.inside, 0.0, -g.scale);
  const auto total = [&](Value v) { return hlo::reduce_sum(dy * v * factor, axes); };
  return {hlo::convert(where(q.inside, dy, 0.0), self.dtype()), total(by_scale), total(by_zero)};
}

Value learnable_tensor(Value self, Value scale, Value zero_point, int64_t least, int64_t greatest) {
  return learnable_forward(self, first(scale), first(zero_point), std::nullopt, least, greatest);
}

Values learnable_tensor_backward(Value grad, Value self, Value scale, Value zero_point,
                                 int64_t least, int64_t greatest, double factor) {
  const auto low = static_cast<double>(least);
  const auto high = static_cast<double>(greatest);
  const Value up = as_f32(first(zero_point)) + 0.5;
  const Value whole = truncate(clip(up, hlo::full_like(up, low), hlo::full_like(up, high)));
  const Learnable l = learnable(self, first(scale), whole, std::nullopt, least, greatest);
  Values results = learnable_backward(grad, l, self, factor, all_axes(self.rank()));
  for (size_t i : {1, 2}) {
    results[i] = hlo::convert(hlo::reshape(results[i], {1}), scale.dtype());
  }
  return results;
}

Value learnable_channels(Value self, Value scale, Value zero_point, int64_t axis, int64_t least,
                         int64_t greatest) {
  return learnable_forward(self, scale, zero_point, axis, least, greatest);
}

Values learnable_channels_backward(Value grad, Value self, Value scale, Value zero_point,
                                   int64_t axis, int64_t least, int64_t greatest, double factor) {
  const Value whole =
      whole_in_grid(zero_point, static_cast<double>(least), static_cast<double>(greatest));
  Dims others = all_axes(self.rank());
  others.erase(others.begin() + axis);
  const Learnable l = learnable(self, scale, whole, axis, least, greatest);
  Values results = learnable_backward(grad, l, self, factor, others);
  for (size_t i : {1, 2}) results[i] = hlo::convert(results[i], scale.dtype());
  return results;
}

// Products

Value weight_int8pack_mm(Value self, Value mat2, Value scales) {
  require(
      self.dtype() == DType::kF32 || self.dtype() == DType::kBF16 || self.dtype() == DType::kF16,
      "_weight_int8pack_mm_cpu : expect A to be either 32-bit or 16-bit float tensor.");
  require(mat2.dtype() == DType::kS8, "_weight_int8pack_mm_cpu : expect B to be int8 tensor.");
  require(self.rank() == 2, "_weight_int8pack_mm_cpu : expect A to be 2D tensor.");
  require(mat2.rank() == 2 && mat2.dim(1) == self.dim(1),
          "_weight_int8pack_mm_cpu : expect B.size(1) == {}", self.dim(1));
  require(scales.rank() == 1 && scales.dim(0) == mat2.dim(0),
          "_weight_int8pack_mm_cpu : expect scales to be 1d tensor with size {}", mat2.dim(0));
  require(scales.dtype() == self.dtype(), "expected scalar type {} but found {}",
          scalar_type_name(self.dtype()), scalar_type_name(scales.dtype()));
  const Value product = wide_matmul_transposed(self, hlo::convert(mat2, self.dtype()));
  const Value factor = hlo::convert(scales, product.dtype());
  return hlo::convert(product * hlo::broadcast_to(factor, product.dims()), self.dtype());
}

bool is_f8(DType t) { return ir::is_float(t) && ir::byte_size(t) == 1; }

void check_scaling(Value a, Value b, Value scale_a, Value scale_b) {
  const bool whole = scale_a.numel() == 1 && scale_b.numel() == 1;
  const bool rows = scale_a.dims() == Dims{a.dim(0), 1} && scale_b.dims() == Dims{1, b.dim(1)};
  if (is_f8(a.dtype()) && is_f8(b.dtype()) && (whole || rows)) return;
  fail(ErrorKind::kValue,
       "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales "
       "should be float and singletons.\n- For RowWise scaling, a and b should be float8, scales "
       "should be float, scale_a should be ({}, 1) and scale_b should be (1, {}), and both should "
       "be contiguous.",
       a.dim(0), b.dim(1));
}

Value scaled_mm(Value a, Value b, Value scale_a, Value scale_b, std::optional<Value> bias,
                std::optional<Value>, std::optional<DType> out_dtype) {
  require(a.rank() == 2, "mat1 must be a matrix");
  require(b.rank() == 2, "mat2 must be a matrix");
  require(a.dim(1) == b.dim(0), "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
          a.dim(0), a.dim(1), b.dim(0), b.dim(1));
  require(is_f8(a.dtype()) || is_f8(b.dtype()), "Expected mat1 to be Float8 matrix got {}",
          scalar_type_name(a.dtype()));
  check_scaling(a, b, scale_a, scale_b);
  require(!bias || bias->numel() == b.dim(1), "Bias must be size {} but got {}", b.dim(1),
          bias ? bias->numel() : 0);
  // bf16 holds every f8 number.
  const Value product = wide_matmul(hlo::convert(a, DType::kBF16), hlo::convert(b, DType::kBF16));
  const auto spread = [&](Value v) {
    const Value wide = hlo::convert(v, product.dtype());
    return hlo::broadcast_to(v.numel() == 1 ? hlo::reshape(wide, {}) : wide, product.dims());
  };
  Value result = product * spread(scale_a) * spread(scale_b);
  if (bias) result = result + spread(*bias);
  return hlo::convert(result, out_dtype.value_or(a.dtype()));
}

Value scaled_mm_v2(Value a, Value b, Values scale_a, Dims, Dims, Values scale_b, Dims, Dims,
                   std::optional<Value> bias, std::optional<DType> out_dtype) {
  require(scale_a.size() == 1 && scale_b.size() == 1,
          "scaled_mm: expected one scale for each operand, got {} and {}", scale_a.size(),
          scale_b.size());
  return scaled_mm(a, b, scale_a[0], scale_b[0], bias, std::nullopt, out_dtype);
}

}  // namespace

Rules quantize_rules() {
  const Traits like_self{.strides = Strides::kPreserve};
  const Traits sums{.strides = Strides::kPreserve, .reduction = true};
  return {
      {"aten::fake_quantize_per_tensor_affine_cachemask",
       fake_quantize,
       {.strides = Strides::kPreserve, .check = check_zero_point}},
      {"aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", fake_quantize_by_tensors,
       like_self},
      {"aten::fake_quantize_per_channel_affine_cachemask",
       fake_quantize_channels,
       {.strides = Strides::kPreserve, .indexes = true}},
      {"aten::_fake_quantize_learnable_per_tensor_affine", learnable_tensor, like_self},
      {"aten::_fake_quantize_learnable_per_tensor_affine_backward", learnable_tensor_backward,
       sums},
      {"aten::_fake_quantize_learnable_per_channel_affine", learnable_channels, like_self},
      {"aten::_fake_quantize_learnable_per_channel_affine_backward", learnable_channels_backward,
       sums},
      {"aten::_weight_int8pack_mm", weight_int8pack_mm},
      {"aten::_scaled_mm", scaled_mm},
      {"aten::_scaled_mm_v2", scaled_mm_v2},
  };
}

}  // namespace tpu::lower

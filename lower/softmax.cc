// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along one axis, with masks, and their gradients.
#include <cmath>

#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/reduction.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// x - max(x) along the axes.
Value shifted(Value x, const Dims& axes) { return x - spread(max_over(x, axes), x.dims(), axes); }

Value normalized(Value x, const Dims& axes) {
  const Value e = hlo::exp(shifted(x, axes));
  return e / spread(sum_over(e, axes), x.dims(), axes);
}

Value log_normalized(Value x, const Dims& axes) {
  const Value d = shifted(x, axes);
  return d - spread(hlo::log(sum_over(hlo::exp(d), axes)), x.dims(), axes);
}

using Normalize = Value (*)(Value, const Dims&);

// PyTorch's kernels for the minor axis and for the others differ in name.
void require_kernel(std::string_view name, Value x, const Dims& axes) {
  const bool minor = axes.empty() || axes[0] == x.rank() - 1;
  require_float(fmt::format("{}_{}kernel_impl", name, minor ? "lastdim_" : ""), x.dtype());
}

template <Normalize normalize>
Value softmax(Value self, int64_t dim, bool half_to_float) {
  const bool log = normalize == log_normalized;
  require(!half_to_float, "softmax with half to float conversion is not supported on CPU");
  const Dims axes = reduction_axis(dim, self.rank());
  require_kernel(log ? "log_softmax" : "softmax", self, axes);
  return computed(self, [&](Value x) { return normalize(x, axes); });
}

// Rows of -inf only, which have no maximum to compare with, give zeros instead of NaN.
Value safe_softmax(Value self, int64_t dim, std::optional<DType> dtype) {
  const Value x = hlo::convert(self, dtype.value_or(self.dtype()));
  const Dims axes = reduction_axis(dim, x.rank());
  require_kernel("softmax", x, axes);
  return computed(x, [&](Value v) {
    const Value nothing = equals(max_over(v, axes), -INFINITY);
    return where(spread(nothing, v.dims(), axes), 0, normalized(v, axes));
  });
}

// grad * p - p * sum(grad * p) for p the probabilities.
Value softmax_backward(Value grad, Value output, int64_t dim, DType input_dtype) {
  const Dims axes = reduction_axis(dim, output.rank());
  const Value p = widened(output);
  const Value g = widened(grad) * p;
  return hlo::convert(g - p * spread(sum_over(g, axes), p.dims(), axes), input_dtype);
}

Value log_softmax_backward(Value grad, Value output, int64_t dim, DType input_dtype) {
  const Dims axes = reduction_axis(dim, output.rank());
  const Value g = widened(grad);
  const Value total = spread(sum_over(g, axes), g.dims(), axes);
  return hlo::convert(g - hlo::exp(widened(output)) * total, input_dtype);
}

enum MaskType : int64_t { kAttention = 0, kPadding = 1, kSameShape = 2 };

// Only 2-d masks of 4-d tensors may have another type.
int64_t type_of_mask(Value mask, Value self, std::optional<int64_t> type) {
  require(type || mask.dims() == self.dims(), "Mask Type should be defined");
  require(!type || (*type >= kAttention && *type <= kSameShape),
          "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)");
  return mask.rank() == 2 && self.rank() == 4 ? *type : kSameShape;
}

// [L, L] over batch and heads, or [B, L] over heads and rows, brought to self's dims.
Value spread_mask(Value mask, Value self, int64_t type) {
  if (type == kSameShape) {
    require(mask.dims() == self.dims(), "For mask_type == 2 mask shape should match input shape");
    return mask;
  }
  if (type == kPadding) {
    require(mask.dims() == (Dims{self.dim(0), self.dim(3)}),
            "For mask_type == 1 mask shape should be (B, L)");
    return hlo::broadcast_in_dim(mask, self.dims(), {0, 3});
  }
  require(mask.dims() == (Dims{self.dim(2), self.dim(3)}),
          "For mask_type == 0 mask shape should be (L, L)");
  return hlo::broadcast_in_dim(mask, self.dims(), {2, 3});
}

Value masked_softmax(Value self, Value mask, std::optional<int64_t> dim,
                     std::optional<int64_t> mask_type) {
  require(ir::is_bool(mask.dtype()), "Mask should be a boolean tensor");
  require_float("masked_softmax", self.dtype());
  const Value out = spread_mask(mask, self, type_of_mask(mask, self, mask_type));
  const Dims axes = reduction_axis(dim.value_or(self.rank() - 1), self.rank());
  return computed(self, [&](Value x) { return normalized(where(out, -INFINITY, x), axes); });
}

Value masked_softmax_backward(Value grad, Value output, Value mask, std::optional<int64_t> dim) {
  require(grad.dims() == mask.dims(), "Mask shape should match grad shape");
  const Value p = where(mask, 0, output);
  return softmax_backward(grad, p, dim.value_or(output.rank() - 1), grad.dtype());
}

}  // namespace

Rules softmax_rules() {
  Rules rules = {
      {"aten::_softmax", softmax<normalized>},
      {"aten::_log_softmax", softmax<log_normalized>},
      {"aten::_softmax_backward_data", softmax_backward},
      {"aten::_log_softmax_backward_data", log_softmax_backward},
      {"aten::_safe_softmax", safe_softmax},
      {"aten::_masked_softmax", masked_softmax, {.strides = Strides::kPreserve}},
      {"aten::_masked_softmax_backward", masked_softmax_backward, {.strides = Strides::kPreserve}},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

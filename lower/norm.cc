// SPDX-License-Identifier: Apache-2.0
// Layer, group, RMS and weight normalization with their gradients. Batch normalization is in
// batch_norm.cc.
#include "lower/norm.h"

#include <limits>

#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/unsupported.h"

namespace tpu::lower {

DType parameter_type(Value input, const OptionalValues& parameters) {
  DType t = input.dtype();
  for (const auto& p : parameters) {
    if (!p || p->dtype() == input.dtype()) continue;
    require(ir::byte_size(input.dtype()) == 2 && p->dtype() == DType::kF32,
            "mixed dtype (CPU): expect parameter to have scalar type of Float");
    t = DType::kF32;
  }
  return t;
}

Value inverse_deviation(Value variance, Scalar eps) {
  return 1.0 / hlo::sqrt(variance + eps.like(variance));
}

Value through_statistics(const NormGradient& n, const Dims& axes, bool centered) {
  const Dims& dims = n.gradient.dims();
  const Value along = spread(mean_over(n.gradient * n.normalized, axes), dims, axes);
  Value rest = n.gradient - n.normalized * along;
  if (centered) rest = rest - spread(mean_over(n.gradient, axes), dims, axes);
  return n.rstd * rest;
}

namespace {

Dims last_axes(int64_t count, int64_t rank) {
  Dims axes = all_axes(rank);
  axes.erase(axes.begin(), axes.begin() + (rank - count));
  return axes;
}

Dims first_axes(int64_t count) { return all_axes(count); }

void check_parameter(const std::optional<Value>& p, std::string_view name, const Dims& shape) {
  require(!p || p->dims() == shape,
          "Expected {} to be of same shape as normalized_shape, but got {} of shape [{}] and "
          "normalized_shape = [{}]",
          name, name, p ? fmt::format("{}", fmt::join(p->dims(), ", ")) : "",
          fmt::join(shape, ", "));
}

void check_layer_norm(Value input, const Dims& shape, const std::optional<Value>& weight,
                      const std::optional<Value>& bias) {
  require(!shape.empty(),
          "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
          "element, but got normalized_shape = []");
  check_parameter(weight, "weight", shape);
  check_parameter(bias, "bias", shape);
  const Dims& dims = input.dims();
  const bool fits =
      dims.size() >= shape.size() && std::equal(shape.rbegin(), shape.rend(), dims.rbegin());
  require(fits,
          "Given normalized_shape=[{}], expected input with shape [*, {}], but got input of "
          "size[{}]",
          fmt::join(shape, ", "), fmt::join(shape, ", "), fmt::join(dims, ", "));
  require_float("LayerNormKernelImpl", input.dtype());
}

Value scaled(Value x, const std::optional<Value>& weight) {
  return weight ? x * hlo::broadcast_to(hlo::convert(*weight, x.dtype()), x.dims()) : x;
}

Value offset(Value x, const std::optional<Value>& bias) {
  return bias ? x + hlo::broadcast_to(hlo::convert(*bias, x.dtype()), x.dims()) : x;
}

Values layer_norm(Value input, Dims shape, std::optional<Value> weight, std::optional<Value> bias,
                  Scalar eps) {
  check_layer_norm(input, shape, weight, bias);
  const DType statistics = parameter_type(input, {weight, bias});
  const Dims axes = last_axes(static_cast<int64_t>(shape.size()), input.rank());
  const Value x = widened(input);
  const Moments m = moments(x, axes);
  const Value variance = m.squares / static_cast<double>(reduced_count(x, axes));
  const Value rstd = inverse_deviation(variance, eps);
  const Value y = offset(scaled(m.centered * spread(rstd, x.dims(), axes), weight), bias);
  const auto saved = [&](Value v) {
    return hlo::convert(with_axes(v, x.dims(), axes), statistics);
  };
  return {hlo::convert(y, input.dtype()), saved(m.mean), saved(rstd)};
}

// A statistic of dims [outer..., 1...] at every element of x.
Value statistic(Value s, Value x) {
  return hlo::broadcast_to(hlo::convert(s, x.dtype()), x.dims());
}

Value gradient_of_weight(Value product, int64_t shape_rank, DType t) {
  return hlo::convert(sum_over(product, first_axes(product.rank() - shape_rank)), t);
}

Values layer_norm_backward(Value grad_out, Value input, Dims shape, Value mean, Value rstd,
                           std::optional<Value> weight, std::optional<Value> bias,
                           std::vector<bool> mask) {
  const auto rank = static_cast<int64_t>(shape.size());
  const Dims axes = last_axes(rank, input.rank());
  const Value x = widened(input);
  const Value g = hlo::convert(grad_out, x.dtype());
  const Value r = statistic(rstd, x);
  const Value normalized = (x - statistic(mean, x)) * r;
  const DType t = weight ? weight->dtype() : (bias ? bias->dtype() : input.dtype());
  Values out(3, undefined(input.graph()));
  if (mask[0]) {
    const Value dx = through_statistics({scaled(g, weight), normalized, r}, axes, true);
    out[0] = hlo::convert(dx, input.dtype());
  }
  if (mask[1]) out[1] = gradient_of_weight(g * normalized, rank, t);
  if (mask[2]) out[2] = gradient_of_weight(g, rank, t);
  return out;
}

Value default_eps(Value x) {
  const double eps = x.dtype() == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                              : std::numeric_limits<float>::epsilon();
  return hlo::full_like(x, eps);
}

Values rms_norm(Value input, Dims shape, std::optional<Value> weight, std::optional<Scalar> eps) {
  const Dims axes = last_axes(static_cast<int64_t>(shape.size()), input.rank());
  const Value x = widened(input);
  const Value squares = mean_over(x * x, axes);
  const Value rstd = hlo::rsqrt(squares + (eps ? eps->like(squares) : default_eps(squares)));
  const Value y = scaled(x * spread(rstd, x.dims(), axes), weight);
  return {hlo::convert(y, input.dtype()), with_axes(rstd, x.dims(), axes)};
}

Values rms_norm_backward(Value grad_out, Value input, Dims shape, Value rstd,
                         std::optional<Value> weight, std::vector<bool> mask) {
  const auto rank = static_cast<int64_t>(shape.size());
  const Dims axes = last_axes(rank, input.rank());
  const Value x = widened(input);
  const Value g = hlo::convert(grad_out, x.dtype());
  const Value r = statistic(rstd, x);
  const Value normalized = x * r;
  Values out(2, undefined(input.graph()));
  if (mask[0]) {
    const Value dx = through_statistics({scaled(g, weight), normalized, r}, axes, false);
    out[0] = hlo::convert(dx, input.dtype());
  }
  if (mask[1] && weight) out[1] = gradient_of_weight(g * normalized, rank, weight->dtype());
  return out;
}

// [N, C, ...] as [N, groups, C / groups, ...].
Value grouped(Value x, int64_t groups) {
  Dims dims = x.dims();
  dims[1] = dims[1] / groups;
  dims.insert(dims.begin() + 1, groups);
  return hlo::reshape(x, dims);
}

// One number per channel at every element of a grouped tensor.
Value per_channel(Value v, Value x) {
  const Value grouped_channels = hlo::reshape(v, {x.dim(1), x.dim(2)});
  return hlo::broadcast_in_dim(hlo::convert(grouped_channels, x.dtype()), x.dims(), {1, 2});
}

void check_group_norm(Value input, const std::optional<Value>& weight,
                      const std::optional<Value>& bias, int64_t channels, int64_t groups) {
  require(groups > 0, "Expected num groups to be greater than 0, got {}", groups);
  require(channels % groups == 0,
          "Expected number of channels in input to be divisible by num_groups, but got input of "
          "shape [{}] and num_groups={}",
          fmt::join(input.dims(), ", "), groups);
  for (const auto& [p, name] : {std::pair(weight, "weight"), std::pair(bias, "bias")}) {
    require(!p || p->dims() == Dims{channels},
            "Expected {} to be a vector of size equal to the number of channels in input, but got "
            "{} of shape [{}] and input of shape [{}]",
            name, name, p ? fmt::format("{}", fmt::join(p->dims(), ", ")) : "",
            fmt::join(input.dims(), ", "));
  }
  require_float("GroupNormKernelImpl", input.dtype());
}

Values group_norm(Value input, std::optional<Value> weight, std::optional<Value> bias, int64_t,
                  int64_t channels, int64_t, int64_t groups, Scalar eps) {
  check_group_norm(input, weight, bias, channels, groups);
  const DType statistics = parameter_type(input, {weight, bias});
  const Value x = grouped(widened(input), groups);
  const Dims axes = last_axes(x.rank() - 2, x.rank());
  const Moments m = moments(x, axes);
  const Value rstd =
      inverse_deviation(m.squares / static_cast<double>(reduced_count(x, axes)), eps);
  Value y = m.centered * spread(rstd, x.dims(), axes);
  if (weight) y = y * per_channel(*weight, x);
  if (bias) y = y + per_channel(*bias, x);
  return {hlo::convert(hlo::reshape(y, input.dims()), input.dtype()),
          hlo::convert(m.mean, statistics), hlo::convert(rstd, statistics)};
}

Values group_norm_backward(Value grad_out, Value input, Value mean, Value rstd,
                           std::optional<Value> weight, int64_t, int64_t channels, int64_t,
                           int64_t groups, std::vector<bool> mask) {
  const Value x = grouped(widened(input), groups);
  const Value g = grouped(hlo::convert(grad_out, x.dtype()), groups);
  const Dims axes = last_axes(x.rank() - 2, x.rank());
  const auto at_elements = [&](Value s) {
    return spread(hlo::convert(s, x.dtype()), x.dims(), axes);
  };
  const Value r = at_elements(rstd);
  const Value normalized = (x - at_elements(mean)) * r;
  const DType t = weight ? weight->dtype() : input.dtype();
  Dims others = last_axes(x.rank() - 3, x.rank());
  others.insert(others.begin(), 0);
  const auto per_weight = [&](Value v) {
    return hlo::convert(hlo::reshape(sum_over(v, others), {channels}), t);
  };
  Values out(3, undefined(input.graph()));
  if (mask[0]) {
    const Value scaled_grad = weight ? g * per_channel(*weight, x) : g;
    const Value dx = through_statistics({scaled_grad, normalized, r}, axes, true);
    out[0] = hlo::convert(hlo::reshape(dx, input.dims()), input.dtype());
  }
  if (mask[1]) out[1] = per_weight(g * normalized);
  if (mask[2]) out[2] = per_weight(g);
  return out;
}

Dims axes_without(int64_t dim, int64_t rank) {
  Dims axes = all_axes(rank);
  axes.erase(axes.begin() + wrap_axis(dim, rank));
  return axes;
}

// v scaled to length g in each slice along `dim`.
Values weight_norm(Value v, Value g, int64_t dim) {
  const Value x = widened(v);
  const Dims axes = axes_without(dim, x.rank());
  const Value norm = with_axes(hlo::sqrt(sum_over(x * x, axes)), x.dims(), axes);
  const Value factor = hlo::broadcast_to(hlo::convert(g, x.dtype()) / norm, x.dims());
  return {hlo::convert(x * factor, v.dtype()), norm};
}

Values weight_norm_backward(Value grad_w, Value saved_v, Value saved_g, Value saved_norms,
                            int64_t dim) {
  const Value v = widened(saved_v);
  const Value grad = hlo::convert(grad_w, v.dtype());
  const Value norm = hlo::convert(saved_norms, v.dtype());
  const Dims axes = axes_without(dim, v.rank());
  const Value along = with_axes(sum_over(grad * v, axes), v.dims(), axes) / norm;
  const auto everywhere = [&](Value s) { return hlo::broadcast_to(s, v.dims()); };
  const Value factor = everywhere(hlo::convert(saved_g, v.dtype()) / norm);
  const Value grad_v = factor * (grad - v * everywhere(along / norm));
  return {hlo::convert(grad_v, saved_v.dtype()), hlo::convert(along, saved_g.dtype())};
}

}  // namespace

Rules norm_rules() {
  Rules rules = {
      {"aten::native_layer_norm", layer_norm},
      {"aten::native_layer_norm_backward", layer_norm_backward},
      {"aten::_fused_rms_norm", rms_norm},
      {"aten::_fused_rms_norm_backward", rms_norm_backward},
      {"aten::native_group_norm", group_norm, {.strides = Strides::kSuggest}},
      {"aten::native_group_norm_backward", group_norm_backward, {.strides = Strides::kSuggest}},
      {"aten::_weight_norm_interface", weight_norm},
      {"aten::_weight_norm_interface_backward", weight_norm_backward},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

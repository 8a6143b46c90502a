// SPDX-License-Identifier: Apache-2.0
// Batch normalization: over every axis but the channels (axis 1), with running statistics, and the
// pieces that synchronized batch normalization is made of.
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/norm.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

using Optional = std::optional<Value>;

Dims all_but_channels(Value x) {
  Dims axes = all_axes(x.rank());
  axes.erase(axes.begin() + 1);
  return axes;
}

// One number per channel at every element of x, in x's type.
Value at_channels(Value v, Value x) {
  return hlo::broadcast_in_dim(hlo::convert(v, x.dtype()), x.dims(), {1});
}

double per_channel_count(Value x) {
  return static_cast<double>(reduced_count(x, all_but_channels(x)));
}

Value affine(Value x, const Optional& weight, const Optional& bias) {
  if (weight) x = x * at_channels(*weight, x);
  return bias ? x + at_channels(*bias, x) : x;
}

void check_input(Value input) {
  require(input.numel() > 0,
          "input tensor must have at least one element, but got input_sizes = [{}]",
          fmt::join(input.dims(), ", "));
  require_float("batch_norm", input.dtype());
}

// momentum * now + (1 - momentum) * running
Value updated(Value running, Value now, Scalar momentum) {
  const Value old = hlo::convert(running, now.dtype());
  const Value m = momentum.like(now);
  return hlo::convert(m * now + (1.0 - m) * old, running.dtype());
}

void update_running(Values& results, const Optional& mean, const Optional& var, const Moments& m,
                    double count, Scalar momentum) {
  if (mean) results.push_back(updated(*mean, m.mean, momentum));
  if (var) results.push_back(updated(*var, m.squares / (count - 1), momentum));
}

Values train(Value input, Optional weight, Optional bias, Optional mean, Optional var,
             Scalar momentum, Scalar eps) {
  check_input(input);
  const DType statistics = parameter_type(input, {weight, bias, mean, var});
  const Value x = widened(input);
  const Moments m = moments(x, all_but_channels(x));
  const double count = per_channel_count(x);
  const Value invstd = inverse_deviation(m.squares / count, eps);
  const Value y = affine(m.centered * at_channels(invstd, x), weight, bias);
  Values results{hlo::convert(y, input.dtype()), hlo::convert(m.mean, statistics),
                 hlo::convert(invstd, statistics)};
  update_running(results, mean, var, m, count, momentum);
  return results;
}

Values evaluate(Value input, Optional weight, Optional bias, Value mean, Value var, Scalar eps) {
  check_input(input);
  const DType statistics = parameter_type(input, {weight, bias, mean, var});
  const Value x = widened(input);
  const Value invstd = inverse_deviation(hlo::convert(var, x.dtype()), eps);
  const Value y = affine((x - at_channels(mean, x)) * at_channels(invstd, x), weight, bias);
  const Value nothing = hlo::full(x.graph(), {statistics, {0}}, int64_t{0});
  return {hlo::convert(y, input.dtype()), nothing, nothing, mean, var};
}

Values batch_norm(Value input, Optional weight, Optional bias, Optional mean, Optional var,
                  bool training, Scalar momentum, Scalar eps) {
  if (training) return train(input, weight, bias, mean, var, momentum, eps);
  require(mean && var, "Expected running_mean and running_var to be defined when training=False");
  return evaluate(input, weight, bias, *mean, *var, eps);
}

Values batch_norm_no_stats(Value input, Optional weight, Optional bias, bool, Scalar momentum,
                           Scalar eps) {
  return train(input, weight, bias, std::nullopt, std::nullopt, momentum, eps);
}

Values batch_norm_with_update(Value input, Optional weight, Optional bias, Value mean, Value var,
                              Scalar momentum, Scalar eps) {
  Values results = train(input, weight, bias, mean, var, momentum, eps);
  const Value reserve = hlo::full(input.graph(), {DType::kU8, {0}}, int64_t{0});
  results.insert(results.begin() + 3, reserve);
  return results;
}

Values update_stats(Value input, Optional mean, Optional var, Scalar momentum) {
  check_input(input);
  const DType statistics = parameter_type(input, {mean, var});
  const Value x = widened(input);
  const Moments m = moments(x, all_but_channels(x));
  const double count = per_channel_count(x);
  Values results{hlo::convert(m.mean, statistics), hlo::convert(m.squares / count, statistics)};
  update_running(results, mean, var, m, count, momentum);
  return results;
}

struct Statistics {
  Value mean;
  Value invstd;
};

Values backward(Value grad_out, Value input, const Optional& weight, const Statistics& s,
                DType parameters, bool training, const std::vector<bool>& mask) {
  const Value x = widened(input);
  const Dims axes = all_but_channels(x);
  const Value g = hlo::convert(grad_out, x.dtype());
  const Value r = at_channels(s.invstd, x);
  const Value normalized = (x - at_channels(s.mean, x)) * r;
  Values out(3, undefined(input.graph()));
  if (mask[0]) {
    const Value scaled = affine(g, weight, std::nullopt);
    const Value dx =
        training ? through_statistics({scaled, normalized, r}, axes, true) : scaled * r;
    out[0] = hlo::convert(dx, input.dtype());
  }
  if (mask[1]) out[1] = hlo::convert(sum_over(g * normalized, axes), parameters);
  if (mask[2]) out[2] = hlo::convert(sum_over(g, axes), parameters);
  return out;
}

Values batch_norm_backward(Value grad_out, Value input, Optional weight, Optional running_mean,
                           Optional running_var, Optional save_mean, Optional save_invstd,
                           bool training, Scalar eps, std::vector<bool> mask) {
  const Optional& mean = training ? save_mean : running_mean;
  const Optional& deviation = training ? save_invstd : running_var;
  require(mean && deviation, "batch norm's backward needs the statistics of its forward");
  const Value s = widened(*deviation);
  const Value invstd = training ? s : inverse_deviation(s, eps);
  const DType t = weight ? weight->dtype() : mean->dtype();
  return backward(grad_out, input, weight, {*mean, invstd}, t, training, mask);
}

// The statistics of this process's part of a batch, for synchronized batch norm.
Values stats(Value input, Scalar eps) {
  const Value x = widened(input);
  const Moments m = moments(x, all_but_channels(x));
  return {m.mean, inverse_deviation(m.squares / per_channel_count(x), eps)};
}

Value element(Value input, Optional weight, Optional bias, Value mean, Value invstd) {
  const Value x = widened(input);
  const Value normalized = (x - at_channels(mean, x)) * at_channels(invstd, x);
  return hlo::convert(affine(normalized, weight, bias), input.dtype());
}

// Joins the statistics [parts, C] of parts with `counts` [parts] elements each.
Values gather_stats_of(Value mean, Value invstd, const Optional& running_mean,
                       const Optional& running_var, Scalar momentum, Scalar eps, Value counts) {
  const Value means = widened(mean);
  const Value deviations = hlo::convert(invstd, means.dtype());
  const Value n = hlo::convert(hlo::reshape(counts, {counts.numel()}), means.dtype());
  const Value weights = hlo::broadcast_in_dim(n, means.dims(), {0});
  const Value total = hlo::broadcast_to(sum_over(n, {0}), {means.dim(1)});
  const Value joined = sum_over(weights * means, {0}) / total;
  const Value distance = means - spread(joined, means.dims(), {0});
  const Value variances = 1.0 / (deviations * deviations) - eps.like(deviations);
  const Value squares = sum_over(weights * (variances + distance * distance), {0});
  Values results{joined, inverse_deviation(squares / total, eps)};
  if (running_mean) results.push_back(updated(*running_mean, joined, momentum));
  if (running_var) results.push_back(updated(*running_var, squares / (total - 1), momentum));
  return results;
}

Values gather_stats_with_counts(Value, Value mean, Value invstd, Optional running_mean,
                                Optional running_var, Scalar momentum, Scalar eps, Value counts) {
  return gather_stats_of(mean, invstd, running_mean, running_var, momentum, eps, counts);
}

Values gather_stats(Value, Value mean, Value invstd, Optional running_mean, Optional running_var,
                    Scalar momentum, Scalar eps, int64_t count) {
  const Value counts = hlo::full(mean.graph(), {DType::kS64, {mean.dim(0)}}, count);
  return gather_stats_of(mean, invstd, running_mean, running_var, momentum, eps, counts);
}

Values backward_reduce(Value grad_out, Value input, Value mean, Value invstd, Optional weight,
                       bool input_g, bool weight_g, bool bias_g) {
  const Value x = widened(input);
  const Dims axes = all_but_channels(x);
  const Value g = hlo::convert(grad_out, x.dtype());
  const Value sum = sum_over(g, axes);
  const Value along = sum_over(g * (x - at_channels(mean, x)), axes);
  const DType t = weight ? weight->dtype() : sum.dtype();
  const Value nothing = undefined(sum.graph());
  const Value of_weight = along * hlo::convert(invstd, along.dtype());
  return {input_g ? sum : nothing, input_g ? along : nothing,
          weight_g ? hlo::convert(of_weight, t) : nothing, bias_g ? hlo::convert(sum, t) : nothing};
}

Value backward_element(Value grad_out, Value input, Value mean, Value invstd, Optional weight,
                       Value sum_dy, Value sum_dy_xmu, Value count) {
  const Value x = widened(input);
  const Value g = hlo::convert(grad_out, x.dtype());
  const Value n = hlo::convert(sum_over(count, all_axes(count.rank())), x.dtype());
  const auto mean_of = [&](Value sum) {
    return hlo::convert(sum, x.dtype()) / hlo::broadcast_to(n, sum.dims());
  };
  const Value r = hlo::convert(invstd, x.dtype());
  const Value along = at_channels(mean_of(sum_dy_xmu) * r * r, x);
  const Value rest = g - at_channels(mean_of(sum_dy), x) - (x - at_channels(mean, x)) * along;
  return hlo::convert(affine(rest * at_channels(r, x), weight, std::nullopt), input.dtype());
}

}  // namespace

Rules batch_norm_rules() {
  const Traits plain{.strides = Strides::kSuggest};
  const Traits running{.strides = Strides::kSuggest, .mutates = {"running_mean", "running_var"}};
  Rules rules = {
      {"aten::native_batch_norm", batch_norm, running},
      {"aten::_native_batch_norm_legit", batch_norm, plain},
      {"aten::_native_batch_norm_legit.no_stats", batch_norm_no_stats, plain},
      {"aten::_batch_norm_with_update", batch_norm_with_update, plain},
      {"aten::batch_norm_update_stats", update_stats, running},
      {"aten::native_batch_norm_backward", batch_norm_backward, plain},
      {"aten::batch_norm_backward", batch_norm_backward, plain},
      {"aten::batch_norm_stats", stats},
      {"aten::batch_norm_elemt", element, plain},
      {"aten::batch_norm_gather_stats", gather_stats, running},
      {"aten::batch_norm_gather_stats_with_counts", gather_stats_with_counts, running},
      {"aten::batch_norm_backward_reduce", backward_reduce},
      {"aten::batch_norm_backward_elemt", backward_element, plain},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

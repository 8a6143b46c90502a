// SPDX-License-Identifier: Apache-2.0
// Variance, standard deviation, vector norms, log-sum-exp and renorm.
#include <cmath>

#include "lower/families.h"
#include "lower/reduction.h"

namespace tpu::lower {
namespace {

struct Spread {
  Value variance;  // of the real type
  Value mean;
};

Value real_sum_of_squares(Value centered, const Dims& axes) {
  if (!ir::is_complex(centered.dtype())) return sum_over(centered * centered, axes);
  const Value re = hlo::real(centered);
  const Value im = hlo::imag(centered);
  return sum_over(re * re + im * im, axes);
}

// In the computation type of x, a float or complex tensor.
Spread spread_of(Value x, const Dims& axes, double correction) {
  const Value mean = mean_over(x, axes);
  const Value squares = real_sum_of_squares(x - spread(mean, x.dims(), axes), axes);
  const double n = static_cast<double>(reduced_count(x, axes));
  return {squares / std::max(0.0, n - correction), mean};
}

enum class Take { kVariance, kDeviation };

template <Take take>
Values spread_and_mean(Value self, std::optional<Dims> dim, std::optional<double> correction,
                       bool keepdim, std::string_view name) {
  require(ir::is_float(self.dtype()) || ir::is_complex(self.dtype()),
          "{} only support floating point and complex dtypes", name);
  const Dims axes = reduction_axes(dim, self.rank());
  const Value x = widened(self);
  const Spread s = spread_of(x, axes, correction.value_or(1));
  const Value v = take == Take::kVariance ? s.variance : hlo::sqrt(s.variance);
  return {hlo::convert(keep(v, self, axes, keepdim), ir::real_of(self.dtype())),
          hlo::convert(keep(s.mean, self, axes, keepdim), self.dtype())};
}

template <Take take>
Value spread_alone(Value self, std::optional<Dims> dim, std::optional<double> correction,
                   bool keepdim) {
  return spread_and_mean<take>(self, dim, correction, keepdim, "std and var")[0];
}

template <Take take>
Values spread_with_mean(Value self, std::optional<Dims> dim, std::optional<double> correction,
                        bool keepdim) {
  constexpr std::string_view kName = take == Take::kVariance ? "var_mean" : "std_mean";
  return spread_and_mean<take>(self, dim, correction, keepdim, kName);
}

// The p-norm over axes of magnitudes of a float type.
Value norm_of_magnitudes(Value x, double p, const Dims& axes) {
  if (p == 0) return hlo::convert(count_over(differs(x, 0), axes), x.dtype());
  if (std::isinf(p)) return p > 0 ? max_over(x, axes) : min_over(x, axes);
  if (p == 1) return sum_over(x, axes);
  if (p == 2) return hlo::sqrt(sum_over(x * x, axes));
  const Value sum = sum_over(hlo::pow(x, hlo::full_like(x, p)), axes);
  return hlo::pow(sum, hlo::full_like(sum, 1 / p));
}

Value vector_norm(Value self, double ord, std::optional<Dims> dim, bool keepdim,
                  std::optional<DType> dtype) {
  const Dims axes = reduction_axes(dim, self.rank());
  const DType t = dtype.value_or(self.dtype());
  const Value x = hlo::abs(hlo::convert(self, ir::compute_type(t)));
  // One magnitude is its own norm, also where its power is out of range.
  const bool alone = ord != 0 && reduced_count(x, axes) == 1;
  const Value norm = norm_of_magnitudes(x, alone ? INFINITY : ord, axes);
  return hlo::convert(keep(norm, self, axes, keepdim), ir::real_of(t));
}

Value norm_dtype(Value self, std::optional<double> p, Dims dim, bool keepdim,
                 std::optional<DType> dtype) {
  return vector_norm(self, p.value_or(2), dim, keepdim, dtype);
}

Value norm(Value self, std::optional<double> p, Dims dim, bool keepdim) {
  return vector_norm(self, p.value_or(2), dim, keepdim, std::nullopt);
}

Value log_sum_exp(Value self, Dims dim, bool keepdim) {
  const Dims axes = reduction_axes(dim, self.rank());
  const Value given = to_float(self);
  const Value x = widened(given);
  const Value greatest = max_over(hlo::real(x), axes);
  const Value real_shift = where(is_infinite(greatest), 0, greatest);
  const Value shift = hlo::convert(real_shift, x.dtype());
  const Value sum = sum_over(hlo::exp(x - spread(shift, x.dims(), axes)), axes);
  return hlo::convert(keep(hlo::log(sum) + shift, self, axes, keepdim), given.dtype());
}

// Scales down each slice along `dim` whose p-norm passes maxnorm.
Value renorm(Value self, double p, int64_t dim, Scalar maxnorm) {
  const int64_t axis = wrap_axis(dim, self.rank());
  Dims axes = all_axes(self.rank());
  axes.erase(axes.begin() + axis);
  const Value x = widened(self);
  const Value norm = norm_of_magnitudes(hlo::abs(x), p, axes);
  const Value limit = maxnorm.like(norm);
  const Value factor = hlo::select(norm > limit, limit / (norm + 1e-7), hlo::full_like(norm, 1.0));
  const Value factors = spread(hlo::convert(factor, x.dtype()), x.dims(), axes);
  return hlo::convert(x * factors, self.dtype());
}

}  // namespace

Rules statistics_rules() {
  Rules rules = {
      {"aten::var.correction", spread_alone<Take::kVariance>},
      {"aten::std.correction", spread_alone<Take::kDeviation>},
      {"aten::var_mean.correction", spread_with_mean<Take::kVariance>},
      {"aten::std_mean.correction", spread_with_mean<Take::kDeviation>},
      {"aten::linalg_vector_norm", vector_norm},
      {"aten::norm.ScalarOpt_dim_dtype", norm_dtype},
      {"aten::norm.ScalarOpt_dim", norm},
      {"aten::logsumexp", log_sum_exp},
      {"aten::renorm", renorm},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

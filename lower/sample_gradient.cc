// SPDX-License-Identifier: Apache-2.0
// How gamma and Dirichlet samples x move with their parameters: dx/da = -(dF/da) / f for a
// distribution function F of density f. dF/da is the integral of f (d ln f/da) up to x or, as that
// over everything is 0, from x on. In the logarithm (gamma) or the logit (beta) of the variable
// these integrands, seen from x away from the mode, fall from 1 as log-concave functions do, and
// the double exponential rule (Takahasi and Mori, 1974) integrates them to near the precision of
// f64, in which all of this computes.
#include <vector>

#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/reduction.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// Nodes y = exp(v - exp(-v)) for v in [-3.4, 4.6], beyond which nothing is left in f64. As many as
// leave an error below that of the result's type.
int64_t nodes_for(DType t) { return t == DType::kF64 ? 200 : 128; }
constexpr double kFirst = -3.4;
constexpr double kLast = 4.6;

struct Nodes {
  std::vector<double> y;
  std::vector<double> weight;
};

Nodes half_line_nodes(int64_t count) {
  Nodes nodes;
  const double step = (kLast - kFirst) / static_cast<double>(count - 1);
  for (int64_t i = 0; i < count; ++i) {
    const double v = kFirst + step * static_cast<double>(i);
    const double y = std::exp(v - std::exp(-v));
    nodes.y.push_back(y);
    nodes.weight.push_back(step * y * (1.0 + std::exp(-v)));
  }
  return nodes;
}

// The integral of integrand(y) over y > 0, which is down to nothing some tens of `scale` away.
// The integrand sees its operands with an axis of nodes at the end: widen() gives them that.
class HalfLine {
 public:
  HalfLine(Value scale, int64_t nodes) : scale_(scale), count_(nodes) {
    dims_ = scale.dims();
    dims_.push_back(count_);
  }
  Value widen(Value x) const { return hlo::broadcast_in_dim(x, dims_, all_axes(x.rank())); }
  template <class F>
  Value integrate(F integrand) const {
    const Nodes nodes = half_line_nodes(count_);
    const Value terms = integrand(widen(scale_) * row(nodes.y)) * row(nodes.weight);
    return scale_ * hlo::reduce_sum(terms, {scale_.rank()});
  }

 private:
  Value row(const std::vector<double>& values) const {
    const Value list =
        hlo::constant_array(scale_.graph(), {count_}, std::span<const double>(values), DType::kF64);
    return hlo::broadcast_in_dim(list, dims_, {scale_.rank()});
  }
  Value scale_;
  int64_t count_;
  Dims dims_;
};

Value choose(Value condition, double a, double b) {
  const Value other = hlo::full(condition.graph(), {DType::kF64, condition.dims()}, b);
  return where(condition, a, other);
}

// A length over which exp(-slope y - curvature y^2 / 2) falls.
Value decay(Value slope, Value curvature) { return 1.0 / hlo::max(slope, hlo::sqrt(curvature)); }

// x by the logarithm of gamma numbers of shape a: f d(ln x) ~ exp(a w - e^w).
Value gamma_gradient(Value a, Value x, int64_t nodes) {
  const Value log_x = hlo::log(x);
  const Value above = x > a;
  const Value toward = choose(above, 1.0, -1.0);  // away from the mode
  // Above, e^w ends it at the latest where x e^y is some tens.
  const Value low = 1.0 / hlo::max(a - x, hlo::min(hlo::sqrt(a), a));
  const Value high = hlo::min(decay(x - a, x), max(-log_x, 0.0) + 1.0);
  const HalfLine line(where(above, high, low), nodes);
  const Value center = log_x - hlo::digamma(a);
  const Value sign = line.widen(toward);
  const Value integral = line.integrate([&](Value y) {
    const Value moved = sign * y;
    const Value exponent = line.widen(a) * moved - line.widen(x) * hlo::expm1(moved);
    return sign * (line.widen(center) + moved) * hlo::exp(exponent);
  });
  return where(equals(x, 0.0), 0.0, x * integral);
}

Value standard_gamma_grad(Value self, Value output) {
  require_dtype(self.dtype() == DType::kF32 || self.dtype() == DType::kF64,
                "_standard_gamma_grad_cpu", self.dtype());
  const Values v = align({self, output});
  const Value a = hlo::convert(v[0], DType::kF64);
  const Value x = hlo::convert(v[1], DType::kF64);
  return hlo::convert(gamma_gradient(a, x, nodes_for(v[0].dtype())), v[0].dtype());
}

Value softplus(Value x) { return max(x, 0.0) + hlo::log1p(hlo::exp(-hlo::abs(x))); }

// Of beta numbers x of shapes a and b, dx/da / (1 - x): by the logit, f dw ~ t^a (1 - t)^b.
Value beta_gradient(Value a, Value b, Value x, int64_t nodes) {
  const Value log_x = hlo::log(x);
  const Value log_rest = hlo::log1p(-x);
  const Value logit = log_x - log_rest;
  const Value slope = a - (a + b) * x;  // of a ln t + b ln (1 - t)
  const Value above = slope < 0.0;
  const Value toward = choose(above, 1.0, -1.0);
  const Value curvature = (a + b) * x * (1.0 - x);
  const Value floor = hlo::min(hlo::sqrt(curvature), where(above, b, a));
  // The logarithm keeps its slope until the logit passes 0, where the slope becomes a or b.
  const Value steep = 1.0 / hlo::max(hlo::abs(slope), floor);
  const Value outer =
      hlo::max(-toward * logit, hlo::full_like(logit, 0.0)) + 1.0 / where(above, b, a) + 1.0;
  const HalfLine line(hlo::min(steep, outer), nodes);
  const Value sign = line.widen(toward);
  const Value center = hlo::digamma(a) - hlo::digamma(a + b);
  const Value integral = line.integrate([&](Value y) {
    const Value w = line.widen(logit) + sign * y;
    const Value log_t = -softplus(-w);
    const Value rise = line.widen(a) * (log_t - line.widen(log_x)) -
                       line.widen(b) * (softplus(w) + line.widen(log_rest));
    return sign * (log_t - line.widen(center)) * hlo::exp(rise);
  });
  return x * integral;
}

Value dirichlet_grad(Value x, Value alpha, Value total) {
  require_dtype(x.dtype() == DType::kF32 || x.dtype() == DType::kF64, "_dirichlet_grad_cpu",
                x.dtype());
  const Values v = align({x, alpha, total});
  const auto wide = [](Value value) { return hlo::convert(value, DType::kF64); };
  const Value a = wide(v[1]);
  const Value p = wide(v[0]);
  const Value inner = beta_gradient(a, wide(v[2]) - a, p, nodes_for(v[0].dtype()));
  return hlo::convert(where(equals(p, 0.0), 0.0, inner), v[0].dtype());
}

}  // namespace

Rules sample_gradient_rules() {
  Rules rules = {
      {"aten::_standard_gamma_grad", standard_gamma_grad, {.strides = Strides::kPointwise}},
      {"aten::_dirichlet_grad", dirichlet_grad, {.strides = Strides::kPointwise}},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
// Losses of two tensors element by element, and their gradients. Losses over classes are in
// class_loss.cc.
#include "lower/loss.h"
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// The loss f of the operands in their compute type, reduced, in their common type.
template <class F>
Value loss_of(Value self, Value target, int64_t reduction, F f) {
  const Values v = align_compute({self, target});
  return hlo::convert(reduced_loss(f(v[0], v[1]), reduction), result_type(Values{self, target}));
}

// f(x, y, g), g being the gradient that reaches each element.
template <class F>
Value gradient_of(Value grad, Value self, Value target, int64_t reduction, F f) {
  const DType t = result_type(Values{self, target});
  const Values v = align_compute({self, target});
  const Value g = hlo::broadcast_to(
      loss_gradient(hlo::convert(grad, v[0].dtype()), reduction, v[0].numel()), v[0].dims());
  return hlo::convert(f(v[0], v[1], g), t);
}

void require_loss_type(const char* kernel, Value self, Value target) {
  require_float(kernel, result_type(Values{self, target}));
}

Value mse_loss(Value self, Value target, int64_t reduction) {
  require_loss_type("mse_cpu", self, target);
  return loss_of(self, target, reduction, [](Value x, Value y) {
    const Value d = x - y;
    return d * d;
  });
}

Value mse_loss_backward(Value grad, Value self, Value target, int64_t reduction) {
  return gradient_of(grad, self, target, reduction,
                     [](Value x, Value y, Value g) { return (x - y) * 2.0 * g; });
}

Value smooth_l1_loss(Value self, Value target, int64_t reduction, Scalar beta) {
  require_loss_type("smooth_l1_cpu", self, target);
  return loss_of(self, target, reduction, [&](Value x, Value y) {
    const Value z = hlo::abs(x - y);
    const Value b = beta.like(z);
    return where(z < b, z * 0.5 * z / b, z - b * 0.5);
  });
}

Value smooth_l1_loss_backward(Value grad, Value self, Value target, int64_t reduction,
                              Scalar beta) {
  return gradient_of(grad, self, target, reduction, [&](Value x, Value y, Value g) {
    const Value d = x - y;
    const Value b = beta.like(d);
    return where(d <= -b, -g, where(d >= b, g, g * d / b));
  });
}

Value huber_loss(Value self, Value target, int64_t reduction, Scalar delta) {
  require_loss_type("huber_cpu", self, target);
  return loss_of(self, target, reduction, [&](Value x, Value y) {
    const Value z = hlo::abs(x - y);
    const Value d = delta.like(z);
    return where(z <= d, z * 0.5 * z, d * (z - d * 0.5));
  });
}

Value huber_loss_backward(Value grad, Value self, Value target, int64_t reduction, Scalar delta) {
  return gradient_of(grad, self, target, reduction, [&](Value x, Value y, Value g) {
    const Value d = x - y;
    const Value limit = delta.like(d);
    return where(d <= -limit, -g * limit, where(d >= limit, g * limit, g * d));
  });
}

void check_probability(Value x, const char* text) {
  const Value outside = ~((x >= 0.0) & (x <= 1.0));
  const Value any = hlo::reduce_or(outside, all_axes(x.rank()));
  x.graph().check(any, hlo::convert(any, DType::kS32), text, ir::CheckKind::kRuntime);
}

void require_same_type(Value self, Value other) {
  require(self.dtype() == other.dtype(), "Found dtype {} but expected {}",
          scalar_type_name(other.dtype()), scalar_type_name(self.dtype()));
}

// Operands in compute type and self's shape.
Value beside(Value self, Value other) {
  const DType t = ir::compute_type(self.dtype());
  const Values v = {self, other};
  return hlo::broadcast_to(hlo::convert(other, t), broadcast_dims(v));
}

Value binary_cross_entropy(Value self, Value target, std::optional<Value> weight,
                           int64_t reduction) {
  require_float("binary_cross_entropy", self.dtype());
  require_same_type(self, target);
  const Value x = beside(target, self);
  const Value y = beside(self, target);
  check_probability(x, "all elements of input should be between 0 and 1");
  check_probability(y, "all elements of target should be between 0 and 1");
  Value loss = (y - 1.0) * max(hlo::log1p(-x), -100.0) - y * max(hlo::log(x), -100.0);
  if (weight) loss = loss * beside(self, *weight);
  return hlo::convert(reduced_loss(loss, reduction), self.dtype());
}

Value binary_cross_entropy_backward(Value grad, Value self, Value target,
                                    std::optional<Value> weight, int64_t reduction) {
  const Value x = beside(target, self);
  const Value y = beside(self, target);
  const Value g = loss_gradient(hlo::convert(grad, x.dtype()), reduction, x.numel());
  Value result = hlo::broadcast_to(g, x.dims()) * (x - y) / max((1.0 - x) * x, 1e-12);
  if (weight) result = result * beside(self, *weight);
  return hlo::convert(result, self.dtype());
}

// log(sigmoid(x)) without overflow.
Value log_sigmoid(Value x) { return min(x, 0.0) - hlo::log1p(hlo::exp(-hlo::abs(x))); }

Value with_logits(Value self, Value target, std::optional<Value> weight,
                  std::optional<Value> pos_weight, int64_t reduction) {
  Values operands{self, target};
  if (weight) operands.push_back(*weight);
  if (pos_weight) operands.push_back(*pos_weight);
  const DType t = result_type(operands);
  require_float("log_sigmoid_cpu", self.dtype());
  const Values v = align_compute(operands);
  Value log_probability = log_sigmoid(v[0]);
  if (pos_weight) log_probability = ((v.back() - 1.0) * v[1] + 1.0) * log_probability;
  Value loss = (1.0 - v[1]) * v[0] - log_probability;
  if (weight) loss = loss * v[2];
  return hlo::convert(reduced_loss(loss, reduction), t);
}

Value soft_margin_loss(Value self, Value target, int64_t reduction) {
  const Values v = align_compute({self, target});
  const Value loss = hlo::log1p(hlo::exp(-v[1] * v[0]));
  return hlo::convert(reduced_loss(loss, reduction), self.dtype());
}

Value soft_margin_loss_backward(Value grad, Value self, Value target, int64_t reduction) {
  const Value result = gradient_of(grad, self, target, reduction, [](Value x, Value y, Value g) {
    const Value z = hlo::exp(-y * x);
    return -(y * z) / (z + 1.0) * g;
  });
  return hlo::convert(result, self.dtype());
}

void check_beta(std::span<const Number> numbers, DType) {
  require(numbers.empty() || to_double(numbers.back()) >= 0,
          "smooth_l1_loss does not support negative values for beta.");
}
void check_delta(std::span<const Number> numbers, DType) {
  require(numbers.empty() || to_double(numbers.back()) > 0,
          "huber_loss does not support non-positive values for delta.");
}

}  // namespace

Value reduced_loss(Value loss, int64_t reduction) {
  if (reduction == kNone) return loss;
  const Value sum = hlo::reduce_sum(loss, all_axes(loss.rank()));
  return reduction == kSum ? sum : sum / static_cast<double>(loss.numel());
}

Value loss_gradient(Value grad, int64_t reduction, int64_t count) {
  return reduction == kMean ? grad / static_cast<double>(count) : grad;
}

Rules loss_rules() {
  const Traits pointwise{.strides = Strides::kPointwise, .reduction = true};
  const Traits like_self{.strides = Strides::kPreserve, .reduction = true};
  return {
      {"aten::mse_loss", mse_loss, pointwise},
      {"aten::mse_loss_backward", mse_loss_backward, pointwise},
      {"aten::smooth_l1_loss", smooth_l1_loss, {.check = check_beta, .reduction = true}},
      {"aten::smooth_l1_loss_backward", smooth_l1_loss_backward, pointwise},
      {"aten::huber_loss",
       huber_loss,
       {.strides = Strides::kPointwise, .check = check_delta, .reduction = true}},
      {"aten::huber_loss_backward", huber_loss_backward, pointwise},
      {"aten::binary_cross_entropy", binary_cross_entropy, like_self},
      {"aten::binary_cross_entropy_backward", binary_cross_entropy_backward, like_self},
      {"aten::binary_cross_entropy_with_logits", with_logits, pointwise},
      {"aten::soft_margin_loss", soft_margin_loss, like_self},
      {"aten::soft_margin_loss_backward", soft_margin_loss_backward, like_self},
  };
}

}  // namespace tpu::lower

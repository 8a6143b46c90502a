// SPDX-License-Identifier: Apache-2.0
// Gradients of activation functions.
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/math.h"

namespace tpu::lower {
namespace {

Value conjugate(Value x) {
  return ir::is_complex(x.dtype()) ? hlo::complex(hlo::real(x), -hlo::imag(x)) : x;
}

// Of the normal distribution function by its own density.
Value gelu_slope(Value x) {
  const Value cdf = 0.5 * (1.0 + hlo::erf(x * M_SQRT1_2));
  const Value density = hlo::exp(x * x * -0.5) * (M_2_SQRTPI * M_SQRT1_2 * 0.5);
  return cdf + x * density;
}

Value gelu_tanh_slope(Value x) {
  constexpr double kScale = M_SQRT2 * M_2_SQRTPI * 0.5;
  constexpr double kCubic = 0.044715;
  const Value squared = x * x;
  const Value t = hlo::tanh(kScale * (x + kCubic * squared * x));
  const Value inner_slope = kScale * (1.0 + 3 * kCubic * squared);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner_slope;
}

Value gelu_backward(Value grad, Value x, std::string approximate) {
  return computed(grad, x, [&](Value g, Value y) {
    return g * (approximate == "tanh" ? gelu_tanh_slope(y) : gelu_slope(y));
  });
}

Value silu_backward(Value grad, Value x) {
  const Value s = hlo::logistic(x);
  return grad * (s * (1.0 + x * (1.0 - s)));
}

Value mish_backward(Value grad, Value x) {
  const Value t = hlo::tanh(hlo::log1p(hlo::exp(x)));
  return grad * (t + x * hlo::logistic(x) * (1.0 - t * t));
}

Value elu_backward(Value grad, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result,
                   Value self_or_result) {
  return computed(grad, self_or_result, [&](Value g, Value y) {
    const Value negative = alpha.exact_like(y) * scale.exact_like(y);
    const Value inner = input_scale.exact_like(y);
    const Value slope = is_result ? inner * (y + negative) : inner * negative * hlo::exp(y * inner);
    return where(y > 0.0, g * scale.exact_like(g), g * slope);
  });
}

Value hardtanh_backward(Value grad, Value x, Scalar low, Scalar high) {
  return computed(grad, x, [&](Value g, Value y) {
    return where((y > low.exact_like(y)) & (y < high.exact_like(y)), g, 0.0);
  });
}

Value hardswish_backward(Value grad, Value x) {
  return where(x <= -3, 0.0, where(x >= 3, grad, grad * (x / 3 + 0.5)));
}

Value hardsigmoid_backward(Value grad, Value x) { return where((x > -3) & (x < 3), grad / 6, 0.0); }

Value shrink_backward(Value grad, Value x, Scalar lambda) {
  return computed(grad, x, [&](Value g, Value y) {
    const Value l = lambda.exact_like(y);
    return where((y < -l) | (y > l), g, 0.0);
  });
}

Value softplus_backward(Value grad, Value x, Scalar beta, Scalar threshold) {
  return computed(grad, x, [&](Value g, Value y) {
    const Value scaled = y * beta.exact_like(y);
    return where(scaled > threshold.exact_like(y), g, g * hlo::logistic(scaled));
  });
}

Value leaky_relu_backward(Value grad, Value x, Scalar slope) {
  return computed(grad, x,
                  [&](Value g, Value y) { return where(y > 0.0, g, g * slope.exact_like(g)); });
}

// The weight's gradient has x's dims; PyTorch sums it.
std::pair<Value, Value> prelu_backward(Value grad, Value x, Value weight) {
  const Values v = align_compute({grad, x, weight});
  const Value positive = v[1] > 0.0;
  return {hlo::convert(where(positive, v[0], v[2] * v[0]), x.dtype()),
          hlo::convert(where(positive, 0.0, v[1] * v[0]), x.dtype())};
}

Value threshold_backward(Value grad, Value x, Scalar limit) {
  return computed(grad, x,
                  [&](Value g, Value y) { return where(y <= limit.exact_like(y), 0.0, g); });
}

Value sigmoid_backward(Value grad, Value y) { return grad * conjugate((1.0 - y) * y); }
Value tanh_backward(Value grad, Value y) { return grad * conjugate(1.0 - y * y); }

Value logit_backward(Value grad, Value x, std::optional<Scalar> eps) {
  return computed(grad, x, [&](Value g, Value y) {
    const Value slope = g / (y * (1.0 - y));
    if (!eps) return where((y < 0.0) | (y > 1), hlo::nan_like(y), slope);
    const Value low = eps->like(y);
    return where((y >= low) & (y <= 1.0 - low), slope, 0.0);
  });
}

Value glu_backward(Value grad, Value x, int64_t dim) {
  const int64_t axis = wrap_axis(dim, x.rank());
  const int64_t half = x.dim(axis) / 2;
  const Value value = hlo::slice_axis(x, axis, 0, half);
  const Value gate = hlo::slice_axis(x, axis, half, 2 * half);
  const Value d_value = computed(grad, gate, [](Value g, Value b) { return g * hlo::logistic(b); });
  const Value d_gate = computed(grad, value, gate, [](Value g, Value a, Value b) {
    const Value s = hlo::logistic(b);
    return g * a * s * (1.0 - s);
  });
  return hlo::concatenate({d_value, d_gate}, axis);
}

Value log_sigmoid_backward(Value grad, Value x) {
  return computed(grad, x, [](Value g, Value y) { return g * hlo::logistic(-y); });
}

}  // namespace

Rules activation_backward_rules() {
  const Traits as_input{.strides = Strides::kPointwise};
  return {
      {"aten::gelu_backward", gelu_backward},
      {"aten::silu_backward", binary<silu_backward>},
      {"aten::mish_backward", binary<mish_backward>, as_input},
      {"aten::elu_backward", elu_backward},
      {"aten::hardtanh_backward", hardtanh_backward, as_input},
      {"aten::hardswish_backward", binary<hardswish_backward>, as_input},
      {"aten::hardsigmoid_backward", binary<hardsigmoid_backward>},
      {"aten::hardshrink_backward", shrink_backward},
      {"aten::softshrink_backward", shrink_backward},
      {"aten::softplus_backward", softplus_backward},
      {"aten::leaky_relu_backward", leaky_relu_backward},
      {"aten::_prelu_kernel_backward", prelu_backward, as_input},
      {"aten::threshold_backward", threshold_backward},
      {"aten::sigmoid_backward", binary<sigmoid_backward>},
      {"aten::tanh_backward", binary<tanh_backward>},
      {"aten::logit_backward", logit_backward},
      {"aten::glu_backward", glu_backward},
      {"aten::log_sigmoid_backward", log_sigmoid_backward, as_input},
  };
}

}  // namespace tpu::lower

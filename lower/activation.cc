// SPDX-License-Identifier: Apache-2.0
// Activation functions; their gradients are in activation_backward.cc.
#include "core/hlo/control.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

void refuse_complex(Value x) {
  if (!ir::is_complex(x.dtype())) return;
  fail(ErrorKind::kNotImplemented, "clamp is not supported for complex types");
}

Value relu(Value x) {
  require(!ir::is_bool(x.dtype()), "Boolean inputs not supported for relu");
  refuse_complex(x);
  return computed(x, [](Value y) { return max(y, 0.0); });
}

Value gelu(Value x, std::string approximate) {
  require(approximate == "none" || approximate == "tanh",
          "approximate argument must be either none or tanh.");
  return computed(x, [&](Value y) {
    if (approximate == "tanh") {
      const Value inner = M_SQRT2 * M_2_SQRTPI * 0.5 * (y + 0.044715 * (y * y * y));
      return 0.5 * y * (1.0 + hlo::tanh(inner));
    }
    return 0.5 * y * (1.0 + hlo::erf(y * M_SQRT1_2));
  });
}

Value silu(Value x) { return x * hlo::logistic(x); }
Value mish(Value x) { return x * hlo::tanh(hlo::log1p(hlo::exp(x))); }

Value elu(Value x, Scalar alpha, Scalar scale, Scalar input_scale) {
  return computed(x, [&](Value y) {
    const Value negative =
        hlo::expm1(y * input_scale.exact_like(y)) * (alpha.exact_like(y) * scale.exact_like(y));
    return where(y <= 0.0, negative, y * scale.like(y));
  });
}

Value hardtanh(Value x, Number low, Number high) {
  require(!ir::is_bool(x.dtype()), "Bool inputs not supported for hardtanh");
  refuse_complex(x);
  for (const Number& limit : {low, high}) {
    if (ir::is_integer(x.dtype())) require_fits(limit, DType::kS64);
  }
  const bool negative = to_double(low) < 0 || to_double(high) < 0;
  require(!ir::is_unsigned_integer(x.dtype()) || !negative,
          "cannot do hardtanh on an unsigned type with negative limits");
  for (const Number& limit : {low, high}) require_fits(limit, x.dtype());
  return computed(
      x, [&](Value y) { return clip(y, hlo::full_like(y, low), hlo::full_like(y, high)); });
}

Value relu6(Value x) { return clip(x, hlo::full_like(x, 0.0), hlo::full_like(x, 6.0)); }
Value hardswish(Value x) { return x * relu6(x + 3) / 6; }
Value hardsigmoid(Value x) { return relu6(x + 3) / 6; }

Value hardshrink(Value x, Scalar lambda) {
  lambda.require_fits(x.dtype());
  return computed(x, [&](Value y) {
    const Value l = lambda.like(y);
    return where((y >= -l) & (y <= l), 0.0, y);
  });
}

// The last product keeps NaN.
Value softshrink(Value x, Scalar lambda) {
  return computed(x, [&](Value y) {
    const Value l = lambda.like(y);
    return where(y > l, y - l, where(y < -l, y + l, y * 0.0));
  });
}

Value softplus(Value x, Scalar beta, Scalar threshold) {
  return computed(x, [&](Value y) {
    const Value b = beta.exact_like(y);
    const Value scaled = y * b;
    return where(scaled > threshold.exact_like(y), y, hlo::log1p(hlo::exp(scaled)) / b);
  });
}

Value leaky_relu(Value x, Scalar slope) {
  return computed(x, [&](Value y) { return where(y > 0.0, y, y * slope.exact_like(y)); });
}

Value prelu(Value x, Value weight) {
  require(x.dtype() == weight.dtype(), "Found dtype {} but expected {}",
          scalar_type_name(weight.dtype()), scalar_type_name(x.dtype()));
  return computed(x, weight, [](Value y, Value w) { return where(y > 0.0, y, w * y); });
}

Value threshold(Value x, Scalar limit, Scalar value) {
  value.require_fits(x.dtype());
  return computed(x, [&](Value y) { return where(y <= limit.exact_like(y), value.like(y), y); });
}

// Halves of x along `axis`.
std::pair<Value, Value> halves(Value x, int64_t axis) {
  const int64_t half = x.dim(axis) / 2;
  return {hlo::slice_axis(x, axis, 0, half), hlo::slice_axis(x, axis, half, 2 * half)};
}

Value glu(Value x, int64_t dim) {
  const auto [value, gate] = halves(x, wrap_axis(dim, x.rank()));
  return computed(value, gate, [](Value a, Value b) { return a * hlo::logistic(b); });
}

// The derivative of glu's result along (dx_value, dx_gate).
Value glu_jvp(Value result, Value x, Value dx, int64_t dim) {
  const int64_t axis = wrap_axis(dim, x.rank());
  const auto [value, gate] = halves(x, axis);
  const auto [d_value, d_gate] = halves(dx, axis);
  const Value s = pointwise<hlo::logistic>(gate);
  return d_value * s + result * (1.0 - s) * d_gate;
}

// (result, buffer): the buffer is what the CPU's kernel leaves for the backward.
std::pair<Value, Value> log_sigmoid(Value x) {
  const auto decay = [](Value y) { return hlo::exp(-hlo::abs(y)); };
  return {computed(x, [&](Value y) { return min(y, 0.0) - hlo::log1p(decay(y)); }),
          computed(x, decay)};
}

// Uniform in [0, 1) with the precision of x's compute type.
Value uniform(Value x) {
  const bool wide = x.dtype() == DType::kF64;
  const int64_t per_block = wide ? 2 : 4;
  const auto state = x.graph().random_state((x.numel() + per_block - 1) / per_block);
  const DType t = wide ? DType::kU64 : DType::kU32;
  const Value bits = hlo::philox_bits(state.seed, state.offset, x.dims(), t);
  const int64_t drop = wide ? 11 : 8;
  const Value mantissa = hlo::shift_right_logical(bits, hlo::full_like(bits, drop));
  return hlo::convert(mantissa, x.dtype()) * std::ldexp(1.0, wide ? -53 : -24);
}

// (result, noise): negative numbers are scaled by a slope drawn from [lower, upper) in training,
// and by the middle of it otherwise.
std::pair<Value, Value> rrelu(Value x, Value noise, Scalar lower, Scalar upper, bool training) {
  const Value y = hlo::convert(x, ir::compute_type(x.dtype()));
  const Value low = lower.exact_like(y);
  const Value high = upper.exact_like(y);
  if (!training) {
    return {hlo::convert(where(y > 0.0, y, y * ((low + high) * 0.5)), x.dtype()), noise};
  }
  const Value slope = where(y <= 0.0, low + (high - low) * uniform(y), 1.0);
  return {hlo::convert(y * slope, x.dtype()), hlo::convert(slope, noise.dtype())};
}

}  // namespace

Rules activation_rules() {
  const Traits as_input{.strides = Strides::kPointwise};
  return {
      {"aten::relu", relu, as_input},
      {"aten::gelu", gelu},
      {"aten::silu", pointwise<silu>},
      {"aten::mish", pointwise<mish>},
      {"aten::elu", elu},
      {"aten::hardtanh", hardtanh, as_input},
      {"aten::hardswish", pointwise<hardswish>, as_input},
      {"aten::hardsigmoid", pointwise<hardsigmoid>},
      {"aten::hardshrink", hardshrink},
      {"aten::softshrink", softshrink},
      {"aten::softplus", softplus},
      {"aten::leaky_relu", leaky_relu},
      {"aten::_prelu_kernel", prelu, as_input},
      {"aten::threshold", threshold},
      {"aten::glu", glu},
      {"aten::glu_jvp", glu_jvp},
      {"aten::log_sigmoid_forward", log_sigmoid, as_input},
      {"aten::rrelu_with_noise", rrelu, as_input},
      {"aten::rrelu_with_noise_functional", rrelu, as_input},
  };
}

}  // namespace tpu::lower

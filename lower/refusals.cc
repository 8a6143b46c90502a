// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <unordered_map>

#include "lower/families.h"
#include "lower/promote.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// Kinds of element types, as bits.
enum Types : uint8_t {
  kBool = 1,
  kInteger = 2,
  kHalf = 4,  // f16 and bf16
  kReal = 8,  // f32 and f64
  kComplex = 16,
  kFloating = kHalf | kReal | kComplex,
  kNotFloat = kBool | kInteger,
  kNotReal = kNotFloat | kComplex,
};

uint8_t kind_of(DType t) {
  if (ir::is_bool(t)) return kBool;
  if (ir::is_complex(t)) return kComplex;
  if (ir::is_float(t)) return ir::byte_size(t) >= 4 ? kReal : kHalf;
  return kInteger;
}

struct Refusal {
  std::string_view op;
  std::string_view kernel;  // as the CPU's message names it
  int types;                // refused by it
  bool scalars = false;     // numbers take part in its type promotion
};

// Structured metadata accepts these types; the CPU's kernels do not.
constexpr Refusal kRefusals[] = {
    {"aten::__lshift__.Scalar", "lshift_cpu", kFloating, true},
    {"aten::__lshift__.Tensor", "lshift_cpu", kBool | kFloating},
    {"aten::__rshift__.Scalar", "rshift_cpu", kFloating, true},
    {"aten::__rshift__.Tensor", "rshift_cpu", kBool | kFloating},
    {"aten::_prelu_kernel", "prelu_cpu", kNotReal},
    {"aten::_prelu_kernel_backward", "prelu_backward_cpu", kNotReal},
    {"aten::abs", "abs_cpu", kBool},
    {"aten::addcmul", "addcmul_cpu_out", kBool},
    {"aten::atan2", "atan2_cpu", kComplex},
    {"aten::bitwise_and.Tensor", "bitwise_and_cpu", kFloating},
    {"aten::bitwise_left_shift.Tensor", "lshift_cpu", kBool | kFloating},
    {"aten::bitwise_not", "bitwise_not_cpu", kFloating},
    {"aten::bitwise_or.Tensor", "bitwise_or_cpu", kFloating},
    {"aten::bitwise_right_shift.Tensor", "rshift_cpu", kBool | kFloating},
    {"aten::bitwise_xor.Tensor", "bitwise_xor_cpu", kFloating},
    {"aten::ceil", "ceil_vml_cpu", kBool},
    {"aten::clamp.Tensor", "clamp_cpu", kBool},
    {"aten::clamp_max.Tensor", "minimum_cpu", kComplex},
    {"aten::clamp_min.Tensor", "maximum_cpu", kComplex},
    {"aten::copysign.Tensor", "copysign_cpu", kComplex},
    {"aten::digamma", "digamma", kComplex},
    {"aten::elu", "elu_cpu", kNotReal},
    {"aten::elu_backward", "elu_backward_cpu", kNotReal},
    {"aten::erf", "erf_vml_cpu", kComplex},
    {"aten::erfc", "erfc_vml_cpu", kComplex},
    {"aten::erfinv", "erfinv_vml_cpu", kComplex},
    {"aten::floor", "floor_vml_cpu", kBool},
    {"aten::fmod.Tensor", "fmod_cpu", kBool | kComplex},
    {"aten::frac", "frac_cpu", kNotReal},
    {"aten::gcd", "gcd_cpu", kBool | kFloating},
    {"aten::ge.Scalar", "ge_cpu", kComplex, true},
    {"aten::ge.Tensor", "ge_cpu", kComplex},
    {"aten::gelu", "GeluKernelImpl", kNotReal},
    {"aten::gelu_backward", "GeluBackwardKernelImpl", kNotReal},
    {"aten::glu", "glu_cpu", kNotReal},
    {"aten::gt.Scalar", "gt_cpu", kComplex, true},
    {"aten::gt.Tensor", "gt_cpu", kComplex},
    {"aten::hardshrink", "hardshrink_cpu", kNotReal},
    {"aten::hardshrink_backward", "shrink_backward_cpu", kNotReal},
    {"aten::hardsigmoid", "hardsigmoid_cpu", kNotReal},
    {"aten::hardsigmoid_backward", "hardsigmoid_backward", kNotReal},
    {"aten::hardswish", "hardswish_cpu", kNotReal},
    {"aten::hardswish_backward", "hardswish_backward_cpu", kNotReal},
    {"aten::hardtanh_backward", "hardshrink_backward_cpu", kNotReal},
    {"aten::hypot", "hypot_cpu", kNotReal},
    {"aten::i0", "i0_vml_cpu", kComplex},
    {"aten::igamma", "igamma_cpu", kNotReal},
    {"aten::igammac", "igammac_cpu", kNotReal},
    {"aten::lcm", "lcm_cpu", kBool | kFloating},
    {"aten::le.Scalar", "le_cpu", kComplex, true},
    {"aten::le.Tensor", "le_cpu", kComplex},
    {"aten::leaky_relu", "leaky_relu_cpu", kNotReal},
    {"aten::leaky_relu_backward", "leaky_relu_backward_cpu", kNotReal},
    {"aten::lerp.Scalar", "lerp_kernel_scalar", kNotFloat},
    {"aten::lerp.Tensor", "lerp_kernel_tensor", kNotFloat},
    {"aten::lgamma", "lgamma_vml_cpu", kComplex},
    {"aten::log_sigmoid_backward", "log_sigmoid_backward_cpu", kNotReal},
    {"aten::log_sigmoid_forward", "log_sigmoid_cpu", kNotReal},
    {"aten::logaddexp", "logaddexp_cpu", kNotFloat},
    {"aten::logaddexp2", "logaddexp2_cpu", kNotReal},
    {"aten::logit", "logit_cpu", kComplex},
    {"aten::logit_backward", "logit_backward_cpu", kNotReal},
    {"aten::lt.Scalar", "lt_cpu", kComplex, true},
    {"aten::lt.Tensor", "lt_cpu", kComplex},
    {"aten::mish", "mish_cpu", kNotReal},
    {"aten::nextafter", "nextafter_cpu", kNotReal},
    {"aten::polygamma", "polygamma", kComplex},
    {"aten::pow.Tensor_Tensor", "pow", kBool},
    {"aten::remainder.Scalar_Tensor", "remainder_cpu", kComplex, true},
    {"aten::remainder.Tensor", "remainder_cpu", kBool | kComplex},
    {"aten::round", "round_vml_cpu", kBool | kComplex},
    {"aten::round.decimals", "round_cpu", kNotReal},
    {"aten::rrelu_with_noise", "leaky_relu_cpu", kNotReal},
    {"aten::rrelu_with_noise_functional", "leaky_relu_cpu", kNotReal},
    {"aten::sigmoid_backward", "sigmoid_backward_cpu", kNotFloat},
    {"aten::silu", "silu_cpu", kNotFloat},
    {"aten::softplus", "softplus_cpu", kNotReal},
    {"aten::softplus_backward", "softplus_backward_cpu", kNotReal},
    {"aten::softshrink", "softshrink_check", kNotReal},
    {"aten::softshrink_backward", "shrink_backward_cpu", kNotReal},
    {"aten::special_airy_ai", "airy_ai_cpu", kHalf | kComplex},
    {"aten::special_bessel_j0", "bessel_j0_cpu", kHalf | kComplex},
    {"aten::special_bessel_j1", "bessel_j1_cpu", kHalf | kComplex},
    {"aten::special_bessel_y0", "bessel_y0_cpu", kHalf | kComplex},
    {"aten::special_bessel_y1", "bessel_y1_cpu", kHalf | kComplex},
    {"aten::special_chebyshev_polynomial_t", "chebyshev_polynomial_t_cpu", kHalf | kComplex},
    {"aten::special_chebyshev_polynomial_u", "chebyshev_polynomial_u_cpu", kHalf | kComplex},
    {"aten::special_chebyshev_polynomial_v", "chebyshev_polynomial_v_cpu", kHalf | kComplex},
    {"aten::special_chebyshev_polynomial_w", "chebyshev_polynomial_w_cpu", kHalf | kComplex},
    {"aten::special_entr", "entr_cpu", kComplex},
    {"aten::special_erfcx", "erfcx_cpu", kHalf | kComplex},
    {"aten::special_hermite_polynomial_h", "hermite_polynomial_h_cpu", kHalf | kComplex},
    {"aten::special_hermite_polynomial_he", "hermite_polynomial_he_cpu", kHalf | kComplex},
    {"aten::special_i0e", "i0e_cpu", kComplex},
    {"aten::special_i1", "i1_cpu", kComplex},
    {"aten::special_i1e", "i1e_cpu", kComplex},
    {"aten::special_laguerre_polynomial_l", "laguerre_polynomial_l_cpu", kHalf | kComplex},
    {"aten::special_legendre_polynomial_p", "legendre_polynomial_p_cpu", kHalf | kComplex},
    {"aten::special_log_ndtr", "log_ndtr_cpu", kHalf | kComplex},
    {"aten::special_modified_bessel_i0", "modified_bessel_i0_cpu", kHalf | kComplex},
    {"aten::special_modified_bessel_i1", "modified_bessel_i1_cpu", kHalf | kComplex},
    {"aten::special_modified_bessel_k0", "modified_bessel_k0_cpu", kHalf | kComplex},
    {"aten::special_modified_bessel_k1", "modified_bessel_k1_cpu", kHalf | kComplex},
    {"aten::special_ndtri", "ndtri_cpu", kHalf | kComplex},
    {"aten::special_scaled_modified_bessel_k0", "scaled_modified_bessel_k0_cpu", kHalf | kComplex},
    {"aten::special_scaled_modified_bessel_k1", "scaled_modified_bessel_k1_cpu", kHalf | kComplex},
    {"aten::special_shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_t_cpu",
     kHalf | kComplex},
    {"aten::special_shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_u_cpu",
     kHalf | kComplex},
    {"aten::special_shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_v_cpu",
     kHalf | kComplex},
    {"aten::special_shifted_chebyshev_polynomial_w", "shifted_chebyshev_polynomial_w_cpu",
     kHalf | kComplex},
    {"aten::special_spherical_bessel_j0", "spherical_bessel_j0_cpu", kHalf | kComplex},
    {"aten::special_xlog1py", "xlog1py_cpu", kComplex},
    {"aten::special_zeta", "zeta_cpu", kHalf | kComplex},
    {"aten::tanh_backward", "tanh_backward_cpu", kNotFloat},
    {"aten::threshold", "threshold_cpu", kBool | kComplex},
    {"aten::threshold_backward", "threshold_cpu", kBool | kComplex},
    {"aten::trunc", "trunc_vml_cpu", kBool},
    {"aten::xlogy.Tensor", "xlogy_cpu", kComplex},
};

Lowering guarded(Lowering lower, Refusal refusal) {
  return [lower = std::move(lower), refusal](const Call& call) {
    Values tensors;
    for (const Arg& a : call.args) {
      if (const Value* v = std::get_if<Value>(&a)) tensors.push_back(*v);
      const Scalar* s = std::get_if<Scalar>(&a);
      if (s && refusal.scalars) tensors.push_back(number(*s));
    }
    const DType t = result_type(tensors);
    require_dtype((kind_of(t) & refusal.types) == 0, refusal.kernel, t);
    return lower(call);
  };
}

}  // namespace

void refuse_unsupported_types(Rules& rules) {
  std::unordered_map<std::string_view, const Refusal*> by_op;
  for (const Refusal& r : kRefusals) by_op.emplace(r.op, &r);
  for (Rule& rule : rules) {
    const auto it = by_op.find(rule.name);
    if (it != by_op.end()) rule.lower = guarded(std::move(rule.lower), *it->second);
  }
}

}  // namespace tpu::lower

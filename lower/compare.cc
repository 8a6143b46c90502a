// SPDX-License-Identifier: Apache-2.0
// Comparisons and tests whose result is bool, and assertions of them.
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/math.h"

namespace tpu::lower {
namespace {

template <Value (*op)(Value, Value)>
Value compared(Value a, Value b) {
  const Values v = align_compute({a, b});
  return op(v[0], v[1]);
}

Value computable(Value x) { return hlo::convert(x, ir::compute_type(x.dtype())); }

Value is_nan(Value x) { return hlo::is_nan(computable(x)); }

Value is_inf(Value x) {
  const Value y = computable(x);
  return is_infinite(hlo::real(y)) | is_infinite(hlo::imag(y));
}

Value is_signed_infinity(Value x, double infinity) {
  const Value y = computable(x);
  if (!ir::is_float(y.dtype())) return hlo::full(x.graph(), {DType::kPred, x.dims()}, false);
  return equals(y, infinity);
}
Value is_pos_inf(Value x) { return is_signed_infinity(x, INFINITY); }
Value is_neg_inf(Value x) { return is_signed_infinity(x, -INFINITY); }

// Raises if the one element of x is zero.
Values assert_nonzero(Value x, std::string text) {
  require(x.numel() > 0, "Boolean value of Tensor with no values is ambiguous");
  require(x.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  const Value zero = hlo::reshape(~hlo::convert(x, DType::kPred), {});
  x.graph().check(zero, hlo::convert(zero, DType::kS32),
                  text.empty() ? "Assertion is failed" : text, ir::CheckKind::kRuntime);
  return {};
}
Values assert_nonzero_plain(Value x) {
  return assert_nonzero(x, "Expected Tensor with single nonzero value, but got zero");
}

}  // namespace

Rules compare_rules() {
  const Traits pointwise{.strides = Strides::kPointwise};
  return {
      {"aten::eq.Tensor", compared<hlo::eq>},
      {"aten::ne.Tensor", compared<hlo::ne>},
      {"aten::lt.Tensor", compared<hlo::lt>},
      {"aten::le.Tensor", compared<hlo::le>},
      {"aten::gt.Tensor", compared<hlo::gt>},
      {"aten::ge.Tensor", compared<hlo::ge>},
      {"aten::eq.Scalar", with_number<compared<hlo::eq>>},
      {"aten::ne.Scalar", with_number<compared<hlo::ne>>},
      {"aten::lt.Scalar", with_number<compared<hlo::lt>>},
      {"aten::le.Scalar", with_number<compared<hlo::le>>},
      {"aten::gt.Scalar", with_number<compared<hlo::gt>>},
      {"aten::ge.Scalar", with_number<compared<hlo::ge>>},
      {"aten::isnan", is_nan, pointwise},
      {"aten::isinf", is_inf, pointwise},
      {"aten::isposinf", is_pos_inf},
      {"aten::isneginf", is_neg_inf},
      {"aten::signbit", sign_bit},
      {"aten::_assert_async", assert_nonzero_plain, {.indexes = true}},
      {"aten::_assert_async.msg", assert_nonzero, {.indexes = true}},
  };
}

}  // namespace tpu::lower

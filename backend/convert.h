// SPDX-License-Identifier: Apache-2.0
// Between torch's and the core's vocabulary: dtypes, numbers, types, errors.
#pragma once

#include "backend/torch_headers.h"
#include "core/base/result.h"
#include "core/ir/type.h"
#include "lower/rule.h"

namespace torch_tpu {

std::optional<tpu::ir::DType> dtype_of_or_none(c10::ScalarType t);
// NotImplementedError naming `op` for a dtype no device array has (quantized, complex32...).
tpu::ir::DType dtype_of(c10::ScalarType t, std::string_view op = "tensor");
c10::ScalarType scalar_type_of(tpu::ir::DType t);

tpu::lower::Number number_of(const c10::Scalar& s);
tpu::lower::Scalar::Kind kind_of(const c10::Scalar& s);
// The value of a 0-dim CPU tensor.
c10::Scalar value_of(const at::Tensor& cpu_scalar);

inline tpu::ir::Dims dims_of(c10::IntArrayRef d) { return {d.begin(), d.end()}; }

// Runs `body`, turning tpu::Error into the exception a PyTorch user expects.
[[noreturn]] void rethrow(const tpu::Error& error);
template <class F>
decltype(auto) translating_errors(F&& body) {
  try {
    return body();
  } catch (const tpu::Error& e) {
    rethrow(e);
  }
}

}  // namespace torch_tpu

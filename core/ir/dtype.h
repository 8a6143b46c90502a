// SPDX-License-Identifier: Apache-2.0
// Element types of device arrays. Values are part of on-disk keys: append only.
#pragma once

#include <cstdint>
#include <string_view>

namespace tpu::ir {

enum class DType : uint8_t {
  kPred,
  kS8,
  kS16,
  kS32,
  kS64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF8E4M3FN,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E8M0FNU,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
};
inline constexpr int kDTypeCount = 20;

size_t byte_size(DType t);
bool is_bool(DType t);
bool is_signed_integer(DType t);
bool is_unsigned_integer(DType t);  // not bool
bool is_integer(DType t);           // signed or unsigned, not bool
bool is_float(DType t);             // real floating point, f8 included
bool is_complex(DType t);

// Real part's type of a complex type; any other type is returned as it is.
DType real_of(DType t);
// kC64 for floats up to 32 bits, kC128 for f64; a complex type is returned as it is.
DType complex_of(DType t);
// The type PyTorch's CPU kernels compute in: f32 for f8, f16 and bf16, itself otherwise.
DType compute_type(DType t);

std::string_view mlir_name(DType t);   // "f32", "i1", "ui8", "complex<f32>"
std::string_view short_name(DType t);  // for messages: "f32", "bool", "u8", "c64"

}  // namespace tpu::ir

// SPDX-License-Identifier: Apache-2.0
#include "core/ir/dtype.h"

#include <array>

#include "core/base/error.h"

namespace tpu::ir {
namespace {

enum class Class : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex };

struct Facts {
  std::string_view mlir;
  std::string_view name;
  uint8_t bytes;
  Class kind;
};

constexpr std::array<Facts, kDTypeCount> kFacts{{
    {"i1", "bool", 1, Class::kBool},
    {"i8", "i8", 1, Class::kSigned},
    {"i16", "i16", 2, Class::kSigned},
    {"i32", "i32", 4, Class::kSigned},
    {"i64", "i64", 8, Class::kSigned},
    {"ui8", "u8", 1, Class::kUnsigned},
    {"ui16", "u16", 2, Class::kUnsigned},
    {"ui32", "u32", 4, Class::kUnsigned},
    {"ui64", "u64", 8, Class::kUnsigned},
    {"f8E4M3FN", "f8e4m3fn", 1, Class::kFloat},
    {"f8E5M2", "f8e5m2", 1, Class::kFloat},
    {"f8E4M3FNUZ", "f8e4m3fnuz", 1, Class::kFloat},
    {"f8E5M2FNUZ", "f8e5m2fnuz", 1, Class::kFloat},
    {"f8E8M0FNU", "f8e8m0fnu", 1, Class::kFloat},
    {"f16", "f16", 2, Class::kFloat},
    {"bf16", "bf16", 2, Class::kFloat},
    {"f32", "f32", 4, Class::kFloat},
    {"f64", "f64", 8, Class::kFloat},
    {"complex<f32>", "c64", 8, Class::kComplex},
    {"complex<f64>", "c128", 16, Class::kComplex},
}};

const Facts& facts(DType t) {
  const auto i = static_cast<size_t>(t);
  TPU_CHECK(i < kFacts.size(), "a DType is one of the enumerators");
  return kFacts[i];
}

}  // namespace

size_t byte_size(DType t) { return facts(t).bytes; }
bool is_bool(DType t) { return t == DType::kPred; }
bool is_signed_integer(DType t) { return facts(t).kind == Class::kSigned; }
bool is_unsigned_integer(DType t) { return facts(t).kind == Class::kUnsigned; }
bool is_integer(DType t) { return is_signed_integer(t) || is_unsigned_integer(t); }
bool is_float(DType t) { return facts(t).kind == Class::kFloat; }
bool is_complex(DType t) { return facts(t).kind == Class::kComplex; }

DType real_of(DType t) {
  if (t == DType::kC64) return DType::kF32;
  if (t == DType::kC128) return DType::kF64;
  return t;
}

DType complex_of(DType t) {
  if (is_complex(t)) return t;
  return t == DType::kF64 ? DType::kC128 : DType::kC64;
}

DType compute_type(DType t) { return is_float(t) && byte_size(t) < 4 ? DType::kF32 : t; }

std::string_view mlir_name(DType t) { return facts(t).mlir; }
std::string_view short_name(DType t) { return facts(t).name; }

}  // namespace tpu::ir

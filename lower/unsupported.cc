// SPDX-License-Identifier: Apache-2.0
#include "lower/unsupported.h"

#include <array>

namespace tpu::lower {

std::string_view scalar_type_name(DType t) {
  static constexpr std::array<std::string_view, ir::kDTypeCount> kNames{"Bool",
                                                                        "Char",
                                                                        "Short",
                                                                        "Int",
                                                                        "Long",
                                                                        "Byte",
                                                                        "UInt16",
                                                                        "UInt32",
                                                                        "UInt64",
                                                                        "Float8_e4m3fn",
                                                                        "Float8_e5m2",
                                                                        "Float8_e4m3fnuz",
                                                                        "Float8_e5m2fnuz",
                                                                        "Float8_e8m0fnu",
                                                                        "Half",
                                                                        "BFloat16",
                                                                        "Float",
                                                                        "Double",
                                                                        "ComplexFloat",
                                                                        "ComplexDouble"};
  return kNames[static_cast<size_t>(t)];
}

std::string_view cpp_name(DType t) {
  switch (t) {
    case DType::kPred:
      return "bool";
    case DType::kS8:
      return "signed char";
    case DType::kU8:
      return "unsigned char";
    case DType::kS16:
      return "short";
    case DType::kS32:
      return "int";
    case DType::kS64:
      return "long int";
    case DType::kF16:
      return "c10::Half";
    case DType::kBF16:
      return "c10::BFloat16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kC64:
      return "c10::complex<float>";
    case DType::kC128:
      return "c10::complex<double>";
    default:
      return scalar_type_name(t);
  }
}

void require_dtype(bool supported, std::string_view kernel, DType t) {
  if (supported) return;
  fail(ErrorKind::kNotImplemented, "\"{}\" not implemented for '{}'", kernel, scalar_type_name(t));
}

void require_number(std::string_view kernel, DType t) {
  const bool f8 = ir::is_float(t) && ir::byte_size(t) == 1;
  const bool wide_unsigned = ir::is_unsigned_integer(t) && t != DType::kU8;
  require_dtype(!ir::is_bool(t) && !f8 && !wide_unsigned, kernel, t);
}

void require_float(std::string_view kernel, DType t) {
  require_dtype(ir::is_float(t) && ir::byte_size(t) > 1, kernel, t);
}

}  // namespace tpu::lower

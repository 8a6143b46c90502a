// SPDX-License-Identifier: Apache-2.0
// Which numbers have a value in an element type, as PyTorch's Scalar conversions see it.
#include <cmath>
#include <limits>

#include "lower/rule.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

std::string type_name(DType t) {
  switch (t) {
    case DType::kS8:
      return "int8_t";
    case DType::kU8:
      return "uint8_t";
    case DType::kS16:
      return "int16_t";
    case DType::kU16:
      return "uint16_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kS64:
      return "int64_t";
    case DType::kU64:
      return "uint64_t";
    default:
      break;
  }
  const bool f8 = ir::is_float(t) && ir::byte_size(t) == 1;
  return fmt::format("{}{}", f8 ? "c10::" : "", cpp_name(t));
}

int bits_of(DType t) { return static_cast<int>(ir::byte_size(t)) * 8; }

double least(DType t) {
  if (ir::is_float(t)) return -greatest_finite(t);
  return ir::is_signed_integer(t) ? -std::ldexp(1.0, bits_of(t) - 1) : 0.0;
}

bool overflows_real(double d, DType t) {
  if (ir::is_float(t) && std::isinf(d)) return false;
  if (!ir::is_float(t) && std::isnan(d)) return true;
  return d < least(t) || d > greatest_finite(t);
}

// A negative integer wraps in an unsigned type of its size.
bool overflows_integer(int64_t i, DType t) {
  if (ir::is_float(t)) return overflows_real(static_cast<double>(i), t);
  if (ir::byte_size(t) == 8) return false;
  const int64_t top = static_cast<int64_t>(greatest_finite(t));
  return i > top || i < (ir::is_signed_integer(t) ? -top - 1 : -top);
}

bool overflows(const Number& n, DType t) {
  if (ir::is_bool(t)) return false;
  if (const auto* i = std::get_if<int64_t>(&n)) return overflows_integer(*i, ir::real_of(t));
  if (const auto* d = std::get_if<double>(&n)) return overflows_real(*d, ir::real_of(t));
  const auto* z = std::get_if<std::complex<double>>(&n);
  if (!z) return false;
  if (!ir::is_complex(t)) return z->imag() != 0 || overflows_real(z->real(), t);
  return overflows_real(z->real(), ir::real_of(t)) || overflows_real(z->imag(), ir::real_of(t));
}

}  // namespace

double greatest_finite(DType t) {
  switch (t) {
    case DType::kF8E4M3FN:
      return 448;
    case DType::kF8E4M3FNUZ:
      return 240;
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return 57344;
    case DType::kF8E8M0FNU:
      return 0x1p127;
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.FEp127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kF64:
      return std::numeric_limits<double>::max();
    default:
      break;
  }
  return std::ldexp(1.0, bits_of(t) - (ir::is_signed_integer(t) ? 1 : 0)) - 1;
}

void require_fits(const Number& n, DType t) {
  require(!overflows(n, t), "value cannot be converted to type {} without overflow", type_name(t));
}

}  // namespace tpu::lower

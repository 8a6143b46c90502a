// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/hlo/attributes.h"
#include "core/hlo/elementwise.h"
#include "core/hlo/shape.h"

namespace tpu::hlo {
namespace {

// Bit patterns of a floating point type's special values. A type without infinities has its
// largest finite values there.
struct FloatLimits {
  uint64_t nan;
  uint64_t lowest;
  uint64_t highest;
};

FloatLimits float_limits(DType t) {
  switch (t) {
    case DType::kF8E4M3FN:
      return {0x7F, 0xFE, 0x7E};
    case DType::kF8E5M2:
      return {0x7F, 0xFC, 0x7C};
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
      return {0x80, 0xFF, 0x7F};
    case DType::kF8E8M0FNU:
      return {0xFF, 0x00, 0xFE};
    case DType::kF16:
      return {0x7E00, 0xFC00, 0x7C00};
    case DType::kBF16:
      return {0x7FC0, 0xFF80, 0x7F80};
    case DType::kF64:
      return {0x7FF8000000000000, 0xFFF0000000000000, 0x7FF0000000000000};
    default:
      TPU_CHECK(t == DType::kF32, "only floating point types have these limits");
      return {0x7FC00000, 0xFF800000, 0x7F800000};
  }
}

std::string hex_text(uint64_t bits, DType t) {
  return fmt::format("0x{:0{}X}", bits, byte_size(t) * 2);
}

bool overflows(double v, DType t) {
  if (t == DType::kF16) return std::fabs(v) >= 65520.0;
  // Halfway between the greatest bf16 and the next power of two.
  return t == DType::kBF16 && std::fabs(v) >= 0x1.FFp127;
}

std::string float_text(double v, DType t) {
  const FloatLimits limits = float_limits(t);
  if (std::isnan(v)) return hex_text(limits.nan, t);
  if (std::isinf(v) || overflows(v, t)) {
    return hex_text(std::signbit(v) ? limits.lowest : limits.highest, t);
  }
  // Shortest digits that give the value back; MLIR wants a decimal point.
  std::string text = fmt::format("{}", v);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

// PyTorch stores numbers of up to 32 bits by way of float.
double rounded(double v, DType t) { return t == DType::kF64 ? v : static_cast<float>(v); }
double rounded(int64_t v, DType t) {
  return t == DType::kF64 ? static_cast<double>(v) : static_cast<float>(v);
}

std::string integer_text(int64_t v, DType t) {
  const int unused = 64 - static_cast<int>(byte_size(t)) * 8;
  const uint64_t top = static_cast<uint64_t>(v) << unused;
  return is_signed_integer(t) ? fmt::format("{}", static_cast<int64_t>(top) >> unused)
                              : fmt::format("{}", top >> unused);
}

int64_t truncated(double v) {
  if (v >= 0x1p63 && v < 0x1p64) {
    return static_cast<int64_t>(static_cast<uint64_t>(v));
  }
  return v >= -0x1p63 && v < 0x1p63 ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
}

std::string element_text(bool v, DType t);
std::string element_text(int64_t v, DType t);
std::string element_text(double v, DType t);
std::string element_text(std::complex<double> v, DType t);

std::string pair_text(const std::string& re, const std::string& im) {
  return fmt::format("({}, {})", re, im);
}

std::string element_text(int64_t v, DType t) {
  if (is_bool(t)) return std::string(bool_text(v != 0));
  if (is_integer(t)) return integer_text(v, t);
  if (is_complex(t)) return pair_text(element_text(v, real_of(t)), "0.0");
  return float_text(rounded(v, t), t);
}

std::string element_text(bool v, DType t) { return element_text(int64_t{v}, t); }

std::string element_text(double v, DType t) {
  if (is_bool(t)) return std::string(bool_text(v != 0));
  if (is_integer(t)) return integer_text(truncated(v), t);
  if (is_complex(t)) return pair_text(element_text(v, real_of(t)), "0.0");
  return float_text(rounded(v, t), t);
}

std::string element_text(std::complex<double> v, DType t) {
  if (is_bool(t)) return std::string(bool_text(v != 0.0));
  if (!is_complex(t)) return element_text(v.real(), t);
  const DType part = real_of(t);
  return pair_text(element_text(v.real(), part), element_text(v.imag(), part));
}

Value dense(Graph& graph, const Type& type, const std::string& elements) {
  return graph.node1({.op = "stablehlo.constant",
                      .inputs = {},
                      .results = {type},
                      .attributes = fmt::format("value = dense<{}> : {}", elements, type.mlir())});
}

bool is_f8(DType t) { return is_float(t) && byte_size(t) == 1; }

Value from_bits(Graph& graph, DType t, uint64_t bits) {
  return dense(graph, {t, {}}, hex_text(bits, t));
}

Value integer_extreme(Graph& graph, DType t, bool greatest) {
  const int width = static_cast<int>(byte_size(t)) * 8;
  if (is_bool(t)) return constant(graph, t, greatest);
  if (is_unsigned_integer(t)) return constant(graph, t, greatest ? int64_t{-1} : int64_t{0});
  const int64_t high = std::numeric_limits<int64_t>::max() >> (64 - width);
  return constant(graph, t, greatest ? high : -high - 1);
}

template <class T>
Value dense_array(Graph& graph, const Dims& dims, std::span<const T> values, DType t) {
  TPU_CHECK(static_cast<int64_t>(values.size()) == ir::element_count(dims),
            "one value per element");
  if (is_f8(t)) return convert(dense_array(graph, dims, values, DType::kF32), t);
  std::string elements;
  for (const T v : values) {
    if (!elements.empty()) elements += ", ";
    elements += element_text(v, t);
  }
  if (!values.empty()) elements = "[" + elements + "]";
  return reshape(dense(graph, {t, {static_cast<int64_t>(values.size())}}, elements), dims);
}

}  // namespace

Value constant(Graph& graph, DType t, Literal value) {
  // The compiler's own rounding into the 8-bit types, as convert() would do it.
  if (is_f8(t)) return convert(constant(graph, DType::kF32, value), t);
  return dense(graph, {t, {}}, std::visit([&](auto v) { return element_text(v, t); }, value));
}

Value full(Graph& graph, const Type& type, Literal value) {
  return broadcast_to(constant(graph, type.dtype, value), type.dims);
}

Value full_like(Value x, Literal value) { return full(x.graph(), x.type(), value); }

Value constant_array(Graph& graph, const Dims& dims, std::span<const int64_t> values, DType t) {
  return dense_array(graph, dims, values, t);
}

Value constant_array(Graph& graph, const Dims& dims, std::span<const double> values, DType t) {
  return dense_array(graph, dims, values, t);
}

Value lowest(Graph& graph, DType t) {
  TPU_CHECK(!is_complex(t), "complex numbers have no order");
  if (is_float(t)) return from_bits(graph, t, float_limits(t).lowest);
  return integer_extreme(graph, t, false);
}

Value highest(Graph& graph, DType t) {
  TPU_CHECK(!is_complex(t), "complex numbers have no order");
  if (is_float(t)) return from_bits(graph, t, float_limits(t).highest);
  return integer_extreme(graph, t, true);
}

Value nan_like(Value x) {
  const DType t = x.dtype();
  if (is_float(t)) {
    return broadcast_to(from_bits(x.graph(), t, float_limits(t).nan), x.dims());
  }
  TPU_CHECK(is_complex(t), "only floating point and complex types have NaN");
  return full_like(x, std::complex<double>(NAN, NAN));
}

}  // namespace tpu::hlo

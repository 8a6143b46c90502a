// SPDX-License-Identifier: Apache-2.0
#include "backend/convert.h"

namespace torch_tpu {

using tpu::ir::DType;

namespace {

struct Pair {
  c10::ScalarType torch;
  DType core;
};
constexpr Pair kPairs[] = {
    {c10::ScalarType::Bool, DType::kPred},
    {c10::ScalarType::Char, DType::kS8},
    {c10::ScalarType::Short, DType::kS16},
    {c10::ScalarType::Int, DType::kS32},
    {c10::ScalarType::Long, DType::kS64},
    {c10::ScalarType::Byte, DType::kU8},
    {c10::ScalarType::UInt16, DType::kU16},
    {c10::ScalarType::UInt32, DType::kU32},
    {c10::ScalarType::UInt64, DType::kU64},
    {c10::ScalarType::Float8_e4m3fn, DType::kF8E4M3FN},
    {c10::ScalarType::Float8_e5m2, DType::kF8E5M2},
    {c10::ScalarType::Float8_e4m3fnuz, DType::kF8E4M3FNUZ},
    {c10::ScalarType::Float8_e5m2fnuz, DType::kF8E5M2FNUZ},
    {c10::ScalarType::Float8_e8m0fnu, DType::kF8E8M0FNU},
    {c10::ScalarType::Half, DType::kF16},
    {c10::ScalarType::BFloat16, DType::kBF16},
    {c10::ScalarType::Float, DType::kF32},
    {c10::ScalarType::Double, DType::kF64},
    {c10::ScalarType::ComplexFloat, DType::kC64},
    {c10::ScalarType::ComplexDouble, DType::kC128},
};

constexpr size_t kNone = 255;

// Index by ScalarType: this runs for every tensor of every call.
constexpr auto kByTorch = [] {
  std::array<uint8_t, static_cast<size_t>(c10::ScalarType::NumOptions)> table{};
  table.fill(kNone);
  for (const Pair& p : kPairs) {
    table[static_cast<size_t>(p.torch)] = static_cast<uint8_t>(p.core);
  }
  return table;
}();

}  // namespace

std::optional<DType> dtype_of_or_none(c10::ScalarType t) {
  const auto i = static_cast<size_t>(t);
  if (i >= kByTorch.size() || kByTorch[i] == kNone) return std::nullopt;
  return static_cast<DType>(kByTorch[i]);
}

DType dtype_of(c10::ScalarType t, std::string_view op) {
  const auto d = dtype_of_or_none(t);
  TORCH_CHECK_NOT_IMPLEMENTED(d, op, ": dtype ", c10::toString(t),
                              " is not supported on tpu. Convert the tensor first, for example "
                              "with .to(torch.float32).");
  return *d;
}

c10::ScalarType scalar_type_of(DType t) {
  for (const Pair& p : kPairs) {
    if (p.core == t) return p.torch;
  }
  TORCH_INTERNAL_ASSERT(false, "every device dtype has a torch dtype");
}

tpu::lower::Scalar::Kind kind_of(const c10::Scalar& s) {
  using Kind = tpu::lower::Scalar::Kind;
  if (s.isBoolean()) return Kind::kBool;
  if (s.isComplex()) return Kind::kComplex;
  return s.isFloatingPoint() ? Kind::kFloat : Kind::kInt;
}

tpu::lower::Number number_of(const c10::Scalar& s) {
  switch (kind_of(s)) {
    case tpu::lower::Scalar::Kind::kBool:
      return s.to<bool>();
    case tpu::lower::Scalar::Kind::kComplex: {
      const auto c = s.to<c10::complex<double>>();
      return std::complex<double>(c.real(), c.imag());
    }
    case tpu::lower::Scalar::Kind::kFloat:
      return s.to<double>();
    case tpu::lower::Scalar::Kind::kInt:
      break;
  }
  if (s.type() == c10::ScalarType::UInt64 &&
      s.toUInt64() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return static_cast<double>(s.toUInt64());
  }
  return s.to<int64_t>();
}

c10::Scalar value_of(const at::Tensor& cpu_scalar) { return at::_local_scalar_dense(cpu_scalar); }

void rethrow(const tpu::Error& error) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  switch (error.kind()) {
    case tpu::ErrorKind::kIndex:
      throw c10::IndexError(here, error.what());
    case tpu::ErrorKind::kValue:
      throw c10::ValueError(here, error.what());
    case tpu::ErrorKind::kType:
      throw c10::TypeError(here, error.what());
    case tpu::ErrorKind::kNotImplemented:
      throw c10::NotImplementedError(here, error.what());
    case tpu::ErrorKind::kOutOfMemory:
      throw c10::OutOfMemoryError(here, error.what());
    case tpu::ErrorKind::kLinAlg:
      throw c10::LinAlgError(here, error.what());
    case tpu::ErrorKind::kRuntime:
      break;
  }
  throw c10::Error(here, error.what());
}

}  // namespace torch_tpu

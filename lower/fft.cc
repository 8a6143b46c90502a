// SPDX-License-Identifier: Apache-2.0
// Fourier transforms over any axes. XLA transforms up to three trailing axes at a time.
#include <algorithm>

#include "core/hlo/contract.h"
#include "lower/families.h"
#include "lower/math.h"

namespace tpu::lower {
namespace {

constexpr size_t kMaxAxes = 3;

// PyTorch's normalization codes: 0 none, 1 by the square root of the length, 2 by the length.
double factor(int64_t normalization, int64_t length) {
  if (normalization == 0 || length == 0) return 1.0;
  const auto n = static_cast<double>(length);
  return 1.0 / (normalization == 1 ? std::sqrt(n) : n);
}

int64_t length_over(const Dims& dims, const Dims& axes) {
  int64_t n = 1;
  for (const int64_t a : axes) n *= dims[static_cast<size_t>(a)];
  return n;
}

Value scaled(Value x, double by) {
  if (by == 1.0) return x;
  if (!ir::is_complex(x.dtype())) return x * by;
  const Value f = hlo::full(x.graph(), {ir::real_of(x.dtype()), x.dims()}, by);
  return hlo::complex(hlo::real(x) * f, hlo::imag(x) * f);
}

// The axes moved to the end, in order, and back.
Dims moved_last(int64_t rank, const Dims& axes) {
  Dims order;
  for (int64_t a = 0; a < rank; ++a) {
    if (std::find(axes.begin(), axes.end(), a) == axes.end()) order.push_back(a);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  return order;
}

Dims inverse(const Dims& permutation) {
  Dims out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    out[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  return out;
}

Value transform(Value x, hlo::FftKind kind, const Dims& axes, const Dims& lengths) {
  const Dims order = moved_last(x.rank(), axes);
  return hlo::transpose(hlo::fft(hlo::transpose(x, order), kind, lengths), inverse(order));
}

// Complex to complex over all axes, without scaling.
Value complex_transform(Value x, const Dims& axes, bool forward) {
  const auto kind = forward ? hlo::FftKind::kFft : hlo::FftKind::kIfft;
  for (size_t start = 0; start < axes.size(); start += kMaxAxes) {
    const auto begin = axes.begin() + static_cast<std::ptrdiff_t>(start);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kMaxAxes, axes.size() - start));
    const Dims some(begin, begin + count);
    x = transform(x, kind, some, permuted(x.dims(), some));
  }
  // The inverse kind divides by the length.
  return forward ? x : scaled(x, static_cast<double>(length_over(x.dims(), axes)));
}

Value c2c(Value x, Dims axes, int64_t normalization, bool forward) {
  axes = wrap_axes(axes, x.rank());
  return scaled(complex_transform(x, axes, forward),
                factor(normalization, length_over(x.dims(), axes)));
}

// The whole spectrum of a real signal along `axis` from its first half: the rest is the conjugate,
// mirrored along every transformed axis.
Value mirrored(Value half, int64_t axis, int64_t length, const Dims& axes) {
  const int64_t have = half.dim(axis);
  if (have == length) return half;
  Value rest = hlo::slice_axis(half, axis, 1, length - have + 1);
  rest = hlo::reverse(rest, {axis});
  for (const int64_t a : axes) {
    const int64_t n = rest.dim(a);
    if (a == axis || n < 2) continue;
    const Value tail = hlo::reverse(hlo::slice_axis(rest, a, 1, n), {a});
    rest = hlo::concatenate({hlo::slice_axis(rest, a, 0, 1), tail}, a);
  }
  const Value conjugate = hlo::complex(hlo::real(rest), hlo::neg(hlo::imag(rest)));
  return hlo::concatenate({half, conjugate}, axis);
}

Value r2c(Value x, Dims axes, int64_t normalization, bool onesided) {
  axes = wrap_axes(axes, x.rank());
  const int64_t last = axes.back();
  const int64_t length = x.dim(last);
  const double by = factor(normalization, length_over(x.dims(), axes));
  Value y = transform(x, hlo::FftKind::kRfft, {last}, {length});
  y = complex_transform(y, Dims(axes.begin(), axes.end() - 1), true);
  if (!onesided) y = mirrored(y, last, length, axes);
  return scaled(y, by);
}

Value c2r(Value x, Dims axes, int64_t normalization, int64_t last_size) {
  axes = wrap_axes(axes, x.rank());
  const int64_t last = axes.back();
  const Value inner = complex_transform(x, Dims(axes.begin(), axes.end() - 1), false);
  const int64_t half = last_size / 2 + 1;
  const Value used = hlo::slice_axis(inner, last, 0, std::min(half, inner.dim(last)));
  const Value y = transform(used, hlo::FftKind::kIrfft, {last}, {last_size});
  Dims dims = x.dims();
  dims[static_cast<size_t>(last)] = last_size;
  const double by = factor(normalization, length_over(dims, axes));
  return scaled(y, by * static_cast<double>(last_size));
}

}  // namespace

Rules fft_rules() {
  return {
      {"aten::_fft_c2c", c2c},
      {"aten::_fft_r2c", r2c},
      {"aten::_fft_c2r", c2r},
  };
}

}  // namespace tpu::lower

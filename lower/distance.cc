// SPDX-License-Identifier: Apache-2.0
// Distances between rows in the p-norm, with gradients.
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/matmul.h"
#include "lower/reduction.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// PyTorch multiplies matrices for Euclidean distances of more rows than this.
constexpr int64_t kManyRows = 25;

struct Pairs {
  Value a, b;  // [..., p, m] and [..., r, m] with equal batch dims
  int64_t p() const { return a.dim(a.rank() - 2); }
  int64_t r() const { return b.dim(b.rank() - 2); }
  int64_t axis() const { return a.rank(); }  // of m in difference()
  Dims result() const {
    Dims dims = a.dims();
    dims.back() = r();
    return dims;
  }
};

Pairs pairs_of(Value x1, Value x2) {
  const auto batch = [](Value x) {
    Dims dims(x.dims().begin(), x.dims().end() - 2);
    return hlo::full(x.graph(), {DType::kPred, dims}, false);
  };
  const Dims lead = broadcast_dims(Values{batch(x1), batch(x2)});
  const auto whole = [&lead](Value x) {
    Dims dims = lead;
    dims.insert(dims.end(), x.dims().end() - 2, x.dims().end());
    return hlo::broadcast_to(x, dims);
  };
  return {whole(x1), whole(x2)};
}

// [..., p, r, m]
Value difference(const Pairs& v) {
  Dims dims = v.result();
  dims.push_back(v.a.dim(v.a.rank() - 1));
  Dims left = all_axes(v.a.rank());
  Dims right = left;
  left.back() = right.back() = v.axis();
  right[right.size() - 2] = v.axis() - 1;
  return hlo::broadcast_in_dim(v.a, dims, left) - hlo::broadcast_in_dim(v.b, dims, right);
}

Value norm(Value d, int64_t axis, double p) {
  const Value size = hlo::abs(d);
  if (p == 0) return sum_over(hlo::convert(differs(d, 0.0), d.dtype()), {axis});
  if (p == 1) return sum_over(size, {axis});
  if (p == 2) return hlo::sqrt(sum_over(d * d, {axis}));
  if (std::isinf(p)) return max(max_over(size, {axis}), 0.0);
  const Value sum = sum_over(hlo::pow(size, hlo::full_like(size, p)), {axis});
  return hlo::pow(sum, hlo::full_like(sum, 1.0 / p));
}

Value euclidean_by_product(const Pairs& v) {
  const int64_t m = v.a.rank() - 1;
  const Value a2 = sum_over(v.a * v.a, {m});
  const Value b2 = sum_over(v.b * v.b, {m});
  Dims b_axes = all_axes(m);
  b_axes.back() = m;
  const Value sum = hlo::broadcast_in_dim(a2, v.result(), all_axes(m)) +
                    hlo::broadcast_in_dim(b2, v.result(), b_axes);
  return hlo::sqrt(max(sum - wide_matmul_transposed(v.a, v.b) * 2.0, 0.0));
}

Value cdist(Value x1, Value x2, double p, std::optional<int64_t> mode) {
  require(x1.rank() >= 2, "cdist only supports at least 2D tensors, X1 got: {}D", x1.rank());
  require(x2.rank() >= 2, "cdist only supports at least 2D tensors, X2 got: {}D", x2.rank());
  const int64_t columns = x1.dim(x1.rank() - 1);
  require(columns == x2.dim(x2.rank() - 1),
          "X1 and X2 must have the same number of columns. X1: {} X2: {}", columns,
          x2.dim(x2.rank() - 1));
  require(p >= 0, "cdist only supports non-negative p values");
  require(x1.dtype() == x2.dtype(), "expected scalar type {} but found {}",
          scalar_type_name(x1.dtype()), scalar_type_name(x2.dtype()));
  require_dtype(x1.dtype() == DType::kF32 || x1.dtype() == DType::kF64, "cdist", x1.dtype());
  const int64_t how = mode.value_or(0);
  require(how >= 0 && how <= 2, "possible modes: 0, 1, 2, but was: {}", how);
  const Pairs v = pairs_of(x1, x2);
  if (columns == 0) return hlo::full(x1.graph(), {x1.dtype(), v.result()}, int64_t{0});
  const bool many = v.p() > kManyRows || v.r() > kManyRows;
  if (p == 2 && (how == 1 || (how == 0 && many))) return euclidean_by_product(v);
  return norm(difference(v), v.axis(), p);
}

// The derivative of the distance by each difference, times the gradient; all of d's dims.
Value slope(Value d, Value gradient, Value distance, double p) {
  const Value zero = hlo::full_like(d, int64_t{0});
  if (p == 0) return zero;
  if (p == 1) return hlo::sign(d) * gradient;
  const Value none = equals(distance, 0.0);
  if (p == 2) return where(none, zero, gradient * d / distance);
  const Value size = hlo::abs(d);
  if (std::isinf(p)) return where(hlo::eq(size, distance), gradient * hlo::sign(d), zero);
  const Value power = hlo::full_like(d, p - 1);
  const Value value = hlo::sign(d) * hlo::pow(size, power) * gradient / hlo::pow(distance, power);
  return where(p < 1 ? none | equals(d, 0.0) : none, zero, value);
}

Value pair_gradient(Value gradient, const Pairs& v, double p, Value distance) {
  const Value d = difference(v);
  const Value by_difference =
      slope(d, spread(gradient, d.dims(), {v.axis()}), spread(distance, d.dims(), {v.axis()}), p);
  return sum_over(by_difference, {v.axis() - 1});
}

Value cdist_backward(Value gradient, Value x1, Value x2, double p, Value distance) {
  const Pairs v = pairs_of(x1, x2);
  if (v.a.numel() == 0 || v.b.numel() == 0) return hlo::full_like(x1, int64_t{0});
  return pair_gradient(gradient, v, p, distance);
}

// The position in the condensed vector at which row i's pairs start.
Value start_of(Value i, int64_t n) {
  return hlo::div(i * (static_cast<double>(2 * n - 1) - i), hlo::full_like(i, int64_t{2}));
}

// Flat positions i * n + j of the pairs i < j in order.
Value pair_positions(Graph& graph, int64_t n) {
  const Value k = hlo::iota(graph, {DType::kS64, {n * (n - 1) / 2}}, 0);
  const double b = static_cast<double>(2 * n - 1);
  const Value root = hlo::sqrt(b * b - hlo::convert(k, DType::kF32) * 8.0);
  // The estimate is off by a few rows at most, where f32 rounds.
  Value i = hlo::convert((b - root) * 0.5, DType::kS64);
  for (int step = 0; step < 4; ++step) {
    i = i - hlo::convert(start_of(i, n) > k, DType::kS64);
  }
  for (int step = 0; step < 4; ++step) {
    i = i + hlo::convert(start_of(i + 1.0, n) <= k, DType::kS64);
  }
  const Value j = k - start_of(i, n) + i + 1.0;
  return i * static_cast<double>(n) + j;
}

Value pdist(Value x, double p) {
  require(x.rank() == 2, "pdist only supports 2D tensors, got: {}D", x.rank());
  require(p >= 0, "pdist only supports non-negative p values");
  require_dtype(x.dtype() == DType::kF32 || x.dtype() == DType::kF64, "pdist", x.dtype());
  const int64_t n = x.dim(0);
  if (n <= 1) return hlo::full(x.graph(), {x.dtype(), {0}}, int64_t{0});
  const Dims dims{n * (n - 1) / 2};
  if (x.dim(1) == 0) return hlo::full(x.graph(), {x.dtype(), dims}, int64_t{0});
  const Value all = norm(difference({x, x}), 2, p);
  return hlo::take(hlo::reshape(all, {n * n}), pair_positions(x.graph(), n), 0);
}

// A condensed vector as a symmetric matrix with zeros on the diagonal.
Value square(Value condensed, int64_t n) {
  const Type type{DType::kS64, {n, n}};
  const Value row = hlo::iota(condensed.graph(), type, 0);
  const Value column = hlo::iota(condensed.graph(), type, 1);
  const Value low = hlo::min(row, column);
  const Value at = start_of(low, n) + hlo::max(row, column) - low - 1.0;
  const Value values = hlo::take(condensed, max(at, 0.0), 0);
  return where(hlo::eq(row, column), 0.0, values);
}

Value pdist_backward(Value gradient, Value self, double p, Value distance) {
  const int64_t n = self.dim(0);
  if (n <= 1 || self.dim(1) == 0) return hlo::full_like(self, int64_t{0});
  return pair_gradient(square(gradient, n), {self, self}, p, square(distance, n));
}

}  // namespace

Rules distance_rules() {
  const Traits traits{.reduction = true};
  return {
      {"aten::_cdist_forward", cdist, traits},
      {"aten::_cdist_backward", cdist_backward, traits},
      {"aten::_pdist_forward", pdist, traits},
      {"aten::_pdist_backward", pdist_backward, traits},
  };
}

}  // namespace tpu::lower

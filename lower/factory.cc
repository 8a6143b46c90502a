// SPDX-License-Identifier: Apache-2.0
// New values: fills, copies, ranges, and complex numbers out of their parts. The remaining factory
// functions (full, ones_like, scalar_tensor, ...) are PyTorch's composites over fill_ and zero_.
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// Of one element the CPU converts by way of float, without looking, what is narrower.
Value fill_scalar(Value self, Scalar value) {
  const bool narrow = ir::is_float(self.dtype()) && ir::byte_size(self.dtype()) < 4;
  return self.numel() == 1 && narrow ? value.like(self) : value.exact_like(self);
}

Value fill_tensor(Value self, Value value) {
  require(value.rank() == 0,
          "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
          value.rank());
  return hlo::broadcast_to(hlo::convert(value, self.dtype()), self.dims());
}

Value zero(Value self) { return hlo::full_like(self, int64_t{0}); }

Value copy(Value self, Value source) {
  return hlo::broadcast_to(hlo::convert(source, self.dtype()), self.dims());
}

Value clone(Value self) { return self; }

void require_parts(Value a, Value b) {
  const auto fits = [](Value v) {
    return v.dtype() == DType::kF32 || v.dtype() == DType::kF64 || v.dtype() == DType::kF16;
  };
  require(fits(a) && fits(b),
          "Expected both inputs to be Half, Float or Double tensors but got {} "
          "and {}",
          scalar_type_name(a.dtype()), scalar_type_name(b.dtype()));
  require(a.dtype() == b.dtype(),
          "Expected object of scalar type {} but got scalar type {} for second argument",
          scalar_type_name(a.dtype()), scalar_type_name(b.dtype()));
  require_dtype(a.dtype() != DType::kF16, "complex", DType::kF16);
}

Value complex(Value real, Value imaginary) {
  require_parts(real, imaginary);
  const Values v = align({real, imaginary});
  return hlo::complex(v[0], v[1]);
}

Value polar(Value radius, Value angle) {
  require_parts(radius, angle);
  const Values v = align({radius, angle});
  return hlo::complex(v[0] * hlo::cos(v[1]), v[0] * hlo::sin(v[1]));
}

bool is_int(const Scalar& s) { return s.kind() <= Scalar::Kind::kInt; }

// start, start + step, ... as the CPU computes them: integers in s64, f32 by way of f64.
Value progression(const Scalar& start, const Scalar& step, int64_t size, DType t) {
  DType c = ir::compute_type(t);
  if (ir::is_integer(t)) c = DType::kS64;
  const bool inexact = !is_int(start) || !is_int(step);
  if (t == DType::kF32 && inexact) c = DType::kF64;
  const Value i = hlo::iota(start.graph(), {c, {size}}, 0);
  return hlo::convert(start.like(i) + step.like(i) * i, t);
}

struct Interval {
  double start, end, step;
};
Interval checked_interval(std::span<const Number> n) {
  const Interval r{to_double(n[0]), to_double(n[1]), n.size() > 2 ? to_double(n[2]) : 1};
  require(r.step != 0, "step must be nonzero");
  require(std::isfinite(r.start) && std::isfinite(r.end), "unsupported range: {} -> {}", r.start,
          r.end);
  require(r.step > 0 ? r.end >= r.start : r.end <= r.start,
          "upper bound and lower bound inconsistent with step sign");
  return r;
}

void require_range_type(const char* kernel, DType t) {
  const bool real = ir::is_float(t) && ir::byte_size(t) > 1;
  const bool wide_unsigned = ir::is_unsigned_integer(t) && t != DType::kU8;
  require_dtype(real || (ir::is_integer(t) && !wide_unsigned), kernel, t);
}

// The type in which the CPU's kernels read the numbers of a range.
DType number_type(DType t) { return ir::is_integer(t) ? DType::kS64 : ir::compute_type(t); }

int64_t arange_size(std::span<const Number> n, DType t) {
  require_range_type("arange_cpu", t);
  for (const Number& bound : n) require_fits(bound, DType::kF64);
  for (const Number& bound : n) require_fits(bound, number_type(t));
  const Interval r = checked_interval(n);
  if (t != DType::kS64) return static_cast<int64_t>(std::ceil((r.end - r.start) / r.step));
  const int64_t by = to_int(n[2]);
  if (by == 0) fail(ErrorKind::kValue, "step must be nonzero");
  return (to_int(n[1]) - to_int(n[0]) + by - (by > 0 ? 1 : -1)) / by;
}

// Includes its end.
int64_t range_size(std::span<const Number> n, DType t) {
  require_range_type("range_cpu", t);
  for (const Number& bound : n) require_fits(bound, DType::kF64);
  const Interval r = checked_interval(n);
  return static_cast<int64_t>(std::floor((r.end - r.start) / r.step)) + 1;
}

Value arange(Extent extent, Scalar start, Scalar, Scalar step, DType t) {
  return progression(start, step, extent.size, t);
}
Value range_unit(Extent extent, Scalar start, Scalar, DType t) {
  return progression(start, Scalar(start.graph(), int64_t{1}), extent.size, t);
}

// The type of points between two numbers, which must hold a complex end.
DType interval_type(const char* op, const Scalar& start, const Scalar& end,
                    std::optional<DType> dtype) {
  const bool complex_end =
      start.kind() == Scalar::Kind::kComplex || end.kind() == Scalar::Kind::kComplex;
  if (!complex_end) return dtype.value_or(DType::kF32);
  require(!dtype || ir::is_complex(*dtype),
          "torch.{}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype {}",
          op, scalar_type_name(dtype.value_or(DType::kC64)));
  return dtype.value_or(DType::kC64);
}

// Counted from both ends, so that the last point is the end itself.
Value even_points(const Scalar& start, const Scalar& end, int64_t steps, DType c) {
  require(steps >= 0, "number of steps must be non-negative");
  Graph& graph = start.graph();
  const Value first = hlo::broadcast_to(start.as(c), {steps});
  if (steps <= 1) return first;
  const Value last = hlo::broadcast_to(end.as(c), {steps});
  const Value i = hlo::iota(graph, {DType::kS64, {steps}}, 0);
  const Value from_end = hlo::full_like(i, steps - 1) - i;
  const Value step = (last - first) / static_cast<double>(steps - 1);
  const int64_t half = steps / 2;
  return where(i < half, first + step * hlo::convert(i, c),
               last - step * hlo::convert(from_end, c));
}

Value linspace(Graph&, Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype) {
  const DType t = interval_type("linspace", start, end, dtype);
  require_dtype(!ir::is_bool(t), "linspace_cpu", t);
  start.require_fits(t);
  end.require_fits(t);
  const DType c = ir::is_integer(t) ? DType::kF64 : ir::compute_type(t);
  return hlo::convert(even_points(start, end, steps, c), t);
}

Value logspace(Graph&, Scalar start, Scalar end, int64_t steps, Scalar base,
               std::optional<DType> dtype) {
  const DType t = interval_type("logspace", start, end, dtype);
  require_dtype(!ir::is_bool(t), "logspace_cpu", t);
  const DType c = ir::is_complex(t) ? t : DType::kF64;
  const Value exponents = even_points(start, end, steps, c);
  return hlo::convert(hlo::pow(base.like(exponents), exponents), t);
}

Value eye(Graph& graph, int64_t rows, int64_t columns, std::optional<DType> dtype) {
  require(rows >= 0, "n must be greater or equal to 0, got {}", rows);
  require(columns >= 0, "m must be greater or equal to 0, got {}", columns);
  const Type type{DType::kS32, {rows, columns}};
  const Value diagonal = hlo::eq(hlo::iota(graph, type, 0), hlo::iota(graph, type, 1));
  return hlo::convert(diagonal, dtype.value_or(DType::kF32));
}
Value eye_square(Graph& graph, int64_t n, std::optional<DType> dtype) {
  return eye(graph, n, n, dtype);
}

// The lower triangle of rows x columns up to diagonal `offset`, listed row by row: from
// `first_row` on, `growing` rows of first_length, first_length + 1, ... places, then full rows.
struct LowerTriangle {
  int64_t columns, first_row, first_length, growing, growing_places, size;
};

LowerTriangle lower_triangle(int64_t rows, int64_t columns, int64_t offset) {
  require(rows >= 0, "row must be non-negative, got{}", rows);
  require(columns >= 0, "col must be non-negative, got{}", columns);
  LowerTriangle t{columns, std::max<int64_t>(0, -offset), 0, 0, 0, 0};
  if (t.first_row >= rows || columns == 0) return t;
  t.first_length = std::min(columns, t.first_row + 1 + offset);
  t.growing = std::min(rows - t.first_row, columns - t.first_length);
  t.growing_places = t.growing * t.first_length + t.growing * (t.growing - 1) / 2;
  t.size = t.growing_places + (rows - t.first_row - t.growing) * columns;
  return t;
}

// Rows and columns of places `k` (s64).
std::pair<Value, Value> positions(const LowerTriangle& t, Value k) {
  const auto length = static_cast<double>(t.first_length);
  const auto before = [&](Value row) { return row * length + row * (row - 1) / 2; };
  const double b = 2 * length - 1;
  // The inverse of before(), one off at most for the rounding of the root.
  const Value root = hlo::sqrt(8 * hlo::convert(k, DType::kF64) + b * b);
  Value row = hlo::convert((root - b) / 2, DType::kS64);
  row = where(before(row) > k, row - 1, row);
  row = where(before(row + 1) <= k, row + 1, row);
  const Value rest = k - static_cast<double>(t.growing_places);
  const Value full = rest >= 0.0;
  const auto width = static_cast<double>(std::max<int64_t>(t.columns, 1));
  const Value full_row = rest / width + static_cast<double>(t.growing);
  return {where(full, full_row, row) + static_cast<double>(t.first_row),
          where(full, hlo::rem(rest, hlo::full_like(rest, width)), k - before(row))};
}

Value stacked(Value rows, Value columns, DType t) {
  const Dims one{1, rows.numel()};
  return hlo::convert(hlo::concatenate({hlo::reshape(rows, one), hlo::reshape(columns, one)}, 0),
                      t);
}

DType index_type(const char* op, std::optional<DType> dtype) {
  const DType t = dtype.value_or(DType::kS64);
  require_dtype(t == DType::kS64 || t == DType::kS32, op, t);
  return t;
}

Value tril_indices(Graph& graph, int64_t rows, int64_t columns, int64_t offset,
                   std::optional<DType> dtype) {
  const DType t = index_type("tril_indices", dtype);
  const LowerTriangle triangle = lower_triangle(rows, columns, offset);
  const auto [i, j] = positions(triangle, hlo::iota(graph, {DType::kS64, {triangle.size}}, 0));
  return stacked(i, j, t);
}

// A lower triangle read backwards.
Value triu_indices(Graph& graph, int64_t rows, int64_t columns, int64_t offset,
                   std::optional<DType> dtype) {
  const DType t = index_type("triu_indices", dtype);
  const LowerTriangle triangle = lower_triangle(rows, columns, columns - rows - offset);
  const Value k = hlo::iota(graph, {DType::kS64, {triangle.size}}, 0);
  const auto [i, j] = positions(triangle, static_cast<double>(triangle.size - 1) - k);
  return stacked(static_cast<double>(rows - 1) - i, static_cast<double>(columns - 1) - j, t);
}

}  // namespace

Rules factory_rules() {
  const Traits as_input{.strides = Strides::kPointwise};
  const Traits preserve{.strides = Strides::kPreserve};
  return {
      {"aten::fill.Scalar", fill_scalar, preserve},
      {"aten::fill.Tensor", fill_tensor, preserve},
      {"aten::zero", zero, preserve},
      {"aten::copy", copy, preserve},
      {"aten::clone", clone, preserve},
      {"aten::complex", complex, as_input},
      {"aten::polar", polar, as_input},
      {"aten::arange.start_step", arange, {.extent = arange_size}},
      {"aten::range", range_unit, {.extent = range_size}},
      {"aten::range.step", arange, {.extent = range_size}},
      {"aten::linspace", linspace},
      {"aten::logspace", logspace},
      {"aten::eye", eye_square},
      {"aten::eye.m", eye},
      {"aten::tril_indices", tril_indices},
      {"aten::triu_indices", triu_indices},
  };
}

}  // namespace tpu::lower

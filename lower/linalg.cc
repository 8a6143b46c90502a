// SPDX-License-Identifier: Apache-2.0
// Linear algebra that XLA expands itself: Cholesky, triangular systems, cross products.
#include "core/hlo/control.h"
#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

bool solvable(DType t) { return t == DType::kF32 || t == DType::kF64 || ir::is_complex(t); }

int64_t rows(Value a) { return a.dim(a.rank() - 2); }
int64_t columns(Value a) { return a.dim(a.rank() - 1); }

Value conjugate(Value x) {
  return ir::is_complex(x.dtype()) ? hlo::complex(hlo::real(x), hlo::neg(hlo::imag(x))) : x;
}

Value adjoint(Value a) {
  Dims order = all_axes(a.rank());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return conjugate(hlo::transpose(a, order));
}

// Zeros above (or below) the diagonal.
Value triangle(Value a, bool lower) {
  const Value row = hlo::iota_like(a, a.rank() - 2, DType::kS32);
  const Value column = hlo::iota_like(a, a.rank() - 1, DType::kS32);
  return where(lower ? row >= column : row <= column, a, hlo::full_like(a, int64_t{0}));
}

// For [b, n, n] Hermitian matrices given by their lower triangles: the order of the first leading
// minor that is not positive, 0 if there is none; s32[b]. One elimination step per column.
Value first_bad_minor(Value a) {
  Graph& graph = a.graph();
  const int64_t batch = a.dim(0);
  const int64_t n = a.dim(1);
  const Value none = hlo::full(graph, {DType::kS32, {batch}}, int64_t{0});
  const Value zero = hlo::constant(graph, DType::kS32, int64_t{0});
  return hlo::for_loop(n, {a, none}, [&](Value j, std::span<const Value> state) {
    const Value column =
        hlo::reshape(hlo::dynamic_slice(state[0], {zero, zero, j}, {batch, n, 1}), {batch, n});
    const Value pivot = hlo::dynamic_slice(column, {zero, j}, {batch, 1});
    const Value real = ir::is_complex(pivot.dtype()) ? hlo::real(pivot) : pivot;
    const Value bad = hlo::reshape(~(real > hlo::full_like(real, int64_t{0})), {batch});
    const Value order = hlo::broadcast_to(hlo::add(j, hlo::full_like(j, int64_t{1})), {batch});
    const Value info = where(bad & equals(state[1], 0.0), order, state[1]);
    const Value scaled = column / hlo::broadcast_in_dim(pivot, {batch, n}, {0, 1});
    const Value update = hlo::broadcast_in_dim(scaled, {batch, n, n}, {0, 1}) *
                         hlo::broadcast_in_dim(conjugate(column), {batch, n, n}, {0, 2});
    return Values{state[0] - update, info};
  })[1];
}

Values cholesky_ex(Value a, bool upper, bool) {
  require_dtype(solvable(a.dtype()), "cholesky", a.dtype());
  const Dims batch(a.dims().begin(), a.dims().end() - 2);
  const Type info_type{DType::kS32, batch};
  const Value fine = hlo::full(a.graph(), info_type, int64_t{0});
  if (a.numel() == 0) return {a, fine};
  const Value factor = triangle(hlo::cholesky(a, !upper), !upper);
  const Value part = ir::is_complex(a.dtype()) ? hlo::real(factor) : factor;
  const Value failed = hlo::reduce_or(hlo::is_nan(part), all_axes(a.rank()));
  // XLA says only that a matrix has no factor; the order of the bad minor takes a second look.
  const auto look = [&] {
    const Value lower = upper ? adjoint(a) : a;
    const int64_t count = ir::element_count(batch);
    return Values{
        hlo::reshape(first_bad_minor(hlo::reshape(lower, {count, rows(a), rows(a)})), batch)};
  };
  return {factor, hlo::if_else(failed, look, [&] { return Values{fine}; })[0]};
}

// Both with the batch dims of the two broadcast against each other.
std::pair<Value, Value> with_batch(Value a, Value b) {
  const auto lead = [](Value x) {
    return hlo::full(x.graph(), {DType::kPred, Dims(x.dims().begin(), x.dims().end() - 2)}, false);
  };
  const Dims batch = broadcast_dims(Values{lead(a), lead(b)});
  const auto whole = [&batch](Value x) {
    Dims dims = batch;
    dims.insert(dims.end(), x.dims().end() - 2, x.dims().end());
    return hlo::broadcast_to(x, dims);
  };
  return {whole(a), whole(b)};
}

Value solve(Value a, Value b, const hlo::TriangularSolve& options) {
  const auto [left, right] = with_batch(a, b);
  if (right.numel() == 0 || left.numel() == 0) return right;
  return hlo::triangular_solve(left, right, options);
}

Value solve_triangular(Value a, Value b, bool upper, bool left, bool unit) {
  const char* op = "linalg.solve_triangular";
  require(a.rank() >= 2, "{}: The input tensor A must have at least 2 dimensions.", op);
  require(b.rank() >= 2, "{}: The input tensor B must have at least 2 dimensions.", op);
  require(rows(a) == columns(a),
          "{}: A must be batches of square matrices, but they are {} by {} matrices", op, rows(a),
          columns(a));
  require(left ? rows(a) == rows(b) : columns(a) == columns(b),
          "{}: Incompatible shapes of A and B for the equation {} ({}x{} and {}x{})", op,
          left ? "AX = B" : "XA = B", rows(a), columns(a), rows(b), columns(b));
  require_dtype(solvable(a.dtype()), "triangular_solve_cpu", a.dtype());
  b = hlo::convert(b, a.dtype());
  return solve(a, b, {.left_side = left, .lower = !upper, .unit_diagonal = unit});
}

Values old_triangular_solve(Value b, Value a, bool upper, bool transpose, bool unit) {
  require_dtype(solvable(a.dtype()), "triangular_solve_cpu", a.dtype());
  using Transpose = hlo::TriangularSolve::Transpose;
  const hlo::TriangularSolve options{
      .lower = !upper,
      .unit_diagonal = unit,
      .transpose = transpose ? Transpose::kTranspose : Transpose::kNo};
  return {solve(a, b, options), with_batch(a, b).first};
}

// Components i + 1 and i + 2 of every triple along `axis`, in turn.
Value rotated(Value x, int64_t axis, int64_t by) {
  return hlo::concatenate({hlo::slice_axis(x, axis, by, 3), hlo::slice_axis(x, axis, 0, by)}, axis);
}

Value cross(Value a, Value b, int64_t dim) {
  require_number("cross", a.dtype());
  return computed(a, b, [dim](Value x, Value y) {
    const int64_t axis = wrap_axis(dim, x.rank());
    if (x.numel() == 0) return x;
    return rotated(x, axis, 1) * rotated(y, axis, 2) - rotated(x, axis, 2) * rotated(y, axis, 1);
  });
}

}  // namespace

Rules linalg_rules() {
  return {
      {"aten::linalg_cholesky_ex", cholesky_ex},
      {"aten::linalg_solve_triangular", solve_triangular},
      {"aten::triangular_solve", old_triangular_solve},
      {"aten::linalg_cross", cross},
  };
}

}  // namespace tpu::lower

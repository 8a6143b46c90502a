// SPDX-License-Identifier: Apache-2.0
// Values written into a part of a tensor: the functional forms of writes through views, and the
// gradients of views. Positions are run-time numbers, so that a loop over them compiles once.
#include "core/hlo/shape.h"

#include "lower/families.h"
#include "lower/promote.h"

namespace tpu::lower {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

Value number64(Graph& graph, int64_t n) { return hlo::constant(graph, DType::kS64, n); }

// A position counted from the end if negative, as s32 within [0, size].
Value wrapped_position(Graph& graph, Value position, int64_t size) {
  const Value negative = hlo::lt(position, number64(graph, 0));
  const Value wrapped = hlo::select(negative, hlo::add(position, number64(graph, size)), position);
  return hlo::convert(hlo::clamp(number64(graph, 0), wrapped, number64(graph, size)), DType::kS32);
}

Values starts_along(Value start, int64_t axis, int64_t rank) {
  Values starts(at(rank), hlo::constant(start.graph(), DType::kS32, int64_t{0}));
  starts[at(axis)] = start;
  return starts;
}

Value zeros(Graph& graph, DType t, const Dims& dims) {
  return hlo::full(graph, {t, dims}, int64_t{0});
}

// x with `part` at start, start + step, ... along the axis.
Value write_steps(Value x, Value part, int64_t axis, Value start, int64_t step) {
  if (part.numel() == 0) return x;
  const Values starts = starts_along(start, axis, x.rank());
  if (step == 1) return hlo::dynamic_update_slice(x, part, starts);
  const Dims none(x.dims().size(), 0);
  Dims gaps = none;
  gaps[at(axis)] = step - 1;
  const Value zero = hlo::constant(x.graph(), x.dtype(), int64_t{0});
  const Value spread = hlo::pad(part, zero, none, none, gaps);
  const Value place = hlo::iota_like(spread, axis, DType::kS32);
  const Value written =
      hlo::eq(hlo::rem(place, hlo::full_like(place, step)), hlo::full_like(place, int64_t{0}));
  const Value old = hlo::dynamic_slice(x, starts, spread.dims());
  return hlo::dynamic_update_slice(x, hlo::select(written, spread, old), starts);
}

Value as_row(Value part, int64_t axis) {
  Dims dims = part.dims();
  dims.insert(dims.begin() + axis, 1);
  return hlo::reshape(part, dims);
}

void check_select(int64_t rank) {
  if (rank == 0) fail(ErrorKind::kIndex, "select() cannot be applied to a 0-dim tensor.");
}

void check_source(const Dims& source, const Dims& slot, const char* view) {
  require(source == slot,
          "expected src to have a size equal to the {} of self. src size = [{}], {} size = [{}]",
          view, fmt::join(source, ", "), view, fmt::join(slot, ", "));
}

Value select_scatter(Value self, Value src, int64_t dim, Scalar index) {
  check_select(self.rank());
  const int64_t axis = wrap_axis(dim, self.rank());
  Dims slot = self.dims();
  slot.erase(slot.begin() + axis);
  check_source(src.dims(), slot, "slice");
  const Value start = wrapped_position(self.graph(), index.as(DType::kS64), self.dim(axis));
  return write_steps(self, as_row(hlo::convert(src, self.dtype()), axis), axis, start, 1);
}

Value select_backward(Value grad, Dims sizes, int64_t dim, Scalar index) {
  check_select(static_cast<int64_t>(sizes.size()));
  const int64_t axis = wrap_axis(dim, static_cast<int64_t>(sizes.size()));
  const Value start = wrapped_position(grad.graph(), index.as(DType::kS64), sizes[at(axis)]);
  return write_steps(zeros(grad.graph(), grad.dtype(), sizes), as_row(grad, axis), axis, start, 1);
}

int64_t clamped_position(int64_t position, int64_t size) {
  return std::clamp<int64_t>(position < 0 ? position + size : position, 0, size);
}

int64_t slice_length(std::optional<int64_t> start, std::optional<int64_t> end, int64_t size,
                     int64_t step) {
  require(step > 0, "slice step must be positive");
  const int64_t from = clamped_position(start.value_or(0), size);
  const int64_t to = std::max(from, clamped_position(end.value_or(size), size));
  return (to - from + step - 1) / step;
}

Value slice_scatter(Value self, Value src, int64_t dim, std::optional<int64_t> start,
                    std::optional<int64_t> end, int64_t step) {
  require(self.rank() > 0, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t axis = wrap_axis(dim, self.rank());
  Dims slot = self.dims();
  slot[at(axis)] = slice_length(start, end, self.dim(axis), step);
  check_source(src.dims(), slot, "slice");
  const int64_t from = clamped_position(start.value_or(0), self.dim(axis));
  return write_steps(self, hlo::convert(src, self.dtype()), axis,
                     hlo::constant(self.graph(), DType::kS32, from), step);
}

Value slice_backward(Value grad, Dims sizes, int64_t dim, Scalar start, Scalar, int64_t step) {
  const int64_t axis = wrap_axis(dim, static_cast<int64_t>(sizes.size()));
  const Value from = wrapped_position(grad.graph(), start.as(DType::kS64), sizes[at(axis)]);
  return write_steps(zeros(grad.graph(), grad.dtype(), sizes), grad, axis, from, step);
}

// The last axis of `diagonal` laid along a diagonal of [..., rows, columns], and where that is.
struct Diagonal {
  Value on;      // pred
  Value values;  // elsewhere arbitrary
};
Diagonal along_diagonal(Value diagonal, int64_t rows, int64_t columns, int64_t offset) {
  const int64_t axis = diagonal.rank() - 1;
  const int64_t low = std::clamp<int64_t>(-offset, 0, rows - diagonal.dim(axis));
  Dims before(at(axis) + 1, 0);
  Dims after = before;
  before[at(axis)] = low;
  after[at(axis)] = rows - low - diagonal.dim(axis);
  const Value zero = hlo::constant(diagonal.graph(), diagonal.dtype(), int64_t{0});
  const Value by_row = hlo::pad(diagonal, zero, before, after, Dims(at(axis) + 1, 0));
  Dims dims = by_row.dims();
  dims.push_back(columns);
  const Value values = hlo::broadcast_in_dim(by_row, dims, all_axes(axis + 1));
  const Dims matrix{rows, columns};
  const Value row = hlo::iota(diagonal.graph(), {DType::kS64, matrix}, 0);
  const Value column = hlo::iota(diagonal.graph(), {DType::kS64, matrix}, 1);
  const Value on = hlo::eq(hlo::add(row, hlo::full_like(row, offset)), column);
  return {hlo::broadcast_to(on, dims), values};
}

// Axes of [..., rows, columns] in the order of a tensor whose row axis is dim1, column axis dim2.
Dims matrix_axes_at(int64_t rank, int64_t dim1, int64_t dim2) {
  Dims permutation;
  int64_t batch = 0;
  for (int64_t i = 0; i < rank; ++i) {
    permutation.push_back(i == dim1 ? rank - 2 : i == dim2 ? rank - 1 : batch++);
  }
  return permutation;
}

void check_distinct(int64_t dim1, int64_t dim2, int64_t given1, int64_t given2) {
  require(dim1 != dim2, "diagonal dimensions cannot be identical {}, {}", given1, given2);
}

Value diag_embed(Value x, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t rank = x.rank() + 1;
  const int64_t row = wrap_axis(dim1, rank);
  const int64_t column = wrap_axis(dim2, rank);
  check_distinct(row, column, dim1, dim2);
  const int64_t n = x.dim(x.rank() - 1) + std::abs(offset);
  const Diagonal d = along_diagonal(x, n, n, offset);
  const Value full = hlo::select(d.on, d.values, hlo::full_like(d.values, int64_t{0}));
  return hlo::transpose(full, matrix_axes_at(rank, row, column));
}

// `diagonal` as the tensor of these sizes whose dim1, dim2 diagonal it is.
Diagonal in_tensor(Value diagonal, const Dims& sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t row = wrap_axis(dim1, rank);
  const int64_t column = wrap_axis(dim2, rank);
  check_distinct(row, column, dim1, dim2);
  const Diagonal d = along_diagonal(diagonal, sizes[at(row)], sizes[at(column)], offset);
  const Dims order = matrix_axes_at(rank, row, column);
  return {hlo::transpose(d.on, order), hlo::transpose(d.values, order)};
}

Value diagonal_backward(Value grad, Dims sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  if (grad.numel() == 0) return zeros(grad.graph(), grad.dtype(), sizes);
  const Diagonal d = in_tensor(grad, sizes, offset, dim1, dim2);
  return hlo::select(d.on, d.values, hlo::full_like(d.values, int64_t{0}));
}

Dims diagonal_dims(const Dims& sizes, int64_t offset, int64_t row, int64_t column) {
  const int64_t rows = sizes[at(row)] - std::max<int64_t>(-offset, 0);
  const int64_t columns = sizes[at(column)] - std::max<int64_t>(offset, 0);
  Dims dims;
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    if (i != row && i != column) dims.push_back(sizes[at(i)]);
  }
  dims.push_back(std::max<int64_t>(0, std::min(rows, columns)));
  return dims;
}

Value diagonal_scatter(Value self, Value src, int64_t offset, int64_t dim1, int64_t dim2) {
  const Dims slot = diagonal_dims(self.dims(), offset, wrap_axis(dim1, self.rank()),
                                  wrap_axis(dim2, self.rank()));
  check_source(src.dims(), slot, "slice");
  if (src.numel() == 0) return self;
  const Diagonal d = in_tensor(hlo::convert(src, self.dtype()), self.dims(), offset, dim1, dim2);
  return hlo::select(d.on, d.values, self);
}

// The windows of `grad` [..., count, ..., size] from `shift` on, `length` of each, laid end to end
// along the axis: element (i, k) lands at i * step + shift + k of an axis of `total`.
Value lay_windows(Value grad, int64_t axis, int64_t shift, int64_t length, int64_t step,
                  int64_t total) {
  const int64_t last = grad.rank() - 1;
  Value part = hlo::slice_axis(grad, last, shift, shift + length);
  const Value zero = hlo::constant(grad.graph(), grad.dtype(), int64_t{0});
  const Dims none(part.dims().size(), 0);
  Dims high = none;
  high[at(last)] = step - length;
  part = hlo::pad(part, zero, none, high, none);
  Dims order = all_axes(last);
  order.insert(order.begin() + axis + 1, last);
  part = hlo::transpose(part, order);
  Dims dims = part.dims();
  dims[at(axis)] *= step;
  dims.erase(dims.begin() + axis + 1);
  part = hlo::reshape(part, dims);
  Dims low(dims.size(), 0);
  high = low;
  low[at(axis)] = shift;
  high[at(axis)] = total - shift - dims[at(axis)];
  return hlo::pad(part, zero, low, high, Dims(dims.size(), 0));
}

Value unfold_backward(Value grad, Dims sizes, int64_t dim, int64_t size, int64_t step) {
  if (sizes.empty()) return hlo::reshape(grad, {});
  const int64_t axis = wrap_axis(dim, static_cast<int64_t>(sizes.size()));
  const DType t = ir::compute_type(grad.dtype());
  Value sum = zeros(grad.graph(), t, sizes);
  if (grad.numel() == 0) return hlo::convert(sum, grad.dtype());
  for (int64_t shift = 0; shift < size; shift += step) {
    const int64_t length = std::min(step, size - shift);
    const Value wide = hlo::convert(grad, t);
    sum = hlo::add(sum, lay_windows(wide, axis, shift, length, step, sizes[at(axis)]));
  }
  return hlo::convert(sum, grad.dtype());
}

}  // namespace

Rules view_write_rules() {
  const Traits like_self{.strides = Strides::kPreserve};
  return {
      {"aten::select_scatter", select_scatter, like_self},
      {"aten::slice_scatter", slice_scatter, like_self},
      {"aten::diagonal_scatter", diagonal_scatter, like_self},
      {"aten::select_backward", select_backward},
      {"aten::slice_backward", slice_backward},
      {"aten::diagonal_backward", diagonal_backward},
      {"aten::diag_embed", diag_embed},
      {"aten::unfold_backward", unfold_backward},
  };
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
#include "lower/indexing.h"

#include <limits>

#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"

namespace tpu::lower {
namespace {

constexpr int64_t kNarrowLimit = std::numeric_limits<int32_t>::max();

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

DType position_type(int64_t size) { return size <= kNarrowLimit ? DType::kS32 : DType::kS64; }

Dims axes_except(int64_t rank, int64_t axis) {
  Dims axes = all_axes(rank);
  axes.erase(axes.begin() + axis);
  return axes;
}

Dims column(const Dims& dims) {
  Dims with = dims;
  with.push_back(1);
  return with;
}

bool equal_except(const Dims& a, const Dims& b, int64_t axis) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (i != at(axis) && a[i] != b[i]) return false;
  }
  return true;
}

// The flat positions of elements whose coordinate along `axis` is `position` and whose others are
// their own.
Value flat_positions(const Dims& dims, Value position, int64_t axis) {
  const DType t = position_type(ir::element_count(dims));
  Value flat = hlo::full(position.graph(), {t, position.dims()}, int64_t{0});
  int64_t stride = 1;
  for (int64_t i = static_cast<int64_t>(dims.size()) - 1; i >= 0; --i) {
    const Value coordinate = i == axis ? hlo::convert(position, t) : hlo::iota_like(position, i, t);
    flat = flat + coordinate * hlo::full_like(flat, stride);
    stride *= dims[at(i)];
  }
  return flat;
}

}  // namespace

void check_range(Value index, Range range, std::string message, CheckKind kind) {
  if (index.numel() == 0) return;
  const Value wide = hlo::convert(index, DType::kS64);
  const Dims axes = all_axes(index.rank());
  const Value least = hlo::reduce_min(wide, axes);
  const Value greatest = hlo::reduce_max(wide, axes);
  const Value above = hlo::ge(greatest, hlo::full_like(greatest, range.high));
  const Value below = hlo::lt(least, hlo::full_like(least, range.low));
  index.graph().check(above | below, where(above, greatest, least), std::move(message), kind);
}

std::string out_of_bounds(int64_t axis, int64_t size, std::string_view prefix) {
  return fmt::format("{}index {{}} is out of bounds for dimension {} with size {}", prefix, axis,
                     size);
}

Value as_position(Value index, int64_t size) { return hlo::convert(index, position_type(size)); }

Value from_end(Value index, int64_t size) {
  const Value p = as_position(index, size);
  return where(hlo::lt(p, hlo::full_like(p, int64_t{0})), p + hlo::full_like(p, size), p);
}

Value keep_update(Value, Value update) { return update; }

Value take_flat(Value x, Value position) {
  return hlo::take(hlo::reshape(x, {x.numel()}), position, 0);
}

Value scatter_along(Value x, Value position, Value update, int64_t axis,
                    const hlo::Combine& combine) {
  if (x.numel() == 0 || update.numel() == 0) return x;
  const bool whole = equal_except(x.dims(), position.dims(), axis);
  if (x.graph().target().cpu || !whole) {
    const Value flat = hlo::reshape(x, {x.numel()});
    const Value where_to = flat_positions(x.dims(), position, axis);
    const Value result = hlo::scatter(flat, hlo::reshape(where_to, {position.numel(), 1}),
                                      hlo::reshape(update, {update.numel()}),
                                      {.update_window_dims = {},
                                       .inserted_window_dims = {0},
                                       .scatter_dims_to_operand_dims = {0},
                                       .index_vector_dim = 1},
                                      combine);
    return hlo::reshape(result, x.dims());
  }
  const Dims batch = axes_except(x.rank(), axis);
  return hlo::scatter(x, position, update,
                      {.update_window_dims = {},
                       .inserted_window_dims = {axis},
                       .input_batching_dims = batch,
                       .scatter_indices_batching_dims = batch,
                       .scatter_dims_to_operand_dims = {axis},
                       .index_vector_dim = position.rank()},
                      combine);
}

Value scatter_rows(Value x, Value position, Value update, int64_t axis,
                   const hlo::Combine& combine) {
  return hlo::scatter(x, hlo::reshape(position, column(position.dims())), update,
                      {.update_window_dims = axes_except(x.rank(), axis),
                       .inserted_window_dims = {axis},
                       .scatter_dims_to_operand_dims = {axis},
                       .index_vector_dim = 1},
                      combine);
}

Value running_count(Value x, int64_t axis) {
  return running(x, axis, hlo::constant(x.graph(), x.dtype(), int64_t{0}), hlo::add);
}

}  // namespace tpu::lower

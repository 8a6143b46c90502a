// SPDX-License-Identifier: Apache-2.0
// Positions of the elements that are not zero, into a result of given size. The operators whose
// result is as long as the data says are built on it by the torch layer.
#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/promote.h"

namespace tpu::lower {
namespace {

// 1 + the number of true elements up to and including each, by log-step shifts.
Value running_count(Value mask) {
  Value count = hlo::convert(mask, DType::kS32);
  const int64_t n = count.numel();
  const Value zero = hlo::constant(count.graph(), DType::kS32, int64_t{0});
  hlo::Window window = hlo::Window::of_rank(1);
  window.sizes = {n};
  window.pad_low = {n - 1};
  return hlo::reduce_window({count}, {zero}, window, [](std::span<const Value> v) -> Values {
    return {hlo::add(v[0], v[1])};
  })[0];
}

// The coordinate along `axis` of row-major flat positions.
Value coordinate(Value flat, const Dims& dims, size_t axis) {
  int64_t inner = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  const Value within = hlo::div(flat, hlo::full_like(flat, inner));
  return hlo::rem(within, hlo::full_like(flat, std::max<int64_t>(dims[axis], 1)));
}

// s64[size] flat positions in order, `none` beyond the last.
Value flat_positions(Value mask, int64_t size, int64_t none) {
  const int64_t n = mask.numel();
  const Value flat = hlo::reshape(mask, {n});
  const Value rank =
      hlo::sub(running_count(flat), hlo::full(mask.graph(), {DType::kS32, {n}}, int64_t{1}));
  // False elements aim past the end, where a scatter drops them.
  const Value target = hlo::select(flat, rank, hlo::full_like(rank, size));
  const Value positions = hlo::iota(mask.graph(), {DType::kS64, {n}}, 0);
  const Value empty = hlo::full(mask.graph(), {DType::kS64, {size}}, none);
  return hlo::scatter(
      empty, hlo::reshape(target, {n, 1}), positions,
      {.update_window_dims = {},
       .inserted_window_dims = {0},
       .scatter_dims_to_operand_dims = {0},
       .index_vector_dim = 1},
      [](Value, Value update) { return update; }, /*unique_indices=*/true);
}

Value nonzero_static(Value self, int64_t size, std::optional<int64_t> fill) {
  require(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  const Value mask = hlo::convert(self, DType::kPred);
  const int64_t rank = self.rank();
  ir::Graph& graph = self.graph();
  if (rank == 0 || self.numel() == 0 || size == 0) {
    return hlo::full(graph, {DType::kS64, {size, rank}}, fill.value_or(-1));
  }
  const Value flat = flat_positions(mask, size, -1);
  const Value missing = hlo::lt(flat, hlo::full_like(flat, int64_t{0}));
  Values columns;
  for (size_t axis = 0; axis < self.dims().size(); ++axis) {
    const Value c = hlo::select(missing, hlo::full_like(flat, fill.value_or(-1)),
                                coordinate(flat, self.dims(), axis));
    columns.push_back(hlo::reshape(c, {size, 1}));
  }
  return hlo::concatenate(columns, 1);
}

}  // namespace

Rules position_rules() { return {{"aten::nonzero_static", nonzero_static}}; }

}  // namespace tpu::lower

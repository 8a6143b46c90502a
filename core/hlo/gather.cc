// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/hlo/attributes.h"
#include "core/hlo/shape.h"

namespace tpu::hlo {
namespace {

Dims range(int64_t begin, int64_t end) {
  Dims values;
  for (int64_t i = begin; i < end; ++i) values.push_back(i);
  return values;
}

std::string dimension_text(const GatherDims& d) {
  return fmt::format(
      "dimension_numbers = #stablehlo.gather<offset_dims = {}, collapsed_slice_dims = {}, "
      "operand_batching_dims = {}, start_indices_batching_dims = {}, start_index_map = {}, "
      "index_vector_dim = {}>",
      list_text(d.offset_dims), list_text(d.collapsed_slice_dims),
      list_text(d.operand_batching_dims), list_text(d.start_indices_batching_dims),
      list_text(d.start_index_map), d.index_vector_dim);
}

std::string dimension_text(const ScatterDims& d) {
  return fmt::format(
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {}, "
      "inserted_window_dims = {}, input_batching_dims = {}, scatter_indices_batching_dims = {}, "
      "scatter_dims_to_operand_dims = {}, index_vector_dim = {}>",
      list_text(d.update_window_dims), list_text(d.inserted_window_dims),
      list_text(d.input_batching_dims), list_text(d.scatter_indices_batching_dims),
      list_text(d.scatter_dims_to_operand_dims), d.index_vector_dim);
}

// The leading corner of x that has `dims`, except along `axis`.
Value crop(Value x, const Dims& dims, int64_t axis) {
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != axis) x = slice_axis(x, i, 0, dims[static_cast<size_t>(i)]);
  }
  return x;
}

}  // namespace

Value gather(Value operand, Value start_indices, const GatherDims& dims, const Dims& slice_sizes,
             const Dims& result_dims, bool indices_are_sorted) {
  const Type type{operand.dtype(), result_dims};
  // No slice fits into an empty operand; reading from one was refused by a range check.
  if (operand.numel() == 0 || type.numel() == 0) return full(operand.graph(), type, int64_t{0});
  return make("stablehlo.gather", {operand, start_indices}, type,
              fmt::format("{}, slice_sizes = {}, indices_are_sorted = {}", dimension_text(dims),
                          array_text(slice_sizes), bool_text(indices_are_sorted)));
}

Value scatter(Value operand, Value indices, Value updates, const ScatterDims& dims,
              const Combine& combine, bool unique_indices, bool indices_are_sorted) {
  TPU_CHECK(operand.dtype() == updates.dtype(), "updates have the operand's type");
  if (operand.numel() == 0 || updates.numel() == 0) return operand;
  const Type element{operand.dtype(), {}};
  const auto body = [&](std::span<const Value> v) { return Values{combine(v[0], v[1])}; };
  return operand.graph().node1(
      {.op = "stablehlo.scatter",
       .inputs = {operand, indices, updates},
       .results = {operand.type()},
       .attributes =
           fmt::format("{}, indices_are_sorted = {}, unique_indices = {}", dimension_text(dims),
                       bool_text(indices_are_sorted), bool_text(unique_indices)),
       .blocks = {{{element, element}, body}}});
}

Value take(Value x, Value index, int64_t axis) {
  const int64_t n = index.rank();
  Dims result(x.dims().begin(), x.dims().begin() + axis);
  result.insert(result.end(), index.dims().begin(), index.dims().end());
  result.insert(result.end(), x.dims().begin() + axis + 1, x.dims().end());
  Dims offset_dims = range(0, axis);
  for (const int64_t d : range(axis + n, x.rank() + n - 1)) offset_dims.push_back(d);
  Dims sizes = x.dims();
  sizes[static_cast<size_t>(axis)] = 1;
  return gather(x, index,
                {.offset_dims = offset_dims,
                 .collapsed_slice_dims = {axis},
                 .start_index_map = {axis},
                 .index_vector_dim = n},
                sizes, result);
}

Value take_along(Value x, Value index, int64_t axis) {
  if (x.rank() == 0) return x;
  TPU_CHECK(x.rank() == index.rank(), "one index axis per operand axis");
  x = crop(x, index.dims(), axis);
  const Dims batch = other_axes(x.rank(), Dims{axis});
  return gather(x, index,
                {.offset_dims = {},
                 .collapsed_slice_dims = {axis},
                 .operand_batching_dims = batch,
                 .start_indices_batching_dims = batch,
                 .start_index_map = {axis},
                 .index_vector_dim = index.rank()},
                Dims(x.dims().size(), 1), index.dims());
}

}  // namespace tpu::hlo

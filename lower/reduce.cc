// SPDX-License-Identifier: Apache-2.0
// Sums, products, extremes and their positions, any and all. Means of squares and norms are in
// statistics.cc.
#include "core/hlo/reduce.h"

#include "lower/families.h"
#include "lower/reduction.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

DType sum_type(Value x, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  return ir::is_bool(x.dtype()) || ir::is_integer(x.dtype()) ? DType::kS64 : x.dtype();
}

// x as PyTorch's accumulator of type t: first rounded to t, then widened.
Value accumulated(Value x, DType t) {
  return hlo::convert(hlo::convert(x, t), ir::compute_type(t));
}

Value sum_as(Value x, DType t, const Dims& axes) {
  if (ir::is_bool(t)) return any_over(hlo::convert(x, t), axes);
  if (ir::is_bool(x.dtype()) && t == DType::kS64) return count_over(x, axes);
  return hlo::convert(sum_over(accumulated(x, t), axes), t);
}

Value sum(Value self, std::optional<Dims> dim, bool keepdim, std::optional<DType> dtype) {
  const Dims axes = reduction_axes(dim, self.rank());
  return keep(sum_as(self, sum_type(self, dtype), axes), self, axes, keepdim);
}

Value nansum(Value self, std::optional<Dims> dim, bool keepdim, std::optional<DType> dtype) {
  require(!ir::is_complex(self.dtype()), "nansum on CPU does not support complex inputs");
  const Dims axes = reduction_axes(dim, self.rank());
  const DType t = sum_type(self, dtype);
  const Value x = ir::is_float(self.dtype()) ? where(hlo::is_nan(self), 0, self) : self;
  return keep(sum_as(x, t, axes), self, axes, keepdim);
}

Value mean(Value self, std::optional<Dims> dim, bool keepdim, std::optional<DType> dtype) {
  const Dims axes = reduction_axes(dim, self.rank());
  const DType t = dtype.value_or(self.dtype());
  return keep(hlo::convert(mean_over(accumulated(self, t), axes), t), self, axes, keepdim);
}

Value prod_as(Value x, DType t, const Dims& axes) {
  if (ir::is_bool(t)) return all_over(hlo::convert(x, t), axes);
  return hlo::convert(prod_over(accumulated(x, t), axes), t);
}

Value prod(Value self, std::optional<DType> dtype) {
  return prod_as(self, sum_type(self, dtype), all_axes(self.rank()));
}

Value prod_dim(Value self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  const Dims axes = reduction_axis(dim, self.rank());
  return keep(prod_as(self, sum_type(self, dtype), axes), self, axes, keepdim);
}

using Over = Value (*)(Value, const Dims&);

template <Over over>
Value extreme_over(Value x, const Dims& axes) {
  return computed(x, [&](Value wide) { return over(wide, axes); });
}

template <Over over>
Value extreme_of_axes(Value self, Dims dim, bool keepdim) {
  require_dtype(!ir::is_complex(self.dtype()),
                over == max_over ? "max_values_cpu" : "min_values_cpu", self.dtype());
  const Dims axes = reduction_axes(dim, self.rank());
  return keep(extreme_over<over>(self, axes), self, axes, keepdim);
}

template <Over over>
Value extreme_of_all(Value self) {
  require(self.numel() > 0,
          "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
          "reduction dim with the 'dim' argument.",
          over == max_over ? "max" : "min");
  require_dtype(!ir::is_complex(self.dtype()), over == max_over ? "max_all" : "min_all",
                self.dtype());
  return extreme_over<over>(self, all_axes(self.rank()));
}

Values min_max(Value self, std::optional<int64_t> dim, bool keepdim) {
  require_dtype(!ir::is_complex(self.dtype()), "aminmax_cpu", self.dtype());
  const Dims axes = dim ? reduction_axis(*dim, self.rank()) : all_axes(self.rank());
  return {keep(extreme_over<min_over>(self, axes), self, axes, keepdim),
          keep(extreme_over<max_over>(self, axes), self, axes, keepdim)};
}

void require_identity(bool not_empty, std::string_view what) {
  require(not_empty,
          "aminmax(): cannot compute aminmax over an empty {} as the operation has no identity.",
          what);
}

Values min_max_all(Value self) {
  require_identity(self.numel() > 0, "dimension");
  return min_max(self, std::nullopt, false);
}

Values min_max_dim(Value self, int64_t dim, bool keepdim) {
  const int64_t axis = wrap_axis(dim, self.rank());
  require_identity(self.rank() == 0 || self.dim(axis) > 0, "dimension");
  return min_max(self, axis, keepdim);
}

using Find = Extreme (*)(Value, int64_t);

template <Find find>
Values extreme_along(Value self, int64_t dim, bool keepdim) {
  require(!ir::is_complex(self.dtype()), "{}(): does not support complex input",
          find == first_max ? "max" : "min");
  const Value x = at_least_1d(self);
  const int64_t axis = wrap_axis(dim, self.rank());
  const Extreme e = find(x, axis);
  const bool kept = keepdim && self.rank() > 0;
  return {keep(e.value, x, {axis}, kept), keep(e.index, x, {axis}, kept)};
}

template <Find find>
Value position(Value self, std::optional<int64_t> dim, bool keepdim) {
  for (const auto& [refused, kind] : {std::pair(ir::is_complex(self.dtype()), "complex"),
                                      std::pair(ir::is_bool(self.dtype()), "bool")}) {
    require(!refused, "{}(): does not support {} input", find == first_max ? "argmax" : "argmin",
            kind);
  }
  if (dim) return extreme_along<find>(self, *dim, keepdim)[1];
  const Value index = find(hlo::reshape(self, {self.numel()}), 0).index;
  return keep(index, self, all_axes(self.rank()), keepdim);
}

template <Over over>
Value truth_over(Value self, const Dims& axes, bool keepdim) {
  return keep(over(hlo::convert(self, DType::kPred), axes), self, axes, keepdim);
}

template <Over over>
Value truth(Value self) {
  return truth_over<over>(self, all_axes(self.rank()), false);
}

template <Over over>
Value truth_dim(Value self, int64_t dim, bool keepdim) {
  return truth_over<over>(self, reduction_axis(dim, self.rank()), keepdim);
}

// Unlike elsewhere an empty list of dims reduces nothing.
template <Over over>
Value truth_dims(Value self, std::optional<Dims> dim, bool keepdim) {
  if (dim && dim->empty()) return hlo::convert(self, DType::kPred);
  return truth_over<over>(self, reduction_axes(dim, self.rank()), keepdim);
}

Value count_nonzero_dims(Value self, Dims dim) {
  return count_over(hlo::convert(self, DType::kPred), reduction_axes(dim, self.rank()));
}

Value count_nonzero(Value self, std::optional<int64_t> dim) {
  return count_nonzero_dims(self, dim ? Dims{*dim} : Dims{});
}

Value trace(Value self) {
  require(self.rank() == 2, "trace: expected a matrix, but got tensor with dim {}", self.rank());
  require_dtype(!ir::is_bool(self.dtype()), "trace", self.dtype());
  const int64_t n = std::min(self.dim(0), self.dim(1));
  if (n == 0) return hlo::full(self.graph(), {sum_type(self, {}), {}}, int64_t{0});
  const int64_t step = self.dim(1) + 1;
  const Value flat = hlo::reshape(self, {self.numel()});
  return sum_as(hlo::slice_axis(flat, 0, 0, (n - 1) * step + 1, step), sum_type(self, {}), {0});
}

// The exclusive or of all elements' bits, as doubles or 64-bit integers.
Value hash_tensor(Value self, Dims dim, bool keepdim) {
  require_dtype(!ir::is_complex(self.dtype()), "xor_sum_cpu", self.dtype());
  const Dims axes = reduction_axes(dim, self.rank());
  const Value bits = ir::is_float(self.dtype())
                         ? hlo::bitcast(hlo::convert(self, DType::kF64), DType::kU64)
                         : hlo::convert(self, DType::kU64);
  const Value zero = hlo::constant(self.graph(), DType::kU64, int64_t{0});
  const auto combine = [](std::span<const Value> v) { return Values{v[0] ^ v[1]}; };
  return keep(hlo::reduce({bits}, {zero}, axes, combine)[0], self, axes, keepdim);
}

}  // namespace

Rules reduce_rules() {
  Rules rules = {
      {"aten::sum.dim_IntList", sum},
      {"aten::nansum", nansum},
      {"aten::mean.dim", mean},
      {"aten::prod", prod},
      {"aten::prod.dim_int", prod_dim},
      {"aten::amax", extreme_of_axes<max_over>},
      {"aten::amin", extreme_of_axes<min_over>},
      {"aten::max", extreme_of_all<max_over>},
      {"aten::min", extreme_of_all<min_over>},
      {"aten::max.dim", extreme_along<first_max>},
      {"aten::min.dim", extreme_along<first_min>},
      {"aten::argmax", position<first_max>},
      {"aten::argmin", position<first_min>},
      {"aten::aminmax", min_max},
      {"aten::_aminmax", min_max_all},
      {"aten::_aminmax.dim", min_max_dim},
      {"aten::any", truth<any_over>},
      {"aten::any.dim", truth_dim<any_over>},
      {"aten::any.dims", truth_dims<any_over>},
      {"aten::all", truth<all_over>},
      {"aten::all.dim", truth_dim<all_over>},
      {"aten::all.dims", truth_dims<all_over>},
      {"aten::count_nonzero", count_nonzero},
      {"aten::count_nonzero.dim_IntList", count_nonzero_dims},
      {"aten::trace", trace},
      {"aten::hash_tensor", hash_tensor},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

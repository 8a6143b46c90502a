// SPDX-License-Identifier: Apache-2.0
// Sorting, the k greatest, searching in sorted rows and membership.
#include "lower/sorting.h"

#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// From this share of a row on, sorting all of it costs no more than selecting.
constexpr int64_t kTopShare = 16;

Values sorted_result(const Sorted& s, const Dims& dims) {
  return {hlo::reshape(s.values, dims), hlo::convert(hlo::reshape(s.indices, dims), DType::kS64)};
}

Values sort(Value self, std::optional<bool>, int64_t dim, bool descending) {
  require(!ir::is_complex(self.dtype()), " Sort does not support complex dtypes on CPU");
  const int64_t axis = wrap_axis(dim, self.rank());
  return sorted_result(sort_along(at_least_1d(self), axis, descending), self.dims());
}

// Numbers that f32 holds exactly, in the total order of top_k: NaN first among the greatest, last
// among the least.
Value selection_key(Value x, bool largest) {
  const Value f = hlo::convert(x, DType::kF32);
  const Value nan = hlo::bitcast(
      hlo::full(x.graph(), {DType::kU32, x.dims()}, int64_t{largest ? 0x7FC00000 : 0xFFC00000}),
      DType::kF32);
  return hlo::select(hlo::is_nan(f), nan, largest ? f : -f);
}

Sorted select_top(Value x, int64_t k, int64_t axis, bool largest) {
  const Dims permutation = swap_with_minor(axis, x.rank());
  const Value rows = hlo::transpose(selection_key(x, largest), permutation);
  const Value index = hlo::transpose(hlo::top_k(rows, k)[1], permutation);
  return {hlo::take_along(x, index, axis), index};
}

Values top_k(Value self, int64_t k, int64_t dim, bool largest, bool) {
  const Value x = at_least_1d(self);
  const int64_t axis = wrap_axis(dim, self.rank());
  const bool exact_in_f32 = ir::byte_size(x.dtype()) <= 2 || x.dtype() == DType::kF32;
  Dims dims = self.dims();
  if (!dims.empty()) dims[static_cast<size_t>(axis)] = k;
  if (exact_in_f32 && k > 0 && k * kTopShare <= x.dim(axis)) {
    return sorted_result(select_top(x, k, axis, largest), dims);
  }
  const Sorted all = sort_along(x, axis, largest);
  const auto first = [&](Value v) { return hlo::slice_axis(v, axis, 0, k); };
  return sorted_result({first(all.values), first(all.indices)}, dims);
}

std::string list(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

bool right_side(bool right, const std::optional<std::string>& side) {
  if (!side) return right;
  require(*side == "left" || *side == "right",
          "torch.searchsorted(): side can only be 'left' or 'right' but got {}", *side);
  require(!right || *side == "right",
          "torch.searchsorted(): side and right can't be set to opposites, got side of {} while "
          "right was True",
          *side);
  return *side == "right";
}

void check_sorter(Value sorted, Value sorter) {
  require(sorter.dims() == sorted.dims(),
          "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
          "tensor {}and got sorter tensor {}",
          list(sorted.dims()), list(sorter.dims()));
  require(sorter.dtype() == DType::kS64,
          "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {}",
          scalar_type_name(sorter.dtype()));
  if (sorter.numel() == 0) return;
  const auto n = static_cast<double>(sorted.dims().back());
  const Value bad = any_over((sorter < 0) | (sorter >= n), all_axes(sorter.rank()));
  sorted.graph().check(bad, hlo::constant(sorted.graph(), DType::kS64, int64_t{0}),
                       "torch.searchsorted(): sorter index out of range", ir::CheckKind::kRuntime);
}

void check_boundaries(Value sorted, Value values) {
  require(sorted.rank() > 0,
          "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
          "dimension");
  require(values.rank() > 0 || sorted.rank() == 1,
          "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension "
          "is 1, but we got boundaries tensor dim({}) and input value's dim(0) numel(1)",
          sorted.rank());
  const Dims& b = sorted.dims();
  const Dims& v = values.dims();
  const bool same_rows = b.size() == v.size() && std::equal(b.begin(), b.end() - 1, v.begin());
  require(b.size() == 1 || same_rows,
          "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
          "dimensions of boundaries tensor and input value tensor must match, but we got "
          "boundaries tensor {} and input value tensor {}",
          list(b), list(v));
}

// Positions of `values` in rows of `sorted`, after the operands became of one type.
Value search(Value sorted, Value values, bool right, bool out_int32) {
  const DType t =
      sorted.dtype() == values.dtype() ? sorted.dtype() : result_type(Values{sorted, values});
  require_number("searchsorted_out_cpu", t);
  require_dtype(!ir::is_complex(t), "searchsorted_out_cpu", t);
  const int64_t n = sorted.dims().back();
  const int64_t rows = sorted.rank() == 1 || n == 0 ? 1 : sorted.numel() / n;
  const auto as_rows = [&](Value x, int64_t length) {
    return hlo::reshape(widened(hlo::convert(x, t)), {rows, length});
  };
  const Value found =
      n == 0 ? hlo::full(values.graph(), {DType::kS32, values.dims()}, int64_t{0})
             : insertion_points(as_rows(sorted, n), as_rows(values, values.numel() / rows), right);
  return hlo::convert(hlo::reshape(found, values.dims()), out_int32 ? DType::kS32 : DType::kS64);
}

Value searchsorted(Value sorted, Value values, bool out_int32, bool right,
                   std::optional<std::string> side, std::optional<Value> sorter) {
  const bool after = right_side(right, side);
  check_boundaries(sorted, values);
  if (sorter) {
    check_sorter(sorted, *sorter);
    sorted = hlo::take_along(sorted, *sorter, sorted.rank() - 1);
  }
  return search(sorted, values, after, out_int32);
}

Value searchsorted_number(Value sorted, Scalar value, bool out_int32, bool right,
                          std::optional<std::string> side, std::optional<Value> sorter) {
  return searchsorted(sorted, number(value), out_int32, right, side, sorter);
}

Value bucketize(Value self, Value boundaries, bool out_int32, bool right) {
  require(boundaries.rank() == 1, "boundaries tensor must be 1 dimension, but got dim({})",
          boundaries.rank());
  return search(boundaries, self, right, out_int32);
}

Value bucketize_number(Scalar self, Value boundaries, bool out_int32, bool right) {
  return bucketize(number(self), boundaries, out_int32, right);
}

// Whether each of x is in the sorted row y.
Value is_in_sorted(Value x, Value y) {
  const int64_t n = y.numel();
  const Value at =
      insertion_points(hlo::reshape(y, {1, n}), hlo::reshape(x, {1, x.numel()}), false);
  const Value inside = hlo::min(at, hlo::full_like(at, n - 1));
  return hlo::reshape(
      hlo::eq(hlo::take(y, hlo::reshape(inside, {x.numel()}), 0), hlo::reshape(x, {x.numel()})),
      x.dims());
}

Value is_in_few(Value x, Value y) {
  Dims dims = x.dims();
  dims.push_back(y.numel());
  const Value element = hlo::broadcast_in_dim(x, dims, all_axes(x.rank()));
  const Value tested = hlo::broadcast_in_dim(y, dims, {x.rank()});
  return any_over(hlo::eq(element, tested), {x.rank()});
}

Value is_in(Value elements, Value tests, bool, bool invert) {
  constexpr int64_t kFew = 64;
  const DType t = result_type(Values{elements, tests});
  require(!ir::is_bool(t) && !ir::is_complex(t),
          "Unsupported input type encountered for isin(): {}", scalar_type_name(t));
  const Value x = hlo::convert(elements, t);
  const Value y = hlo::reshape(hlo::convert(tests, t), {tests.numel()});
  const Value found =
      y.numel() <= kFew ? is_in_few(x, y) : is_in_sorted(x, sort_along(y, 0, false).values);
  return invert ? ~found : found;
}

Value is_in_number(Value elements, Scalar test, bool unique, bool invert) {
  return is_in(elements, number(test), unique, invert);
}

Value number_is_in(Scalar element, Value tests, bool unique, bool invert) {
  return is_in(number(element), tests, unique, invert);
}

}  // namespace

Rules sort_rules() {
  Rules rules = {
      {"aten::sort.stable", sort},
      {"aten::topk", top_k},
      {"aten::searchsorted.Tensor", searchsorted, {.indexes = true}},
      {"aten::searchsorted.Scalar", searchsorted_number, {.indexes = true}},
      {"aten::bucketize.Tensor", bucketize},
      {"aten::bucketize.Scalar", bucketize_number},
      {"aten::isin.Tensor_Tensor", is_in},
      {"aten::isin.Tensor_Scalar", is_in_number},
      {"aten::isin.Scalar_Tensor", number_is_in},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

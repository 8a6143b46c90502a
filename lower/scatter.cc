// SPDX-License-Identifier: Apache-2.0
// Writing at positions given as data: scatter, index_add and their kin, and masked_scatter.
// Where positions repeat, an assignment keeps the last one, as PyTorch's CPU does.
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

enum class Reduction { kAssign, kSum, kProduct, kMean, kMax, kMin };

Reduction reduction_named(const std::string& name) {
  if (name == "sum" || name == "add") return Reduction::kSum;
  if (name == "prod" || name == "multiply") return Reduction::kProduct;
  if (name == "mean") return Reduction::kMean;
  if (name == "amax") return Reduction::kMax;
  if (name == "amin") return Reduction::kMin;
  fail(ErrorKind::kRuntime, "reduce argument must be either sum, prod, mean, amax or amin, got {}",
       name);
}

hlo::Combine combine_of(Reduction r) {
  switch (r) {
    case Reduction::kAssign:
      return keep_update;
    case Reduction::kSum:
    case Reduction::kMean:
      return hlo::add;
    case Reduction::kProduct:
      return hlo::mul;
    case Reduction::kMax:
      return hlo::max;
    case Reduction::kMin:
      return hlo::min;
  }
  return keep_update;
}

Value identity(Reduction r, Value x) {
  switch (r) {
    case Reduction::kProduct:
      return hlo::full_like(x, int64_t{1});
    case Reduction::kMax:
      return hlo::broadcast_to(hlo::lowest(x.graph(), x.dtype()), x.dims());
    case Reduction::kMin:
      return hlo::broadcast_to(hlo::highest(x.graph(), x.dtype()), x.dims());
    default:
      return hlo::full_like(x, int64_t{0});
  }
}

// Combines updates into a tensor, either by rows of `axis` or element by element.
using Place = std::function<Value(Value x, Value update, const hlo::Combine& combine)>;

Value mean_of(Value sum, Value count) {
  const Value n = hlo::convert(max(count, 1.0), sum.dtype());
  if (ir::is_float(sum.dtype()) || ir::is_complex(sum.dtype())) return sum / n;
  const Value quotient = sum / n;
  const Value inexact = hlo::ne(quotient * n, sum);
  return where(inexact & hlo::lt(sum, hlo::full_like(sum, int64_t{0})), quotient - 1.0, quotient);
}

Value scatter_with(Value self, Value update, Reduction r, bool include_self, const Place& place) {
  const bool assigns = r == Reduction::kAssign || r == Reduction::kMax || r == Reduction::kMin;
  const DType t = assigns ? self.dtype() : ir::compute_type(self.dtype());
  const Value start = hlo::convert(self, t);
  update = hlo::convert(update, t);
  Value base = start;
  if (!include_self) {
    const Value untouched = hlo::full(self.graph(), {DType::kPred, self.dims()}, false);
    const Value mark = hlo::full(self.graph(), {DType::kPred, update.dims()}, true);
    base = where(place(untouched, mark, keep_update), identity(r, start), start);
  }
  Value result = place(base, update, combine_of(r));
  if (r == Reduction::kMean) {
    const int64_t own = include_self ? 1 : 0;
    const Value none = hlo::full(self.graph(), {DType::kS32, self.dims()}, own);
    const Value ones = hlo::full(self.graph(), {DType::kS32, update.dims()}, int64_t{1});
    result = mean_of(result, place(none, ones, hlo::add));
  }
  return hlo::convert(result, self.dtype());
}

// The leading corner of `src` that has the index's dims.
Value corner(Value src, const Dims& dims) {
  return hlo::slice(src, Dims(dims.size(), 0), dims, Dims(dims.size(), 1));
}

Value scatter_elements(Value self, int64_t dim, Value index, Value src, Reduction r,
                       bool include_self) {
  if (index.numel() == 0) return self;
  const Dims dims = self.dims();
  const int64_t axis = wrap_axis(dim, self.rank());
  self = at_least_1d(self);
  index = at_least_1d(index);
  const int64_t size = self.dim(axis);
  check_range(index, {0, size}, out_of_bounds(axis, size), CheckKind::kRuntime);
  const Value position = as_position(index, size);
  const Value update = corner(at_least_1d(src), index.dims());
  const Place place = [&](Value x, Value u, const hlo::Combine& combine) {
    return scatter_along(x, position, u, axis, combine);
  };
  return hlo::reshape(scatter_with(self, update, r, include_self, place), dims);
}

Value scatter_src(Value self, int64_t dim, Value index, Value src) {
  return scatter_elements(self, dim, index, src, Reduction::kAssign, true);
}
Value scatter_value(Value self, int64_t dim, Value index, Scalar value) {
  const Value src = hlo::broadcast_to(value.exact(self.dtype()), index.dims());
  return scatter_elements(self, dim, index, src, Reduction::kAssign, true);
}
Value scatter_reduce_src(Value self, int64_t dim, Value index, Value src, std::string reduce) {
  return scatter_elements(self, dim, index, src, reduction_named(reduce), true);
}
Value scatter_reduce_value(Value self, int64_t dim, Value index, Scalar value, std::string reduce) {
  const Value src = hlo::broadcast_to(value.exact(self.dtype()), index.dims());
  return scatter_elements(self, dim, index, src, reduction_named(reduce), true);
}
Value scatter_add(Value self, int64_t dim, Value index, Value src) {
  return scatter_elements(self, dim, index, src, Reduction::kSum, true);
}
Value scatter_reduce(Value self, int64_t dim, Value index, Value src, std::string reduce,
                     bool include_self) {
  return scatter_elements(self, dim, index, src, reduction_named(reduce), include_self);
}

// Rows `source[..., i, ...]` at row index[i] of `self`.
Value by_rows(Value self, int64_t axis, Value position, Value source, Reduction r,
              bool include_self) {
  const Dims dims = self.dims();
  self = at_least_1d(self);
  Dims rows = self.dims();
  rows[static_cast<size_t>(axis)] = position.numel();
  const Value update = hlo::reshape(source, rows);
  const Place place = [&](Value x, Value u, const hlo::Combine& combine) {
    return scatter_rows(x, position, u, axis, combine);
  };
  return hlo::reshape(scatter_with(self, update, r, include_self, place), dims);
}

Value flat_index(Value index) { return hlo::reshape(index, {index.numel()}); }

int64_t size_along(Value x, int64_t axis) { return x.rank() == 0 ? 1 : x.dim(axis); }

Value index_add(Value self, int64_t dim, Value index, Value source, Coefficient alpha) {
  const int64_t axis = wrap_axis(dim, self.rank());
  const int64_t size = size_along(self, axis);
  const bool vector = self.rank() <= 1;
  check_range(index, {0, size}, vector ? "index out of range in self" : out_of_bounds(axis, size),
              vector ? CheckKind::kIndex : CheckKind::kRuntime);
  alpha.require_fits(self.dtype());
  const Value scaled = alpha.times(hlo::convert(source, ir::compute_type(self.dtype())));
  return by_rows(self, axis, as_position(flat_index(index), size), scaled, Reduction::kSum, true);
}

Value index_copy(Value self, int64_t dim, Value index, Value source) {
  const int64_t axis = wrap_axis(dim, self.rank());
  const int64_t size = size_along(self, axis);
  check_range(index, {0, size}, out_of_bounds(axis, size, "index_copy_(): "));
  return by_rows(self, axis, as_position(flat_index(index), size), source, Reduction::kAssign,
                 true);
}

Value index_reduce(Value self, int64_t dim, Value index, Value source, std::string reduce,
                   bool include_self) {
  const int64_t axis = wrap_axis(dim, self.rank());
  const int64_t size = size_along(self, axis);
  check_range(index, {0, size}, "index out of range in self");
  return by_rows(self, axis, as_position(flat_index(index), size), source, reduction_named(reduce),
                 include_self);
}

Value index_fill(Value self, int64_t dim, Value index, Value value) {
  require(index.dtype() == DType::kS64, "index_fill_(): Expected dtype int64 for index.");
  if (index.rank() > 1) fail(ErrorKind::kIndex, "Index has to be a vector/scalar");
  require(ir::is_complex(self.dtype()) || !ir::is_complex(value.dtype()),
          "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  const int64_t axis = wrap_axis(dim, self.rank());
  const int64_t size = size_along(self, axis);
  check_range(index, {-size, size}, out_of_bounds(axis, size));
  Dims rows = at_least_1d(self).dims();
  rows[static_cast<size_t>(axis)] = index.numel();
  const Value update = hlo::broadcast_to(hlo::convert(value, self.dtype()), rows);
  return by_rows(self, axis, from_end(flat_index(index), size), update, Reduction::kAssign, true);
}
Value index_fill_number(Value self, int64_t dim, Value index, Scalar value) {
  const bool complex_only = value.kind() == Scalar::Kind::kComplex && !ir::is_complex(self.dtype());
  if (!complex_only) value.require_fits(self.dtype());
  return index_fill(self, dim, index, number(value));
}
Value index_fill_tensor(Value self, int64_t dim, Value index, Value value) {
  require(value.rank() == 0,
          "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
          "dimension(s).",
          value.rank());
  return index_fill(self, dim, index, value);
}

void require_mask(const char* op, DType t) {
  require(t == DType::kPred, "{}: expected BoolTensor for mask, got {}", op, scalar_type_name(t));
}

// The elements of `source` in order where `mask` is true.
Value masked_scatter(Value self, Value mask, Value source) {
  require(self.dtype() == source.dtype(),
          "masked_scatter: expected self and source to have same dtypes but got{} and {}",
          scalar_type_name(self.dtype()), scalar_type_name(source.dtype()));
  require(mask.dtype() == DType::kPred,
          "masked_scatter_ only supports boolean masks, but got mask "
          "with dtype {}",
          scalar_type_name(mask.dtype()));
  const Dims dims = broadcast_dims(Values{mask, self});
  const Value target = hlo::broadcast_to(self, dims);
  const Value flat = hlo::reshape(hlo::broadcast_to(mask, dims), {target.numel()});
  if (target.numel() == 0) return target;
  const Value counted = running_count(hlo::convert(flat, DType::kS32), 0);
  const Value last = hlo::slice_axis(counted, 0, target.numel() - 1, target.numel());
  const Value trues = hlo::reshape(last, {});
  self.graph().check(trues > static_cast<double>(source.numel()), trues,
                     "Number of elements of source < number of ones in mask", CheckKind::kRuntime);
  const Value taken = take_flat(source, max(counted - 1.0, 0.0));
  return hlo::reshape(where(flat, taken, hlo::reshape(target, flat.dims())), dims);
}

// The gradients at the trues, in order, at the head of a tensor of zeros.
Value masked_scatter_backward(Value grad, Value mask, Dims sizes) {
  require_mask("masked_scatter_backward", mask.dtype());
  const int64_t count = ir::element_count(sizes);
  const Value flat = hlo::reshape(hlo::broadcast_to(mask, grad.dims()), {grad.numel()});
  const Value rank = running_count(hlo::convert(flat, DType::kS32), 0) - 1.0;
  const Value slot = where(flat, rank, static_cast<double>(count));
  const Value zeros = hlo::full(grad.graph(), {grad.dtype(), {count}}, 0.0);
  const Value result = scatter_rows(zeros, slot, hlo::reshape(grad, flat.dims()), 0, keep_update);
  return hlo::reshape(result, sizes);
}

}  // namespace

Rules scatter_rules() {
  const Traits writes{.indexes = true};
  const Traits like_self{.strides = Strides::kPreserve, .indexes = true};
  return {
      {"aten::scatter.src", scatter_src, writes},
      {"aten::scatter.value", scatter_value, writes},
      {"aten::scatter.reduce", scatter_reduce_src, writes},
      {"aten::scatter.value_reduce", scatter_reduce_value, writes},
      {"aten::scatter_add", scatter_add, writes},
      {"aten::scatter_reduce.two", scatter_reduce, writes},
      {"aten::index_add", index_add, writes},
      {"aten::index_copy", index_copy, writes},
      {"aten::index_reduce", index_reduce, writes},
      {"aten::index_fill.int_Scalar", index_fill_number, like_self},
      {"aten::index_fill.int_Tensor", index_fill_tensor, like_self},
      {"aten::masked_scatter", masked_scatter, like_self},
      {"aten::masked_scatter_backward", masked_scatter_backward},
  };
}

}  // namespace tpu::lower

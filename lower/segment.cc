// SPDX-License-Identifier: Apache-2.0
// Reductions of neighbouring rows: along one axis the data is cut into segments given by their
// lengths or their offsets. Data is seen as [outer, n, inner], segments as [outer, count].
#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/sorting.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

enum class Reduction { kSum, kMean, kProduct, kMax, kMin };

Reduction reduction_named(const std::string& name) {
  if (name == "sum") return Reduction::kSum;
  if (name == "mean") return Reduction::kMean;
  if (name == "prod") return Reduction::kProduct;
  if (name == "max" || name == "amax") return Reduction::kMax;
  if (name == "min" || name == "amin") return Reduction::kMin;
  fail(ErrorKind::kRuntime, "reduce argument must be either sum, prod, mean, amax or amin, got {}",
       name);
}

hlo::Combine combine_of(Reduction r) {
  switch (r) {
    case Reduction::kProduct:
      return hlo::mul;
    case Reduction::kMax:
      return hlo::max;
    case Reduction::kMin:
      return hlo::min;
    default:
      return hlo::add;
  }
}

Value identity(Graph& graph, Reduction r, DType t) {
  switch (r) {
    case Reduction::kProduct:
      return hlo::constant(graph, t, 1.0);
    case Reduction::kMax:
      return hlo::lowest(graph, t);
    case Reduction::kMin:
      return hlo::highest(graph, t);
    default:
      return hlo::constant(graph, t, 0.0);
  }
}

// Which segment each row belongs to, and how long the segments are.
class Segments {
 public:
  Segments(Value data, const std::optional<Value>& lengths, const std::optional<Value>& offsets,
           int64_t dim, bool unsafe)
      : dims_(data.dims()) {
    require(lengths || offsets, "segment_reduce(): Either lengths or offsets must be defined.");
    const Value given = offsets ? *offsets : *lengths;
    const std::string name = offsets ? "offsets" : "lengths";
    require(data.rank() >= given.rank(),
            "Expected data.dim() >= {}_value.dim() to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)",
            name);
    axis_ = wrap_axis(dim, data.rank());
    require(given.rank() - 1 == axis_,
            "segment_reduce(): Expected axis to be the last dimension of {} but got {}.", name,
            axis_);
    require_dtype(
        given.dtype() == DType::kS64 || given.dtype() == DType::kS32,
        offsets ? "_segment_reduce_offsets_cpu_kernel1" : "_segment_reduce_lengths_cpu_kernel1",
        given.dtype());
    const auto at = static_cast<size_t>(axis_);
    require(std::equal(dims_.begin(), dims_.begin() + axis_, given.dims().begin()),
            "segment_reduce(): Expected {} and data to agree in the dimensions before axis {}.",
            name, axis_);
    outer_ = ir::element_count(Dims(dims_.begin(), dims_.begin() + axis_));
    n_ = dims_[at];
    inner_ = ir::element_count(Dims(dims_.begin() + axis_ + 1, dims_.end()));
    if (offsets) {
      place_by_offsets(given);
    } else {
      place_by_lengths(given, unsafe);
    }
  }

  // Of the reduced tensor.
  Dims dims() const {
    Dims dims = dims_;
    dims[static_cast<size_t>(axis_)] = count_;
    return dims;
  }

  // data, of the whole tensor's dims, combined into each segment: [outer * count, inner].
  Value reduce(Value data, Value initial, const hlo::Combine& combine) const {
    const Value start = hlo::broadcast_to(initial, {outer_ * count_, inner_});
    if (data.numel() == 0 || start.numel() == 0) return start;
    return scatter_rows(start, *segment_, hlo::reshape(data, {outer_ * n_, inner_}), 0, combine);
  }

  // The segment's element of `reduced` for every row of data, `other` for rows of no segment.
  Value spread(Value reduced, double other) const {
    const Value rows = hlo::reshape(reduced, {outer_ * count_, inner_});
    const Dims dims{outer_ * n_, inner_};
    const Value last = hlo::full_like(*segment_, std::max<int64_t>(0, outer_ * count_ - 1));
    const Value found = hlo::take(rows, hlo::min(*segment_, last), 0);
    const Value inside = hlo::le(*segment_, last);
    return hlo::reshape(where(hlo::broadcast_in_dim(inside, dims, {0}), found, other), dims_);
  }
  bool empty() const { return outer_ * n_ * inner_ == 0 || count_ == 0; }

  Value lengths(DType t) const {
    const Value flat = hlo::reshape(hlo::convert(*lengths_, t), {outer_ * count_});
    return hlo::broadcast_in_dim(flat, {outer_ * count_, inner_}, {0});
  }

 private:
  void check(Value bad, const char* text) {
    const Value any = hlo::reduce_or(bad, all_axes(bad.rank()));
    bad.graph().check(any, hlo::constant(bad.graph(), DType::kS32, int64_t{0}), text,
                      CheckKind::kRuntime);
  }

  void place_by_lengths(Value given, bool unsafe) {
    count_ = given.dim(axis_);
    const Value lengths = hlo::reshape(hlo::convert(given, DType::kS64), {outer_, count_});
    if (!unsafe && lengths.numel() > 0) {
      check(lengths < 0.0, "lengths contains negative value!");
      check(differs(hlo::reduce_sum(lengths, {1}), static_cast<double>(n_)),
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe.");
    }
    lengths_ = hlo::convert(lengths, DType::kS32);
    place(running_count(*lengths_, 1));
  }

  void place_by_offsets(Value given) {
    const int64_t n = given.dim(axis_);
    count_ = std::max<int64_t>(0, n - 1);
    const Value offsets = hlo::reshape(hlo::convert(given, DType::kS32), {outer_, n});
    const Value ends = hlo::slice_axis(offsets, 1, n - count_, n);
    const Value starts = hlo::slice_axis(offsets, 1, 0, count_);
    lengths_ = ends - starts;
    if (lengths_->numel() > 0) {
      check(*lengths_ < 0.0,
            "Expected segment_length >= 0 to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)");
    }
    place(ends);
    if (count_ == 0 || n_ == 0) return;
    const Value first =
        hlo::broadcast_in_dim(hlo::slice_axis(starts, 1, 0, 1), {outer_, n_}, {0, 1});
    const Value before = hlo::lt(hlo::iota_like(first, 1, DType::kS32), first);
    segment_ =
        where(hlo::reshape(before, {outer_ * n_}), static_cast<double>(outer_ * count_), *segment_);
  }

  void place(Value ends) {
    const Dims rows{outer_, n_};
    const Value position = hlo::iota(ends.graph(), {DType::kS32, rows}, 1);
    const Value found = insertion_points(ends, position, true);
    const Value row = hlo::iota_like(found, 0, DType::kS32) * hlo::full_like(found, count_);
    const Value none = hlo::full_like(found, outer_ * count_);
    const Value outside = hlo::ge(found, hlo::full_like(found, count_));
    segment_ = hlo::reshape(hlo::select(outside, none, row + found), {outer_ * n_});
  }

  Dims dims_;
  int64_t axis_ = 0, outer_ = 0, n_ = 0, inner_ = 0, count_ = 0;
  std::optional<Value> lengths_;  // [outer, count]
  std::optional<Value> segment_;  // [outer * n], outer * count for none
};

Value start_of(Value x, Reduction r, const std::optional<Scalar>& initial) {
  return initial ? initial->as(x.dtype()) : identity(x.graph(), r, x.dtype());
}

Value segment_reduce(Value data, std::string reduce, std::optional<Value> lengths,
                     std::optional<Value> indices, std::optional<Value> offsets, int64_t axis,
                     bool unsafe, std::optional<Scalar> initial) {
  require(!indices, "segment_reduce(): indices based reduction is not supported yet.");
  const Reduction r = reduction_named(reduce);
  const Segments segments(data, lengths, offsets, axis, unsafe);
  require_float("_segment_reduce_cpu", data.dtype());
  const Value x = widened(data);
  Value result = segments.reduce(x, start_of(x, r, initial), combine_of(r));
  if (r == Reduction::kMean) {
    const Value n = segments.lengths(x.dtype());
    // Nothing of nothing is NaN, but an initial value stays.
    result = result / (initial ? max(n, 1.0) : n);
  }
  return hlo::convert(hlo::reshape(result, segments.dims()), data.dtype());
}

struct Gradient {
  const Segments& segments;
  Value x;       // the data
  Value grad;    // of each row's segment
  Value output;  // of each row's segment
  Value zero;

  Value total(Value rows, Value initial, const hlo::Combine& combine) const {
    return segments.spread(segments.reduce(rows, initial, combine), 0.0);
  }
};

// Equal shares for all elements that are the extreme.
Value extreme_gradient(const Gradient& g) {
  const Value hit = hlo::eq(g.x, g.output) | hlo::is_nan(g.x);
  const Value share = where(hit, hlo::full_like(g.x, 1.0), 0.0);
  return where(hit, g.grad / g.total(share, g.zero, hlo::add), 0.0);
}

// Where an element is 0 or NaN the product of the others is not output / x.
Value product_gradient(const Gradient& g, Value initial) {
  const Value is_zero = equals(g.x, 0.0);
  const Value is_nan = hlo::is_nan(g.x);
  const Value one = hlo::full_like(g.x, 1.0);
  const Value zeros = g.total(where(is_zero, one, 0.0), g.zero, hlo::add);
  const Value nans = g.total(where(is_nan, one, 0.0), g.zero, hlo::add);
  const Value regular = g.total(where(is_zero | is_nan, one, g.x), initial, hlo::mul);
  const Value other_nans = nans - where(is_nan, one, 0.0);
  const Value other_zeros = zeros - where(is_zero, one, 0.0);
  const Value others =
      where(other_nans > 0.0, hlo::nan_like(g.x), where(other_zeros > 0.0, 0.0, regular));
  return g.grad * where(is_zero | is_nan, others, g.output / g.x);
}

Value segment_reduce_backward(Value grad, Value output, Value data, std::string reduce,
                              std::optional<Value> lengths, std::optional<Value> offsets,
                              int64_t axis, std::optional<Scalar> initial) {
  const Reduction r = reduction_named(reduce);
  const Segments segments(data, lengths, offsets, axis, true);
  require_float("_segment_reduce_cpu", data.dtype());
  const Value x = widened(data);
  if (segments.empty()) return hlo::full_like(data, 0.0);
  const Value zero = hlo::constant(x.graph(), x.dtype(), 0.0);
  const Value own = widened(grad);
  if (r == Reduction::kSum) return hlo::convert(segments.spread(own, 0.0), data.dtype());
  if (r == Reduction::kMean) {
    const Value n = hlo::reshape(segments.lengths(x.dtype()), own.dims());
    return hlo::convert(segments.spread(own / n, 0.0), data.dtype());
  }
  const Gradient g{segments, x, segments.spread(own, 0.0), segments.spread(widened(output), 0.0),
                   zero};
  const Value result =
      r == Reduction::kProduct ? product_gradient(g, start_of(x, r, initial)) : extreme_gradient(g);
  return hlo::convert(result, data.dtype());
}

}  // namespace

Rules segment_rules() {
  Rules rules = {
      {"aten::segment_reduce", segment_reduce, {.indexes = true}},
      {"aten::_segment_reduce_backward", segment_reduce_backward},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

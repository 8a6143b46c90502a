// SPDX-License-Identifier: Apache-2.0
#include "lower/reduction.h"

#include <algorithm>
#include <limits>

#include "core/hlo/control.h"
#include "core/hlo/reduce.h"

namespace tpu::lower {
namespace {

using Reducer = Value (*)(Value, const Dims&);

// Below this many elements a slow loop order costs less than an extra pass over memory.
constexpr int64_t kLargeReduction = 1 << 16;

bool contains(const Dims& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// XLA:CPU folds a reshape into the reduction behind it, and a reduction over several axes with the
// minor one kept walks memory 20 times slower than one over a single merged axis.
bool loses_by_folding(Value x, Value merged, const Dims& axes) {
  return x.graph().target().cpu && merged.rank() < x.rank() && !axes.empty() &&
         axes.back() != merged.rank() - 1 && merged.numel() >= kLargeReduction;
}

Value reduce_merged(Value x, Dims axes, Reducer reduce) {
  if (x.numel() == 0) return reduce(x, axes);
  Dims kept;
  for (int64_t a = 0; a < x.rank(); ++a) {
    if (!contains(axes, a)) kept.push_back(x.dim(a));
  }
  Value merged = merge_axes(x, axes);
  if (loses_by_folding(x, merged, axes)) merged = hlo::optimization_barrier(merged);
  return hlo::reshape(reduce(merged, axes), kept);
}

Extreme extreme(Value x, int64_t axis, Reducer reduce) {
  const Value wide = widened(x);
  const Value best = reduce(wide, {axis});
  const DType t = x.dim(axis) <= std::numeric_limits<int32_t>::max() ? DType::kS32 : DType::kS64;
  const Value hit = hlo::eq(wide, spread(best, wide.dims(), {axis})) | hlo::is_nan(wide);
  const Value position = hlo::iota_like(wide, axis, t);
  const Value far = hlo::broadcast_to(hlo::highest(x.graph(), t), wide.dims());
  const Value index = hlo::reduce_min(hlo::select(hit, position, far), {axis});
  return {hlo::convert(best, x.dtype()), hlo::convert(index, DType::kS64)};
}

}  // namespace

Dims reduction_axes(const std::optional<Dims>& dim, int64_t rank) {
  if (!dim || dim->empty()) return all_axes(rank);
  Dims axes = wrap_axes(*dim, rank);
  if (rank == 0) return {};
  std::sort(axes.begin(), axes.end());
  return axes;
}

Dims reduction_axis(int64_t dim, int64_t rank) { return reduction_axes(Dims{dim}, rank); }

int64_t reduced_count(Value x, const Dims& axes) {
  int64_t n = 1;
  for (const int64_t a : axes) n *= x.dim(a);
  return n;
}

Value merge_axes(Value x, Dims& axes) {
  Dims dims;
  Dims reduced;
  std::optional<bool> last;
  for (int64_t a = 0; a < x.rank(); ++a) {
    if (x.dim(a) == 1) continue;
    const bool now = contains(axes, a);
    if (last == now) {
      dims.back() *= x.dim(a);
      continue;
    }
    if (now) reduced.push_back(static_cast<int64_t>(dims.size()));
    dims.push_back(x.dim(a));
    last = now;
  }
  axes = reduced;
  return hlo::reshape(x, dims);
}

Value sum_over(Value x, const Dims& axes) {
  if (ir::is_bool(x.dtype())) return count_over(x, axes);
  return reduce_merged(x, axes, hlo::reduce_sum);
}
Value prod_over(Value x, const Dims& axes) { return reduce_merged(x, axes, hlo::reduce_prod); }
Value max_over(Value x, const Dims& axes) { return reduce_merged(x, axes, hlo::reduce_max); }
Value min_over(Value x, const Dims& axes) { return reduce_merged(x, axes, hlo::reduce_min); }
Value any_over(Value x, const Dims& axes) { return reduce_merged(x, axes, hlo::reduce_or); }
Value all_over(Value x, const Dims& axes) { return reduce_merged(x, axes, hlo::reduce_and); }

Value count_over(Value x, const Dims& axes) {
  const bool fits = reduced_count(x, axes) <= std::numeric_limits<int32_t>::max();
  const DType t = fits ? DType::kS32 : DType::kS64;
  return hlo::convert(sum_over(hlo::convert(x, t), axes), DType::kS64);
}

Value mean_over(Value x, const Dims& axes) {
  return sum_over(x, axes) / static_cast<double>(reduced_count(x, axes));
}

Value with_axes(Value reduced, const Dims& dims, const Dims& axes) {
  Dims kept = dims;
  for (const int64_t a : axes) kept[static_cast<size_t>(a)] = 1;
  return hlo::reshape(reduced, kept);
}

Value spread(Value reduced, const Dims& dims, const Dims& axes) {
  Dims kept;
  for (int64_t a = 0; a < static_cast<int64_t>(dims.size()); ++a) {
    if (!contains(axes, a)) kept.push_back(a);
  }
  return hlo::broadcast_in_dim(reduced, dims, kept);
}

Value keep(Value reduced, Value x, const Dims& axes, bool keepdim) {
  return keepdim ? with_axes(reduced, x.dims(), axes) : reduced;
}

Moments moments(Value x, const Dims& axes) {
  const Value mean = mean_over(x, axes);
  const Value centered = x - spread(mean, x.dims(), axes);
  return {mean, centered, sum_over(centered * centered, axes)};
}

Extreme first_max(Value x, int64_t axis) { return extreme(x, axis, hlo::reduce_max); }
Extreme first_min(Value x, int64_t axis) { return extreme(x, axis, hlo::reduce_min); }

Value widened(Value x) { return hlo::convert(x, ir::compute_type(x.dtype())); }

Dims swap_with_minor(int64_t axis, int64_t rank) {
  Dims permutation = all_axes(rank);
  std::swap(permutation[static_cast<size_t>(axis)], permutation.back());
  return permutation;
}

Value at_least_1d(Value x) { return x.rank() == 0 ? hlo::reshape(x, {1}) : x; }

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/hlo/reduce.h"
#include "lower/indexing.h"
#include "lower/pool.h"

namespace tpu::lower {
namespace {

constexpr int64_t kMaxUnrolled = 16;
constexpr int64_t kNowhere = 0x7FFFFFFF;

Value beats(Value candidate, Value best) {
  const Value greater = candidate > best;
  return ir::is_float(candidate.dtype()) ? greater | hlo::is_nan(candidate) : greater;
}

// Whether (bv, bi) replaces (av, ai) whatever the order in which they are met.
Values merge_located(std::span<const Value> v) {
  const Value &av = v[0], &ai = v[1], &bv = v[2], &bi = v[3];
  Value take = (bv > av) | (hlo::eq(av, bv) & (bi < ai));
  if (ir::is_float(av.dtype())) {
    const Value a_nan = hlo::is_nan(av);
    const Value b_nan = hlo::is_nan(bv);
    take = where(b_nan, ~a_nan | (bi > ai), ~a_nan & take);
  }
  return {where(take, bv, av), where(take, bi, ai)};
}

Values neutral(Located x) {
  Graph& graph = x.value.graph();
  return {hlo::lowest(graph, x.value.dtype()), hlo::constant(graph, DType::kS32, kNowhere)};
}

// pred over the windows: whether offset k is the first one inside the axis.
std::optional<Value> first_inside(const AxisWindow& w, int64_t k, Value like) {
  Dims firsts;
  bool any = false;
  for (int64_t o = 0; o < w.out; ++o) {
    const bool first = w.position(o, k) >= 0 && (k == 0 || w.position(o, k - 1) < 0);
    any = any || first;
    firsts.push_back(first);
  }
  if (!any) return std::nullopt;
  const Value row = hlo::constant_array(like.graph(), {w.out}, firsts, DType::kPred);
  return hlo::broadcast_in_dim(row, like.dims(), {w.axis});
}

Located unrolled_max(Located x, const AxisWindow& w) {
  const Values fill = neutral(x);
  const auto element = [&](int64_t k) {
    return Located{window_element(x.value, w, k, fill[0]), window_element(x.index, w, k, fill[1])};
  };
  Located best = element(0);
  for (int64_t k = 1; k < w.kernel; ++k) {
    const Located next = element(k);
    Value take = beats(next.value, best.value);
    if (w.pad > 0) {
      if (const auto first = first_inside(w, k, take)) take = take | *first;
    }
    best = {where(take, next.value, best.value), where(take, next.index, best.index)};
  }
  return best;
}

Value row_of(Graph& graph, const Dims& values) {
  return hlo::constant_array(graph, {static_cast<int64_t>(values.size())}, values, DType::kS32);
}

int64_t greatest(const Dims& lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

// starts[o] + j for j below the greatest length, kept inside the axis.
Value range_indices(Graph& graph, const Dims& starts, const Dims& lengths, int64_t size) {
  Dims flat;
  const int64_t longest = greatest(lengths);
  for (const int64_t s : starts) {
    for (int64_t j = 0; j < longest; ++j) flat.push_back(std::min(s + j, size - 1));
  }
  return hlo::constant_array(graph, {static_cast<int64_t>(starts.size()), longest}, flat,
                             DType::kS32);
}

// Over dims [..., o, j, ...] with o at `axis`: j < lengths[o].
Value inside_range(Value x, int64_t axis, const Dims& lengths) {
  const Value length = hlo::broadcast_in_dim(row_of(x.graph(), lengths), x.dims(), {axis});
  return hlo::iota_like(x, axis + 1, DType::kS32) < length;
}

bool tiles(const Dims& starts, const Dims& lengths, int64_t size) {
  const int64_t n = greatest(lengths);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (lengths[i] != n || starts[i] != static_cast<int64_t>(i) * n) return false;
  }
  return static_cast<int64_t>(starts.size()) * n == size;
}

Value split_axis(Value x, int64_t axis, int64_t parts) {
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] /= std::max<int64_t>(parts, 1);
  dims.insert(dims.begin() + axis, parts);
  return hlo::reshape(x, dims);
}

// [..., o, j, ...]: the elements of every range.
Value ranges(Value x, int64_t axis, const Dims& starts, const Dims& lengths) {
  if (tiles(starts, lengths, x.dim(axis))) {
    return split_axis(x, axis, static_cast<int64_t>(starts.size()));
  }
  return hlo::take(x, range_indices(x.graph(), starts, lengths, x.dim(axis)), axis);
}

}  // namespace

Located window_max(Located x, const AxisWindow& w) {
  if (w.kernel <= kMaxUnrolled) return unrolled_max(x, w);
  hlo::Window window = hlo::Window::of_rank(x.value.rank());
  const auto axis = static_cast<size_t>(w.axis);
  window.sizes[axis] = w.kernel;
  window.strides[axis] = w.stride;
  window.window_dilations[axis] = w.dilation;
  window.pad_low[axis] = w.pad;
  window.pad_high[axis] = w.position(w.out - 1, w.kernel - 1) + 1 - w.size;
  const Values r = hlo::reduce_window({x.value, x.index}, neutral(x), window, merge_located);
  return {r[0], r[1]};
}

Located axis_max(Located x, int64_t axis) {
  const Values r = hlo::reduce({x.value, x.index}, neutral(x), {axis}, merge_located);
  return {r[0], r[1]};
}

Located range_max(Located x, int64_t axis, const Dims& starts, const Dims& lengths) {
  const Values fill = neutral(x);
  Located all{ranges(x.value, axis, starts, lengths), ranges(x.index, axis, starts, lengths)};
  if (!tiles(starts, lengths, x.value.dim(axis))) {
    const Value inside = inside_range(all.value, axis, lengths);
    all.value = where(inside, all.value, hlo::broadcast_to(fill[0], all.value.dims()));
    all.index = where(inside, all.index, hlo::broadcast_to(fill[1], all.index.dims()));
  }
  return axis_max(all, axis + 1);
}

Value flat_positions(Graph& graph, const Dims& dims, int64_t first) {
  const Dims spatial(dims.begin() + first, dims.end());
  Dims axes;
  for (int64_t a = first; a < static_cast<int64_t>(dims.size()); ++a) axes.push_back(a);
  const Value flat = hlo::iota(graph, {DType::kS32, {ir::element_count(spatial)}}, 0);
  return hlo::broadcast_in_dim(hlo::reshape(flat, spatial), dims, axes);
}

Value range_sum(Value x, int64_t axis, const Dims& starts, const Dims& lengths) {
  if (greatest(lengths) == 0) {
    Type type = x.type();
    type.dims[static_cast<size_t>(axis)] = static_cast<int64_t>(starts.size());
    return hlo::full(x.graph(), type, int64_t{0});
  }
  Value all = ranges(x, axis, starts, lengths);
  if (!tiles(starts, lengths, x.dim(axis))) {
    all = where(inside_range(all, axis, lengths), all, 0.0);
  }
  return hlo::reduce_sum(all, {axis + 1});
}

Value scatter_to_planes(Value gradient, Value index, const Dims& dims, int64_t spatial) {
  const Value wide = hlo::convert(gradient, ir::compute_type(gradient.dtype()));
  const int64_t plane = ir::element_count(Dims(dims.end() - spatial, dims.end()));
  const int64_t planes = ir::element_count(Dims(dims.begin(), dims.end() - spatial));
  const Type type{wide.dtype(), {planes * plane}};
  const Value zeros = hlo::full(wide.graph(), type, int64_t{0});
  if (wide.numel() == 0 || planes == 0)
    return hlo::convert(hlo::reshape(zeros, dims), gradient.dtype());
  const Dims per_plane{planes, wide.numel() / planes};
  const DType t = planes * plane > kNowhere ? DType::kS64 : DType::kS32;
  const Value local = hlo::convert(hlo::reshape(index, per_plane), t);
  const Value base = hlo::iota_like(local, 0, t) * hlo::full_like(local, plane);
  const Value flat = hlo::reshape(base + local, {wide.numel()});
  const Value sum = scatter_rows(zeros, flat, hlo::reshape(wide, {wide.numel()}), 0, hlo::add);
  return hlo::convert(hlo::reshape(sum, dims), gradient.dtype());
}

}  // namespace tpu::lower

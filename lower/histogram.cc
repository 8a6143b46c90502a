// SPDX-License-Identifier: Apache-2.0
// How many elements, or how much weight, falls into each bin of one or several axes.
#include <cmath>

#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/sorting.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// Up to this many bins a TPU compares with all of them, which vectorizes where a scatter does not.
constexpr int64_t kFewBins = 1024;

// The sum of weights at each of `bins` positions; weights at other positions are dropped.
Value sums_at(Value position, Value weight, int64_t bins) {
  Graph& graph = weight.graph();
  if (graph.target().cpu || bins > kFewBins) {
    const Value zeros = hlo::full(graph, {weight.dtype(), {bins}}, 0.0);
    return scatter_rows(zeros, position, weight, 0, hlo::add);
  }
  const Dims dims{position.numel(), bins};
  const Value bin = hlo::iota(graph, {position.dtype(), dims}, 1);
  const Value hit = hlo::eq(hlo::broadcast_in_dim(position, dims, {0}), bin);
  return hlo::reduce_sum(where(hit, hlo::broadcast_in_dim(weight, dims, {0}), 0.0), {0});
}

Value element(Value x, int64_t i) { return hlo::reshape(hlo::slice_axis(x, 0, i, i + 1), {}); }
Value splat(Value x, const Dims& dims) { return hlo::broadcast_to(x, dims); }

void require_bins(int64_t bins, int64_t axis) {
  require(bins > 0, "torch.histogram(): bins must be > 0, but got {} for dimension {}", bins, axis);
}

// A check that the ends, of the data's own making, are numbers.
void check_finite(Value low, Value high, const std::string& nan_text, const std::string& text) {
  Graph& graph = low.graph();
  const Value none = hlo::constant(graph, DType::kS32, int64_t{0});
  const Value nan = hlo::is_nan(low) | hlo::is_nan(high);
  const Value bad = ~(hlo::is_finite(low) & hlo::is_finite(high));
  graph.check(nan, none, nan_text, CheckKind::kRuntime);
  graph.check(bad, none, text, CheckKind::kRuntime);
}

// histc

void check_histc_range(std::span<const Number> numbers, DType) {
  const double low = to_double(numbers[0]);
  const double high = to_double(numbers[1]);
  if (low == high) return;  // the data's range
  require(std::isfinite(low) && std::isfinite(high),
          "torch.histc: range of [{:g}, {:g}] is not finite", low, high);
  require(low < high, "torch.histc: max must be larger than min");
}

struct Ends {
  Value low;
  Value high;
};

Ends apart(Ends e, double margin) {
  const Value same = hlo::eq(e.low, e.high);
  return {where(same, e.low - margin, e.low), where(same, e.high + margin, e.high)};
}

Ends histc_ends(Value x, const Scalar& min, const Scalar& max) {
  Ends e{min.as(x.dtype()), max.as(x.dtype())};
  if (x.numel() > 0) {
    const Value automatic = hlo::eq(e.low, e.high);
    e.low = hlo::select(automatic, min_over(x, {0}), e.low);
    e.high = hlo::select(automatic, max_over(x, {0}), e.high);
    check_finite(e.low, e.high, "torch.histc: range of [nan, nan] is not finite",
                 "torch.histc: range of the data is not finite");
  }
  return apart(e, 1.0);
}

Value histc(Value self, int64_t bins, Scalar min, Scalar max) {
  require_bins(bins, 0);
  require_float("histogram_cpu", self.dtype());
  const Value x = hlo::reshape(widened(self), {self.numel()});
  const Ends ends = histc_ends(x, min, max);
  const Value low = splat(ends.low, x.dims());
  const Value high = splat(ends.high, x.dims());
  const Value inside = (x >= low) & (x <= high);
  const Value place = hlo::floor((x - low) * static_cast<double>(bins) / (high - low));
  const Value bin =
      lower::min(hlo::convert(where(inside, place, 0), DType::kS32), static_cast<double>(bins - 1));
  const Value one = hlo::full_like(x, 1.0);
  return hlo::convert(sums_at(where(inside, bin, static_cast<double>(bins)), one, bins),
                      self.dtype());
}

// histogram and histogramdd

using Range = std::optional<std::vector<double>>;

// The points of one row each, the last axis being their coordinates.
Value points(Value self) {
  require(self.rank() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  const int64_t axes = self.dim(self.rank() - 1);
  return hlo::reshape(self, {axes ? self.numel() / axes : 0, axes});
}

std::string shape_text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

void check_weight(Value self, const std::optional<Value>& weight) {
  if (!weight) return;
  require(weight->dtype() == self.dtype(),
          "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
          "have the same dtype, but got input({}), and weight({})",
          cpp_name(self.dtype()), cpp_name(weight->dtype()));
  Dims dims = self.dims();
  dims.pop_back();
  require(weight->dims() == dims,
          "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
          "input tensor excluding its innermost dimension, but got input with shape {} and weight "
          "with shape {}",
          shape_text(self.dims()), shape_text(weight->dims()));
}

void require_histogram_type(DType t) {
  require_dtype(t == DType::kF32 || t == DType::kF64, "histogramdd", t);
}

void check_range(const std::vector<double>& range, int64_t axes) {
  require(static_cast<int64_t>(range.size()) == 2 * axes,
          "torch.histogramdd: for a {}-dimensional histogram range should have {} elements, but "
          "got {}",
          axes, 2 * axes, range.size());
}

Ends given_ends(Graph& graph, DType t, const std::vector<double>& range, int64_t axis) {
  const double low = range[static_cast<size_t>(2 * axis)];
  const double high = range[static_cast<size_t>(2 * axis + 1)];
  require(std::isfinite(low) && std::isfinite(high),
          "torch.histogramdd: dimension {}'s range [{:g}, {:g}] is not finite", axis, low, high);
  require(low <= high,
          "torch.histogramdd: min should not exceed max, but got min {:g} max {:g} for dimension "
          "{}",
          low, high, axis);
  return {hlo::constant(graph, t, low), hlo::constant(graph, t, high)};
}

Ends data_ends(Value column, int64_t axis) {
  if (column.numel() == 0) {
    Graph& graph = column.graph();
    return {hlo::constant(graph, column.dtype(), 0.0), hlo::constant(graph, column.dtype(), 1.0)};
  }
  const Ends e{min_over(column, {0}), max_over(column, {0})};
  check_finite(
      e.low, e.high,
      fmt::format("torch.histogramdd: dimension {}'s range [nan, nan] is not finite", axis),
      fmt::format("torch.histogramdd: dimension {}'s range is not finite", axis));
  return e;
}

// As many bins of equal width: from each end to the middle, as torch.linspace has them.
Value even_edges(const Ends& e, int64_t bins) {
  const Dims dims{bins + 1};
  const Value i = hlo::iota(e.low.graph(), {DType::kS32, dims}, 0);
  const Value step = splat((e.high - e.low) / static_cast<double>(bins), dims);
  const Value up = hlo::convert(i, step.dtype());
  const Value down = hlo::convert(hlo::full_like(i, bins) - i, step.dtype());
  const int64_t half = (bins + 1) / 2;
  return where(i < static_cast<double>(half), splat(e.low, dims) + step * up,
               splat(e.high, dims) - step * down);
}

Value column_of(Value rows, int64_t axis) {
  return hlo::reshape(hlo::slice_axis(rows, 1, axis, axis + 1), {rows.dim(0)});
}

Values edges_of(Value rows, const Dims& bins, const Range& range) {
  const int64_t axes = rows.dim(1);
  require(static_cast<int64_t>(bins.size()) == axes,
          "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  if (range) check_range(*range, axes);
  Values edges;
  for (int64_t axis = 0; axis < axes; ++axis) {
    require_bins(bins[static_cast<size_t>(axis)], axis);
    const Ends e = range ? given_ends(rows.graph(), rows.dtype(), *range, axis)
                         : data_ends(column_of(rows, axis), axis);
    edges.push_back(even_edges(apart(e, 0.5), bins[static_cast<size_t>(axis)]));
  }
  return edges;
}

// The bin of each of x; outside all of them, or NaN: -1.
Value bins_of(Value x, Value edges) {
  const int64_t n = edges.numel();
  const Value found =
      insertion_points(hlo::reshape(edges, {1, n}), hlo::reshape(x, {1, x.numel()}), true);
  const Value bin = min(hlo::reshape(found, x.dims()) - 1.0, static_cast<double>(n - 2));
  const Value inside =
      (x >= splat(element(edges, 0), x.dims())) & (x <= splat(element(edges, n - 1), x.dims()));
  return where(inside, bin, -1.0);
}

Value as_density(Value hist, const Values& edges) {
  const Dims all = all_axes(hist.rank());
  hist = hist / splat(hlo::reduce_sum(hist, all), hist.dims());
  for (size_t axis = 0; axis < edges.size(); ++axis) {
    const int64_t n = edges[axis].numel();
    const Value widths =
        hlo::slice_axis(edges[axis], 0, 1, n) - hlo::slice_axis(edges[axis], 0, 0, n - 1);
    hist = hist / hlo::broadcast_in_dim(widths, hist.dims(), {static_cast<int64_t>(axis)});
  }
  return hist;
}

Value fill_bins(Value rows, const Values& edges, const std::optional<Value>& weight, bool density) {
  Dims dims;
  Value flat = hlo::full(rows.graph(), {DType::kS32, {rows.dim(0)}}, int64_t{0});
  Value inside = hlo::full(rows.graph(), {DType::kPred, {rows.dim(0)}}, true);
  for (size_t axis = 0; axis < edges.size(); ++axis) {
    const int64_t bins = edges[axis].numel() - 1;
    require_bins(bins, static_cast<int64_t>(axis));
    const Value bin = bins_of(column_of(rows, static_cast<int64_t>(axis)), edges[axis]);
    inside = inside & (bin >= 0.0);
    flat = flat * hlo::full_like(flat, bins) + bin;
    dims.push_back(bins);
  }
  const int64_t count = ir::element_count(dims);
  const Value ones = hlo::full(rows.graph(), {rows.dtype(), {rows.dim(0)}}, 1.0);
  const Value share = weight ? hlo::reshape(*weight, {rows.dim(0)}) : ones;
  const Value sums = sums_at(where(inside, flat, static_cast<double>(count)), share, count);
  const Value hist = hlo::reshape(sums, dims);
  return density ? as_density(hist, edges) : hist;
}

void check_edges(Value rows, const Values& bins) {
  const auto axes = static_cast<size_t>(rows.dim(1));
  require(bins.size() == axes,
          "torch.histogramdd: expected {} sequences of bin edges for a {}-dimensional histogram "
          "but got {}",
          axes, axes, bins.size());
  for (size_t axis = 0; axis < axes; ++axis) {
    require(bins[axis].dtype() == rows.dtype(),
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
            "input with dtype {} and bins for dimension {} with dtype {}",
            cpp_name(rows.dtype()), axis, cpp_name(bins[axis].dtype()));
    require(bins[axis].rank() == 1,
            "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in "
            "the bins tensor for dimension {}",
            bins[axis].rank(), axis);
    require(bins[axis].numel() > 0,
            "torch.histogramdd: bins tensor should have at least 1 element, but got {} elements in "
            "the bins tensor for dimension {}",
            bins[axis].numel(), axis);
  }
}

Values bin_edges(Value self, Dims bins, Range range, std::optional<Value>, bool) {
  return edges_of(points(self), bins, range);
}

Value from_bin_counts(Value self, Dims bins, Range range, std::optional<Value> weight,
                      bool density) {
  const Value rows = points(self);
  const Values edges = edges_of(rows, bins, range);
  check_weight(self, weight);
  require_histogram_type(self.dtype());
  return fill_bins(rows, edges, weight, density);
}

Value from_bin_edges(Value self, Values bins, std::optional<Value> weight, bool density) {
  const Value rows = points(self);
  check_edges(rows, bins);
  check_weight(self, weight);
  require_histogram_type(self.dtype());
  return fill_bins(rows, bins, weight, density);
}

// One axis: the elements are points of one coordinate.
struct Line {
  Value points;
  std::optional<Value> weight;
};
Line line_of(Value self, std::optional<Value> weight) {
  const int64_t n = self.numel();
  if (weight) weight = hlo::reshape(*weight, {weight->numel()});
  return {hlo::reshape(self, {n, 1}), weight};
}

Values histogram_of_count(Value self, int64_t bins, Range range, std::optional<Value> weight,
                          bool density) {
  const Line line = line_of(self, weight);
  check_weight(line.points, line.weight);
  const Values edges = edges_of(line.points, {bins}, range);
  require_histogram_type(self.dtype());
  return {fill_bins(line.points, edges, line.weight, density), edges[0]};
}

Values histogram_of_edges(Value self, Value bins, std::optional<Value> weight, bool density) {
  const Line line = line_of(self, weight);
  return {from_bin_edges(line.points, {bins}, line.weight, density), bins};
}

}  // namespace

Rules histogram_rules() {
  Rules rules = {
      {"aten::histc", histc, {.check = check_histc_range, .indexes = true}},
      {"aten::histogram.bin_ct", histogram_of_count, {.indexes = true}},
      {"aten::histogram.bins_tensor", histogram_of_edges},
      {"aten::_histogramdd_bin_edges", bin_edges, {.indexes = true}},
      {"aten::_histogramdd_from_bin_cts", from_bin_counts, {.indexes = true}},
      {"aten::_histogramdd_from_bin_tensors", from_bin_edges},
  };
  for (Rule& rule : rules) rule.traits.reduction = true;
  return rules;
}

}  // namespace tpu::lower

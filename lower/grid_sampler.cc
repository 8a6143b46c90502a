// SPDX-License-Identifier: Apache-2.0
// Sampling of images and volumes at the points of a grid, with gradients.
#include <array>

#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/math.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

enum Interpolation : int64_t { kLinear, kNearest, kCubic };
enum Padding : int64_t { kZeros, kBorder, kReflection };

struct Options {
  int64_t interpolation;
  int64_t padding;
  bool align_corners;
};

// A coordinate and its derivative by the grid's number.
struct Coordinate {
  Value at;
  Value slope;
};

Value constant_like(Value x, double v) { return hlo::full_like(x, v); }

Coordinate unnormalized(Value g, int64_t size, bool align_corners) {
  const double half = static_cast<double>(align_corners ? size - 1 : size) / 2.0;
  const auto n = static_cast<double>(size);
  const Value at = align_corners ? ((g + 1.0) / 2.0) * (n - 1.0) : ((g + 1.0) * n - 1.0) / 2.0;
  return {at, constant_like(g, half)};
}

// NaN goes to the lower end, as in PyTorch's comparisons.
Coordinate clipped(Coordinate c, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  const Value inside = (c.at > constant_like(c.at, 0.0)) & (c.at < last);
  const Value low = where(c.at > constant_like(c.at, 0.0), min(c.at, last), 0.0);
  return {low, where(inside, c.slope, 0.0)};
}

// Reflects between low / 2 and high / 2.
Coordinate reflected(Coordinate c, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) {
    return {constant_like(c.at, 0.0), constant_like(c.at, 0.0)};
  }
  const double low = static_cast<double>(twice_low) / 2.0;
  const double span = static_cast<double>(twice_high - twice_low) / 2.0;
  const Value from_low = c.at - low;
  const Value negative = from_low < constant_like(from_low, 0.0);
  const Value distance = hlo::abs(from_low);
  const Value extra = hlo::rem(distance, constant_like(distance, span));
  const Value flips = hlo::floor(distance / span);
  const Value even = equals(flips - hlo::floor(flips * 0.5) * 2.0, 0.0);
  const Value slope = where(negative, -c.slope, c.slope);
  return {where(even, extra + low, span - extra + low), where(even, slope, -slope)};
}

Coordinate padded(Coordinate c, int64_t size, const Options& o) {
  if (o.padding == kZeros) return c;
  if (o.padding == kReflection) {
    c = o.align_corners ? reflected(c, 0, 2 * (size - 1)) : reflected(c, -1, 2 * size - 1);
  }
  return clipped(c, size);
}

// An image as rows of channels: element [n * plane + position, c].
struct Image {
  Value rows;
  Dims sizes;  // spatial
  int64_t channels;

  int64_t plane() const { return ir::element_count(sizes); }
};

Image image_of(Value input, DType t) {
  Dims order = all_axes(input.rank());
  order.erase(order.begin() + 1);
  order.push_back(1);
  const Dims sizes(input.dims().begin() + 2, input.dims().end());
  const Value last = hlo::transpose(hlo::convert(input, t), order);
  const int64_t c = input.dim(1);
  return {hlo::reshape(last, {input.dim(0) * ir::element_count(sizes), c}), sizes, c};
}

// Integral coordinates of one neighbour per point, [n, points] each, in order of spatial axes.
struct Neighbour {
  Value row;     // s32 row of the image, in range
  Value inside;  // pred
};

Neighbour neighbour(const Image& image, const Values& at) {
  Value inside = hlo::full(at[0].graph(), {DType::kPred, at[0].dims()}, true);
  Value flat = hlo::full(at[0].graph(), {DType::kS32, at[0].dims()}, int64_t{0});
  for (size_t i = 0; i < at.size(); ++i) {
    const auto last = static_cast<double>(image.sizes[i] - 1);
    inside = inside & (at[i] >= constant_like(at[i], 0.0)) & (at[i] <= last);
    const Value kept = hlo::clamp(constant_like(at[i], 0.0), at[i], constant_like(at[i], last));
    flat = flat * static_cast<double>(image.sizes[i]) +
           hlo::convert(where(inside, kept, 0.0), DType::kS32);
  }
  const Value n = hlo::iota_like(flat, 0, DType::kS32);
  return {where(inside, flat, 0.0) + n * static_cast<double>(image.plane()), inside};
}

// [n, points, c], zeros outside.
Value read(const Image& image, const Neighbour& p) {
  const Value values = hlo::take(image.rows, p.row, 0);
  return where(hlo::broadcast_in_dim(p.inside, values.dims(), {0, 1}), values, 0.0);
}

Value per_channel(Value weight, const Value& like) {
  return hlo::broadcast_in_dim(weight, like.dims(), {0, 1});
}

// A neighbour with its weight and the weight's derivative by each coordinate.
struct Term {
  Neighbour at;
  Value weight;
  Values slopes;
};

// Per axis: integral position, weight, derivative of the weight.
struct AxisTerm {
  Value at, weight, slope;
};

std::vector<AxisTerm> linear_terms(const Coordinate& c) {
  const Value base = hlo::floor(c.at);
  const Value part = c.at - base;
  return {{base, 1.0 - part, -c.slope}, {base + 1.0, part, c.slope}};
}

constexpr double kA = -0.75;

Value near_weight(Value x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1.0; }
Value far_weight(Value x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; }
Value near_slope(Value x) { return (3 * (kA + 2) * x - 2 * (kA + 3)) * x; }
Value far_slope(Value x) { return (3 * kA * x - 10 * kA) * x + 8 * kA; }

// The padding moves each of the four positions by itself.
std::vector<AxisTerm> cubic_terms(const Coordinate& c, int64_t size, const Options& o) {
  const Value base = hlo::floor(c.at);
  const Value t = c.at - base;
  const std::array<Value, 4> weights{far_weight(t + 1.0), near_weight(t), near_weight(1.0 - t),
                                     far_weight(2.0 - t)};
  const std::array<Value, 4> slopes{far_slope(t + 1.0), near_slope(t), -near_slope(1.0 - t),
                                    -far_slope(2.0 - t)};
  std::vector<AxisTerm> terms;
  for (size_t j = 0; j < 4; ++j) {
    const Value raw = base + (static_cast<double>(j) - 1.0);
    const Coordinate moved = padded({raw, raw}, size, o);
    terms.push_back({moved.at, weights[j], slopes[j] * c.slope});
  }
  return terms;
}

std::vector<AxisTerm> axis_terms(Value g, int64_t size, const Options& o) {
  const Coordinate c = unnormalized(g, size, o.align_corners);
  if (o.interpolation == kCubic) return cubic_terms(c, size, o);
  const Coordinate p = padded(c, size, o);
  if (o.interpolation == kLinear) return linear_terms(p);
  return {{hlo::round_half_even(p.at), constant_like(p.at, 1.0), constant_like(p.at, 0.0)}};
}

// Products over the axes of one choice of terms, for every choice.
std::vector<Term> all_terms(const Image& image, Value grid, const Options& o) {
  const auto n = image.sizes.size();
  std::vector<std::vector<AxisTerm>> axes;
  for (size_t i = 0; i < n; ++i) {
    // The grid lists the last axis first.
    const auto column = static_cast<int64_t>(n - 1 - i);
    const Value g =
        hlo::reshape(hlo::slice_axis(grid, 2, column, column + 1), {grid.dim(0), grid.dim(1)});
    axes.push_back(axis_terms(g, image.sizes[i], o));
  }
  size_t count = 1;
  for (const auto& a : axes) count *= a.size();
  std::vector<Term> terms;
  for (size_t choice = 0; choice < count; ++choice) {
    std::vector<const AxisTerm*> picked(n);
    size_t rest = choice;
    for (size_t i = n; i-- > 0; rest /= axes[i].size()) picked[i] = &axes[i][rest % axes[i].size()];
    Values at, slopes;
    Value weight = picked[0]->weight;
    for (size_t i = 1; i < n; ++i) weight = weight * picked[i]->weight;
    for (size_t i = 0; i < n; ++i) {
      at.push_back(picked[i]->at);
      Value slope = picked[i]->slope;
      for (size_t k = 0; k < n; ++k) {
        if (k != i) slope = slope * picked[k]->weight;
      }
      slopes.push_back(slope);
    }
    terms.push_back({neighbour(image, at), weight, slopes});
  }
  return terms;
}

// [n, ..., axes] -> [n, points, axes]
Value flat_grid(Value grid, DType t) {
  const int64_t axes = grid.dim(grid.rank() - 1);
  Dims dims = grid.dims();
  int64_t points = 1;
  for (size_t i = 1; i + 1 < dims.size(); ++i) points *= dims[i];
  return hlo::reshape(hlo::convert(grid, t), {dims[0], points, axes});
}

template <int n>
Value sample(Value input, Value grid, int64_t interpolation, int64_t padding, bool align_corners) {
  require_float(n == 2 ? "grid_sampler_2d_cpu_kernel_impl" : "grid_sampler3d_cpu", input.dtype());
  const DType t = ir::compute_type(input.dtype());
  const Image image = image_of(input, t);
  const Value points = flat_grid(grid, t);
  Dims dims{input.dim(0), input.dim(1)};
  dims.insert(dims.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  Value sum =
      hlo::full(input.graph(), {t, {points.dim(0), points.dim(1), image.channels}}, int64_t{0});
  if (sum.numel() > 0) {
    for (const Term& term : all_terms(image, points, {interpolation, padding, align_corners})) {
      const Value values = read(image, term.at);
      sum = sum + values * per_channel(term.weight, values);
    }
  }
  const Value y = hlo::reshape(hlo::transpose(sum, {0, 2, 1}), dims);
  return hlo::convert(y, input.dtype());
}

// [n, c, ...] -> [n, points, c]
Value flat_gradient(Value gradient, DType t) {
  const Dims& d = gradient.dims();
  const int64_t points = ir::element_count(Dims(d.begin() + 2, d.end()));
  return hlo::transpose(hlo::reshape(hlo::convert(gradient, t), {d[0], d[1], points}), {0, 2, 1});
}

Value image_gradient(const Image& image, Value gradient, const std::vector<Term>& terms,
                     const Dims& dims) {
  Value sum = hlo::full_like(image.rows, int64_t{0});
  for (const Term& term : terms) {
    const Value weight = where(term.at.inside, term.weight, 0.0);
    const Value update = gradient * per_channel(weight, gradient);
    const Value rows = hlo::reshape(update, {update.dim(0) * update.dim(1), image.channels});
    sum = scatter_rows(sum, hlo::reshape(term.at.row, {rows.dim(0)}), rows, 0, hlo::add);
  }
  Dims last{dims[0]};
  last.insert(last.end(), image.sizes.begin(), image.sizes.end());
  last.push_back(image.channels);
  Dims order = all_axes(static_cast<int64_t>(dims.size()));
  order.pop_back();
  order.insert(order.begin() + 1, static_cast<int64_t>(dims.size()) - 1);
  return hlo::transpose(hlo::reshape(sum, last), order);
}

Value grid_gradient(const Image& image, Value gradient, const std::vector<Term>& terms,
                    const Dims& dims) {
  const size_t n = image.sizes.size();
  Values columns(n, hlo::full(gradient.graph(),
                              {gradient.dtype(), {gradient.dim(0), gradient.dim(1)}}, int64_t{0}));
  for (const Term& term : terms) {
    const Value by_weight = sum_over(read(image, term.at) * gradient, {2});
    for (size_t i = 0; i < n; ++i) {
      columns[n - 1 - i] = columns[n - 1 - i] + by_weight * term.slopes[i];
    }
  }
  for (Value& c : columns) c = hlo::reshape(c, {c.dim(0), c.dim(1), 1});
  return hlo::reshape(hlo::concatenate(columns, 2), dims);
}

Values sample_backward(Value gradient, Value input, Value grid, int64_t interpolation,
                       int64_t padding, bool align_corners, std::vector<bool> mask) {
  const DType t = ir::compute_type(input.dtype());
  const Image image = image_of(input, t);
  const Value dy = flat_gradient(gradient, t);
  Values results(2, undefined(input.graph()));
  std::vector<Term> terms;
  if (dy.numel() > 0) {
    terms = all_terms(image, flat_grid(grid, t), {interpolation, padding, align_corners});
  }
  if (mask[0]) {
    results[0] = hlo::convert(image_gradient(image, dy, terms, input.dims()), input.dtype());
  }
  if (mask[1]) {
    results[1] = hlo::convert(grid_gradient(image, dy, terms, grid.dims()), grid.dtype());
  }
  return results;
}

}  // namespace

Rules grid_sampler_rules() {
  const Traits traits{.strides = Strides::kSuggest};
  return {
      {"aten::grid_sampler_2d", sample<2>, traits},
      {"aten::grid_sampler_3d", sample<3>, traits},
      {"aten::grid_sampler_2d_backward", sample_backward, traits},
      {"aten::grid_sampler_3d_backward", sample_backward, traits},
  };
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
// Resampling of images. Every mode is separable: per axis, each output is a weighted sum of a few
// inputs whose positions and weights are computed here, as PyTorch's CPU kernels compute them.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/hlo/contract.h"
#include "lower/families.h"
#include "lower/pool.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

using Scale = std::optional<double>;

// Output o of an axis is the sum of weights[o * count + j] * input[indices[o * count + j]].
struct Taps {
  int64_t in = 0;
  int64_t out = 0;
  int64_t count = 0;
  Dims indices;
  std::vector<double> weights;

  bool identity() const { return in == out && count == 0; }
};

// T is the type in which PyTorch computes positions: double for double images, float otherwise.
template <class T>
T area_scale(int64_t in, int64_t out, bool align_corners, const Scale& scale) {
  if (align_corners) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  if (scale && *scale > 0) return static_cast<T>(1.0 / *scale);
  return static_cast<T>(in) / static_cast<T>(out);
}

template <class T>
T source_position(T scale, int64_t o, bool align_corners) {
  const T at = static_cast<T>(o);
  return align_corners ? scale * at : scale * (at + T(0.5)) - T(0.5);
}

struct Request {
  int64_t in, out;
  bool align_corners;
  Scale scale;
};

template <class T>
Taps linear_taps(const Request& r) {
  Taps taps{r.in, r.out, 2, {}, {}};
  if (r.in == r.out) return {r.in, r.out, 0, {}, {}};
  const T scale = area_scale<T>(r.in, r.out, r.align_corners, r.scale);
  for (int64_t o = 0; o < r.out; ++o) {
    const T at = std::max(source_position(scale, o, r.align_corners), T(0));
    const int64_t i = std::min(static_cast<int64_t>(at), r.in - 1);
    const T part = std::clamp(at - static_cast<T>(i), T(0), T(1));
    taps.indices.insert(taps.indices.end(), {i, std::min(i + 1, r.in - 1)});
    taps.weights.insert(taps.weights.end(), {double(T(1) - part), double(part)});
  }
  return taps;
}

// Keys' cubic of parameter a, near (|x| < 1) and far (1 <= |x| < 2).
template <class T>
T cubic_near(T x, T a) {
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class T>
T cubic_far(T x, T a) {
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

template <class T>
Taps cubic_taps(const Request& r) {
  Taps taps{r.in, r.out, 4, {}, {}};
  if (r.in == r.out) return {r.in, r.out, 0, {}, {}};
  const T scale = area_scale<T>(r.in, r.out, r.align_corners, r.scale);
  const T a = T(-0.75);
  for (int64_t o = 0; o < r.out; ++o) {
    const T at = source_position(scale, o, r.align_corners);
    const int64_t i = std::min(static_cast<int64_t>(std::floor(at)), r.in - 1);
    const T t = std::clamp(at - static_cast<T>(i), T(0), T(1));
    for (const T w :
         {cubic_far(t + 1, a), cubic_near(t, a), cubic_near(1 - t, a), cubic_far(2 - t, a)}) {
      taps.weights.push_back(double(w));
    }
    for (int64_t j = -1; j <= 2; ++j) {
      taps.indices.push_back(std::clamp<int64_t>(i + j, 0, r.in - 1));
    }
  }
  return taps;
}

enum class Filter { kTriangle, kCubic, kLanczos };

int64_t filter_width(Filter f) { return f == Filter::kTriangle ? 2 : f == Filter::kCubic ? 4 : 6; }

template <class T>
T sinc(T x) {
  const T y = std::numbers::pi_v<T> * x;
  return x == 0 ? T(1) : std::sin(y) / y;
}

template <class T>
T filter_value(Filter f, T x) {
  x = std::abs(x);
  switch (f) {
    case Filter::kTriangle:
      return x < 1 ? 1 - x : T(0);
    case Filter::kCubic:
      return x < 1 ? cubic_near(x, T(-0.5)) : x < 2 ? cubic_far(x, T(-0.5)) : T(0);
    case Filter::kLanczos:
      return x < 3 ? sinc(x) * sinc(x / 3) : T(0);
  }
  return T(0);
}

// Antialiased: the filter is as wide as the outputs are far apart.
template <class T>
Taps filter_taps(const Request& r, Filter f) {
  const T scale = area_scale<T>(r.in, r.out, r.align_corners, r.scale);
  const T stretch = std::max(scale, T(1));
  const T support = static_cast<T>(filter_width(f)) * T(0.5) * stretch;
  Taps taps{r.in, r.out, static_cast<int64_t>(std::ceil(support)) * 2 + 1, {}, {}};
  for (int64_t o = 0; o < r.out; ++o) {
    const T center = scale * (static_cast<T>(o) + T(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + T(0.5)), 0);
    const int64_t end = std::min(static_cast<int64_t>(center + support + T(0.5)), r.in);
    const int64_t n = std::clamp<int64_t>(end - first, 0, taps.count);
    std::vector<T> weights(static_cast<size_t>(taps.count), T(0));
    T total = 0;
    for (int64_t j = 0; j < n; ++j) {
      const T x = (static_cast<T>(j + first) - center + T(0.5)) / stretch;
      total += weights[static_cast<size_t>(j)] = filter_value(f, x);
    }
    for (int64_t j = 0; j < taps.count; ++j) {
      const T w = weights[static_cast<size_t>(j)];
      taps.indices.push_back(std::clamp<int64_t>(first + j, 0, r.in - 1));
      taps.weights.push_back(double(total != 0 ? w / total : w));
    }
  }
  return taps;
}

enum class Mode { kLinear, kCubic, kTriangleFilter, kCubicFilter, kLanczosFilter };

template <class T>
Taps make_taps(Mode mode, const Request& r) {
  switch (mode) {
    case Mode::kLinear:
      return linear_taps<T>(r);
    case Mode::kCubic:
      return cubic_taps<T>(r);
    case Mode::kTriangleFilter:
      return filter_taps<T>(r, Filter::kTriangle);
    case Mode::kCubicFilter:
      return filter_taps<T>(r, Filter::kCubic);
    case Mode::kLanczosFilter:
      return filter_taps<T>(r, Filter::kLanczos);
  }
  TPU_CHECK(false, "a Mode is one of the enumerators");
}

Taps taps_for(Mode mode, DType t, const Request& r) {
  return t == DType::kF64 ? make_taps<double>(mode, r) : make_taps<float>(mode, r);
}

template <class V>
std::vector<V> column(const std::vector<V>& values, int64_t count, int64_t j) {
  std::vector<V> out;
  for (size_t i = static_cast<size_t>(j); i < values.size(); i += static_cast<size_t>(count)) {
    out.push_back(values[i]);
  }
  return out;
}

struct Column {
  Value index;   // s32[out]
  Value weight;  // [out]
};

Column tap_column(Graph& graph, const Taps& taps, int64_t j, DType t) {
  const auto weights = column(taps.weights, taps.count, j);
  return {hlo::constant_array(graph, {taps.out}, column(taps.indices, taps.count, j), DType::kS32),
          hlo::constant_array(graph, {taps.out}, std::span<const double>(weights), t)};
}

Value gathered(Value x, int64_t axis, const Taps& taps) {
  std::optional<Value> sum;
  for (int64_t j = 0; j < taps.count; ++j) {
    const Column c = tap_column(x.graph(), taps, j, x.dtype());
    const Value part = hlo::take(x, c.index, axis);
    const Value term = part * hlo::broadcast_in_dim(c.weight, part.dims(), {axis});
    sum = sum ? *sum + term : term;
  }
  return *sum;
}

// [out, in], mostly zeros.
Value matrix(Graph& graph, const Taps& taps, DType t) {
  const Dims dims{taps.out, taps.in};
  const Value position = hlo::iota(graph, {DType::kS32, dims}, 1);
  Value sum = hlo::full(graph, {t, dims}, int64_t{0});
  for (int64_t j = 0; j < taps.count; ++j) {
    const Column c = tap_column(graph, taps, j, t);
    const Value here = hlo::eq(position, hlo::broadcast_in_dim(c.index, dims, {0}));
    sum = sum + where(here, hlo::broadcast_in_dim(c.weight, dims, {0}), 0.0);
  }
  return sum;
}

// Contracts `axis` of x with axis `side` of a matrix, leaving the other one in its place.
Value multiplied(Value x, int64_t axis, Value m, int64_t side) {
  const Value y =
      hlo::dot_general(x, m, {.lhs_contract = {axis}, .rhs_contract = {side}}, x.dtype());
  Dims order;
  for (int64_t a = 0; a < x.rank(); ++a) {
    order.push_back(a == axis ? x.rank() - 1 : a < axis ? a : a - 1);
  }
  return hlo::transpose(y, order);
}

constexpr int64_t kMaxGathered = 4;

Value resampled(Value x, int64_t axis, const Taps& taps) {
  if (taps.identity()) return x;
  if (x.graph().target().cpu && taps.count <= kMaxGathered) return gathered(x, axis, taps);
  return multiplied(x, axis, matrix(x.graph(), taps, x.dtype()), 1);
}

Value resampled_back(Value x, int64_t axis, const Taps& taps) {
  if (taps.identity()) return x;
  return multiplied(x, axis, matrix(x.graph(), taps, x.dtype()), 0);
}

Value compute(Value x) {
  const DType t = ir::is_integer(x.dtype()) ? DType::kF32 : ir::compute_type(x.dtype());
  return hlo::convert(x, t);
}

Value narrow(Value y, DType t) {
  if (!ir::is_integer(t)) return hlo::convert(y, t);
  return hlo::convert(
      hlo::clamp(hlo::full_like(y, 0.0), hlo::floor(y + 0.5), hlo::full_like(y, 255.0)), t);
}

// Weights of byte images are integers over 2^bits, as many bits as keep the greatest below 2^15.
// Inputs met twice at a border are weighted once.
int quantize(Taps& taps) {
  const auto count = static_cast<size_t>(taps.count);
  for (size_t i = 0; i + 1 < taps.indices.size(); ++i) {
    if ((i + 1) % count == 0 || taps.indices[i] != taps.indices[i + 1]) continue;
    taps.weights[i + 1] += std::exchange(taps.weights[i], 0.0);
  }
  double greatest = 0;
  for (const double w : taps.weights) greatest = std::max(greatest, w);
  int bits = 0;
  while (bits < 22 && std::floor(0.5 + greatest * (1 << (bits + 1))) < (1 << 15)) ++bits;
  for (double& w : taps.weights) w = std::trunc(w * (1 << bits) + (w < 0 ? -0.5 : 0.5));
  return bits;
}

// Each axis is rounded to bytes before the next one, columns first.
Value resize_bytes(Mode mode, Value x, const Dims& size, bool align_corners,
                   const std::vector<Scale>& scales) {
  const int64_t first = x.rank() - static_cast<int64_t>(size.size());
  Value y = hlo::convert(x, DType::kS32);
  for (size_t i = size.size(); i-- > 0;) {
    const int64_t axis = first + static_cast<int64_t>(i);
    Taps taps = make_taps<double>(mode, {x.dim(axis), size[i], align_corners, scales[i]});
    if (taps.in == taps.out) continue;
    const int bits = quantize(taps);
    const Value sum = resampled(y, axis, taps) + static_cast<double>(1 << (bits - 1));
    const Value shifted = hlo::shift_right_arithmetic(sum, hlo::full_like(sum, int64_t{bits}));
    y = hlo::clamp(hlo::full_like(shifted, int64_t{0}), shifted,
                   hlo::full_like(shifted, int64_t{255}));
  }
  return hlo::convert(y, DType::kU8);
}

Value resize(Mode mode, Value x, const Dims& size, bool align_corners,
             const std::vector<Scale>& scales) {
  require_dtype(x.dtype() == DType::kU8 || ir::is_float(x.dtype()),
                "compute_indices_weights_linear", x.dtype());
  if (x.dtype() == DType::kU8 && size.size() == 2) {
    return resize_bytes(mode, x, size, align_corners, scales);
  }
  const int64_t first = x.rank() - static_cast<int64_t>(size.size());
  Value y = compute(x);
  for (size_t i = size.size(); i-- > 0;) {
    const int64_t axis = first + static_cast<int64_t>(i);
    const Request r{x.dim(axis), size[i], align_corners, scales[i]};
    y = resampled(y, axis, taps_for(mode, y.dtype(), r));
  }
  return narrow(y, x.dtype());
}

Value resize_backward(Mode mode, Value gradient, const Dims& input, bool align_corners,
                      const std::vector<Scale>& scales) {
  Value y = compute(gradient);
  const size_t first = input.size() - scales.size();
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto axis = static_cast<int64_t>(first + i);
    const Request r{input[first + i], gradient.dim(axis), align_corners, scales[i]};
    y = resampled_back(y, axis, taps_for(mode, y.dtype(), r));
  }
  return narrow(y, gradient.dtype());
}

template <Mode mode>
Value resize1(Value x, Dims size, bool align, Scale s) {
  return resize(mode, x, size, align, {s});
}
template <Mode mode>
Value resize2(Value x, Dims size, bool align, Scale h, Scale w) {
  return resize(mode, x, size, align, {h, w});
}
template <Mode mode>
Value resize3(Value x, Dims size, bool align, Scale d, Scale h, Scale w) {
  return resize(mode, x, size, align, {d, h, w});
}
template <Mode mode>
Value resize1_backward(Value g, Dims, Dims input, bool align, Scale s) {
  return resize_backward(mode, g, input, align, {s});
}
template <Mode mode>
Value resize2_backward(Value g, Dims, Dims input, bool align, Scale h, Scale w) {
  return resize_backward(mode, g, input, align, {h, w});
}
template <Mode mode>
Value resize3_backward(Value g, Dims, Dims input, bool align, Scale d, Scale h, Scale w) {
  return resize_backward(mode, g, input, align, {d, h, w});
}

// The input of every output. `exact` takes the one nearest to the output's center.
Dims nearest_sources(int64_t in, int64_t out, const Scale& s, bool exact) {
  Dims sources;
  const float scale = area_scale<float>(in, out, false, s);
  for (int64_t o = 0; o < out; ++o) {
    const float at = exact ? (static_cast<float>(o) + 0.5f) * scale : static_cast<float>(o) * scale;
    const bool simple = !exact && (in == out || out == 2 * in);
    const int64_t i = simple ? o * in / out : static_cast<int64_t>(std::floor(at));
    sources.push_back(std::min(i, in - 1));
  }
  return sources;
}

// k copies of every element in a row.
std::optional<int64_t> repeats(const Dims& sources, int64_t in) {
  const auto out = static_cast<int64_t>(sources.size());
  if (in == 0 || out % in != 0) return std::nullopt;
  const int64_t k = out / in;
  for (int64_t o = 0; o < out; ++o) {
    if (sources[static_cast<size_t>(o)] != o / k) return std::nullopt;
  }
  return k;
}

Value nearest_axis(Value x, int64_t axis, const Dims& sources) {
  const auto out = static_cast<int64_t>(sources.size());
  if (const auto k = repeats(sources, x.dim(axis))) {
    if (*k == 1) return x;
    Dims dims = x.dims();
    dims.insert(dims.begin() + axis + 1, *k);
    Dims axes = all_axes(x.rank() + 1);
    axes.erase(axes.begin() + axis + 1);
    Dims joined = x.dims();
    joined[static_cast<size_t>(axis)] = out;
    return hlo::reshape(hlo::broadcast_in_dim(x, dims, axes), joined);
  }
  return hlo::take(x, hlo::constant_array(x.graph(), {out}, sources, DType::kS32), axis);
}

Value nearest(Value x, const Dims& size, const std::vector<Scale>& scales, bool exact) {
  const int64_t first = x.rank() - static_cast<int64_t>(size.size());
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t axis = first + static_cast<int64_t>(i);
    x = nearest_axis(x, axis, nearest_sources(x.dim(axis), size[i], scales[i], exact));
  }
  return x;
}

Value nearest_backward(Value gradient, const Dims& input, const std::vector<Scale>& scales,
                       bool exact) {
  Value y = hlo::convert(gradient, ir::compute_type(gradient.dtype()));
  const size_t first = input.size() - scales.size();
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto axis = static_cast<int64_t>(first + i);
    const int64_t in = input[first + i];
    const Dims sources = nearest_sources(in, y.dim(axis), scales[i], exact);
    Dims starts, lengths;
    for (int64_t s = 0; s < in; ++s) {
      const auto [low, high] = std::equal_range(sources.begin(), sources.end(), s);
      starts.push_back(std::min<int64_t>(low - sources.begin(), y.dim(axis) - 1));
      lengths.push_back(high - low);
    }
    y = range_sum(y, axis, starts, lengths);
  }
  return hlo::convert(y, gradient.dtype());
}

template <bool exact>
Value nearest1(Value x, Dims size, Scale s) {
  return nearest(x, size, {s}, exact);
}
template <bool exact>
Value nearest2(Value x, Dims size, Scale h, Scale w) {
  return nearest(x, size, {h, w}, exact);
}
template <bool exact>
Value nearest3(Value x, Dims size, Scale d, Scale h, Scale w) {
  return nearest(x, size, {d, h, w}, exact);
}
template <bool exact>
Value nearest1_backward(Value g, Dims, Dims input, Scale s) {
  return nearest_backward(g, input, {s}, exact);
}
template <bool exact>
Value nearest2_backward(Value g, Dims, Dims input, Scale h, Scale w) {
  return nearest_backward(g, input, {h, w}, exact);
}
template <bool exact>
Value nearest3_backward(Value g, Dims, Dims input, Scale d, Scale h, Scale w) {
  return nearest_backward(g, input, {d, h, w}, exact);
}

template <Mode mode>
void add_planar(Rules& rules, const std::string& name) {
  const Traits traits{.strides = Strides::kSuggest};
  rules.emplace_back("aten::" + name, resize2<mode>, traits);
  rules.emplace_back("aten::" + name + "_backward", resize2_backward<mode>, traits);
}

template <bool exact>
void add_nearest(Rules& rules, const std::string& name) {
  const Traits traits{.strides = Strides::kSuggest};
  const std::string prefix = "aten::" + name;
  rules.emplace_back(prefix + "1d", nearest1<exact>, traits);
  rules.emplace_back(prefix + "2d", nearest2<exact>, traits);
  rules.emplace_back(prefix + "3d", nearest3<exact>, traits);
  rules.emplace_back(prefix + "1d_backward", nearest1_backward<exact>, traits);
  rules.emplace_back(prefix + "2d_backward", nearest2_backward<exact>, traits);
  rules.emplace_back(prefix + "3d_backward", nearest3_backward<exact>, traits);
}

}  // namespace

Rules upsample_rules() {
  const Traits traits{.strides = Strides::kSuggest};
  Rules rules{
      {"aten::upsample_linear1d", resize1<Mode::kLinear>, traits},
      {"aten::upsample_linear1d_backward", resize1_backward<Mode::kLinear>, traits},
      {"aten::upsample_trilinear3d", resize3<Mode::kLinear>, traits},
      {"aten::upsample_trilinear3d_backward", resize3_backward<Mode::kLinear>, traits},
  };
  add_planar<Mode::kLinear>(rules, "upsample_bilinear2d");
  add_planar<Mode::kCubic>(rules, "upsample_bicubic2d");
  add_planar<Mode::kTriangleFilter>(rules, "_upsample_bilinear2d_aa");
  add_planar<Mode::kCubicFilter>(rules, "_upsample_bicubic2d_aa");
  add_planar<Mode::kLanczosFilter>(rules, "_upsample_lanczos2d_aa");
  add_nearest<false>(rules, "upsample_nearest");
  add_nearest<true>(rules, "_upsample_nearest_exact");
  return rules;
}

}  // namespace tpu::lower

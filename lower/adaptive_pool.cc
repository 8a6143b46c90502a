// SPDX-License-Identifier: Apache-2.0
// Pooling to a given size: adaptive and fractional pooling, and the way back of max_unpool.
#include <algorithm>

#include "core/hlo/reduce.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/pool.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

// Output o of an axis covers the inputs from floor(o * size / out) to ceil((o + 1) * size / out).
struct Bins {
  int64_t axis;
  Dims starts, lengths;
};

Bins adaptive_bins(int64_t axis, int64_t size, int64_t out) {
  Bins b{axis, {}, {}};
  for (int64_t o = 0; o < out; ++o) {
    const int64_t start = o * size / out;
    b.starts.push_back(start);
    b.lengths.push_back(((o + 1) * size + out - 1) / out - start);
  }
  return b;
}

// The bins that contain each input.
Bins transposed(const Bins& b, int64_t size) {
  Bins t{b.axis, {}, {}};
  const auto count = static_cast<int64_t>(b.starts.size());
  int64_t first = 0;
  for (int64_t h = 0; h < size; ++h) {
    const auto end = [&](int64_t o) {
      return b.starts[static_cast<size_t>(o)] + b.lengths[static_cast<size_t>(o)];
    };
    while (first < count && end(first) <= h) ++first;
    int64_t last = first;
    while (last < count && b.starts[static_cast<size_t>(last)] <= h) ++last;
    t.starts.push_back(std::min(first, std::max<int64_t>(count - 1, 0)));
    t.lengths.push_back(last - first);
  }
  return t;
}

std::vector<Bins> all_bins(const Dims& dims, const Dims& out) {
  std::vector<Bins> bins;
  bins.reserve(out.size());
  const size_t first = dims.size() - out.size();
  for (size_t i = 0; i < out.size(); ++i) {
    bins.push_back(adaptive_bins(static_cast<int64_t>(first + i), dims[first + i], out[i]));
  }
  return bins;
}

Value divide_by_counts(Value x, const std::vector<Bins>& bins) {
  Value counts = hlo::full_like(x, int64_t{1});
  for (const Bins& b : bins) {
    const Value row = hlo::constant_array(x.graph(), {static_cast<int64_t>(b.lengths.size())},
                                          b.lengths, x.dtype());
    counts = counts * hlo::broadcast_in_dim(row, x.dims(), {b.axis});
  }
  return x / counts;
}

void require_not_empty(const char* name, Value x, int64_t spatial) {
  for (int64_t a = x.rank() - spatial; a < x.rank(); ++a) {
    require(x.dim(a) > 0,
            "{}(): Expected input to have non-zero size for non-batch dimensions, but input has "
            "sizes {} with dimension {} being empty",
            name, fmt::format("[{}]", ir::dims_text(x.dims())), a);
  }
}

template <int n>
Value adaptive_avg(Value x, Dims size) {
  size = spread(size, n);
  require(x.rank() == n + 1 || x.rank() == n + 2,
          "adaptive_avg_pool{}d(): Expected {}D or {}D tensor, but got [{}]", n, n + 1, n + 2,
          ir::dims_text(x.dims()));
  require_not_empty(n == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d", x, n);
  require_float(n == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d_cpu", x.dtype());
  const auto bins = all_bins(x.dims(), size);
  Value sum = hlo::convert(x, ir::compute_type(x.dtype()));
  for (size_t i = bins.size(); i-- > 0;) {
    sum = range_sum(sum, bins[i].axis, bins[i].starts, bins[i].lengths);
  }
  return hlo::convert(divide_by_counts(sum, bins), x.dtype());
}

template <int n>
Value adaptive_avg_backward(Value gradient, Value self) {
  const Dims out(gradient.dims().end() - n, gradient.dims().end());
  const auto bins = all_bins(self.dims(), out);
  Value x = divide_by_counts(hlo::convert(gradient, ir::compute_type(gradient.dtype())), bins);
  for (const Bins& b : bins) {
    const Bins t = transposed(b, self.dim(b.axis));
    x = range_sum(x, b.axis, t.starts, t.lengths);
  }
  return hlo::convert(x, gradient.dtype());
}

Located with_positions(Value x, int64_t spatial) {
  return {hlo::convert(x, ir::compute_type(x.dtype())),
          flat_positions(x.graph(), x.dims(), x.rank() - spatial)};
}

Values as_results(const Located& l, DType t) {
  return {hlo::convert(l.value, t), hlo::convert(l.index, DType::kS64)};
}

template <int n>
Values adaptive_max(Value x, Dims size) {
  require_float(n == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d_cpu", x.dtype());
  Located best = with_positions(x, n);
  const auto bins = all_bins(x.dims(), spread(size, n));
  for (size_t i = bins.size(); i-- > 0;) {
    best = range_max(best, bins[i].axis, bins[i].starts, bins[i].lengths);
  }
  return as_results(best, x.dtype());
}

template <int n>
Value adaptive_max_backward(Value gradient, Value self, Value index) {
  return scatter_to_planes(gradient, index, self.dims(), n);
}

// Starts of fractional windows along one axis: [batch, channels, out] in s32, from the sample of
// each plane.
Value fractional_starts(Value sample, int64_t size, int64_t out, int64_t kernel) {
  Dims dims = sample.dims();
  dims.push_back(out);
  if (out == 1) {
    return hlo::full(sample.graph(), {DType::kS32, dims}, size - kernel);
  }
  const Value u = hlo::broadcast_in_dim(sample, dims, all_axes(sample.rank()));
  const double alpha = static_cast<double>(size - kernel) / static_cast<double>(out - 1);
  const auto whole = [](Value x) { return hlo::convert(x, DType::kS32); };
  // PyTorch's ratio is rounded to the samples' type before use.
  const Value ratio = hlo::full_like(u, alpha);
  const Value i = hlo::iota_like(u, u.rank() - 1, u.dtype());
  const Value starts = whole((i + u) * ratio) - whole(u * ratio);
  const Value last =
      equals(hlo::iota_like(starts, starts.rank() - 1, DType::kS32), static_cast<double>(out - 1));
  return where(last, static_cast<double>(size - kernel), starts);
}

// One axis of a fractional pool; x is [batch, channels, ...].
Located fractional_axis(Located x, int64_t axis, Value starts, int64_t kernel) {
  const int64_t out = starts.dim(2);
  Dims dims = x.value.dims();
  dims[static_cast<size_t>(axis)] = out * kernel;
  const Dims windows{starts.dim(0), starts.dim(1), out, kernel};
  const Value each = hlo::broadcast_in_dim(starts, windows, {0, 1, 2});
  const Value flat = hlo::reshape(each + hlo::iota_like(each, 3, DType::kS32),
                                  {windows[0], windows[1], out * kernel});
  const Value at = hlo::broadcast_in_dim(flat, dims, {0, 1, axis});
  Dims split = dims;
  split[static_cast<size_t>(axis)] = out;
  split.insert(split.begin() + axis + 1, kernel);
  return axis_max({hlo::reshape(hlo::take_along(x.value, at, axis), split),
                   hlo::reshape(hlo::take_along(x.index, at, axis), split)},
                  axis + 1);
}

template <int n>
Values fractional_max(Value x, Dims kernel, Dims size, Value samples) {
  const bool batched = x.rank() == n + 2;
  Dims dims = x.dims();
  if (!batched) dims.insert(dims.begin(), 1);
  const Value image = hlo::reshape(x, dims);
  require(samples.rank() == 3 && samples.dim(0) >= dims[0] && samples.dim(1) == dims[1],
          "fractional_max_pool{}d: expected samples of {} planes by {}, got {}", n, dims[0],
          dims[1], samples.type().str());
  // A plane without a batch takes the first samples.
  samples = hlo::slice_axis(samples, 0, 0, dims[0]);
  Located best = with_positions(image, n);
  for (int64_t i = n; i-- > 0;) {
    // The samples of two axes come in the order width, height; those of three in axis order.
    const int64_t column = n == 2 ? 1 - i : i;
    const Value sample = hlo::reshape(hlo::slice_axis(samples, 2, column, column + 1),
                                      {samples.dim(0), samples.dim(1)});
    const auto k = static_cast<size_t>(i);
    const Value starts = fractional_starts(sample, dims[k + 2], size[k], kernel[k]);
    best = fractional_axis(best, i + 2, starts, kernel[k]);
  }
  if (!batched) {
    const Dims single(best.value.dims().begin() + 1, best.value.dims().end());
    best = {hlo::reshape(best.value, single), hlo::reshape(best.index, single)};
  }
  return as_results(best, x.dtype());
}

template <int n>
Value fractional_max_backward(Value gradient, Value self, Dims, Dims, Value index) {
  return scatter_to_planes(gradient, index, self.dims(), n);
}

Value unpool(Value x, Value index, const Dims& size, const std::string& message) {
  Dims dims(x.dims().begin(), x.dims().end() - static_cast<std::ptrdiff_t>(size.size()));
  const int64_t planes = ir::element_count(dims);
  dims.insert(dims.end(), size.begin(), size.end());
  const int64_t plane = ir::element_count(size);
  const Type flat_type{x.dtype(), {planes * plane}};
  const Value zeros = hlo::full(x.graph(), flat_type, int64_t{0});
  if (x.numel() == 0) return hlo::reshape(zeros, dims);
  check_range(index, {0, plane}, message, CheckKind::kRuntime);
  const Value local = hlo::reshape(index, {planes, x.numel() / planes});
  const Value flat = local + hlo::iota_like(local, 0, DType::kS64) * hlo::full_like(local, plane);
  const Value filled = scatter_rows(zeros, hlo::reshape(flat, {x.numel()}),
                                    hlo::reshape(x, {x.numel()}), 0, keep_update);
  return hlo::reshape(filled, dims);
}

void require_indices(Value x, Value index, const char* name) {
  require(index.dtype() == DType::kS64, "elements in indices should be type int64 but got: {}",
          scalar_type_name(index.dtype()));
  require(x.dims() == index.dims(),
          "Expected shape of indices to be same as that of the input tensor ([{}]) but got indices "
          "tensor with shape: [{}]{}",
          ir::dims_text(x.dims()), ir::dims_text(index.dims()), name);
}

Value max_unpool2d(Value x, Value index, Dims size) {
  require(
      size.size() == 2,
      "There should be exactly two elements (height, width) in output_size, but got {} elements.",
      size.size());
  require_indices(x, index, "");
  return unpool(x, index, size,
                fmt::format("Found an invalid max index: {{}} (output volumes are of size {}x{}",
                            size[0], size[1]));
}

Value max_unpool3d(Value x, Value index, Dims size, Dims, Dims) {
  require(
      size.size() == 3,
      "There should be exactly three elements (depth, height, width) in output_size, but got {} "
      "elements.",
      size.size());
  require_indices(x, index, "");
  return unpool(x, index, size,
                fmt::format("Found an invalid max index: {{}} (output volumes are of size {}x{}x{}",
                            size[0], size[1], size[2]));
}

}  // namespace

Rules adaptive_pool_rules() {
  const Traits traits{.strides = Strides::kSuggest};
  return {
      {"aten::_adaptive_avg_pool2d", adaptive_avg<2>, traits},
      {"aten::_adaptive_avg_pool3d", adaptive_avg<3>, traits},
      {"aten::_adaptive_avg_pool2d_backward", adaptive_avg_backward<2>, traits},
      {"aten::_adaptive_avg_pool3d_backward", adaptive_avg_backward<3>, traits},
      {"aten::adaptive_max_pool2d", adaptive_max<2>, traits},
      {"aten::adaptive_max_pool3d", adaptive_max<3>, traits},
      {"aten::adaptive_max_pool2d_backward", adaptive_max_backward<2>, traits},
      {"aten::adaptive_max_pool3d_backward", adaptive_max_backward<3>, traits},
      {"aten::fractional_max_pool2d", fractional_max<2>},
      {"aten::fractional_max_pool3d", fractional_max<3>},
      {"aten::fractional_max_pool2d_backward", fractional_max_backward<2>},
      {"aten::fractional_max_pool3d_backward", fractional_max_backward<3>},
      {"aten::max_unpool2d", max_unpool2d, {.strides = Strides::kSuggest, .indexes = true}},
      {"aten::max_unpool3d", max_unpool3d, {.indexes = true}},
  };
}

}  // namespace tpu::lower

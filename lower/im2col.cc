// SPDX-License-Identifier: Apache-2.0
// Rearrangements of image elements: im2col, col2im, pixel and channel shuffles.
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/math.h"
#include "lower/unsupported.h"
#include "lower/window.h"

namespace tpu::lower {
namespace {

// Number of windows along each axis.
Dims window_counts(const Dims& sizes, const Dims& kernel, const Dims& dilation, const Dims& padding,
                   const Dims& stride) {
  Dims counts;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = dilation[i] * (kernel[i] - 1) + 1;
    const int64_t room = sizes[i] + 2 * padding[i] - extent;
    counts.push_back(room < 0 ? 0 : room / stride[i] + 1);
  }
  return counts;
}

void require_positive(const char* name, const Dims& d) {
  require(d[0] > 0 && d[1] > 0,
          "{} should be greater than zero, but got {}_height: {} {}_width: {}", name, name, d[0],
          name, d[1]);
}

Value im2col(Value x, Dims kernel, Dims dilation, Dims padding, Dims stride) {
  require_positive("kernel", kernel);
  require_positive("dilation", dilation);
  require_positive("stride", stride);
  const bool batched = x.rank() == 4;
  if (!batched) x = hlo::reshape(x, {1, x.dim(0), x.dim(1), x.dim(2)});
  const Dims out = window_counts({x.dim(2), x.dim(3)}, kernel, dilation, padding, stride);
  require(out[0] >= 1 && out[1] >= 1,
          "Given input with spatial size ({}, {}), kernel_size=({}, {}), dilation=({}, {}), "
          "padding=({}, {}), calculated shape of the array of sliding blocks as ({}, {}), but its "
          "components must be at least one.",
          x.dim(2), x.dim(3), kernel[0], kernel[1], dilation[0], dilation[1], padding[0],
          padding[1], out[0], out[1]);
  const auto windows = axis_windows(x.dims(), 2, kernel, stride, padding, dilation, out);
  const Value zero = hlo::constant(x.graph(), x.dtype(), int64_t{0});
  Values columns;
  for (const Dims& k : offsets(windows)) {
    columns.push_back(hlo::reshape(window_element(x, windows, k, zero),
                                   {x.dim(0), x.dim(1), 1, out[0] * out[1]}));
  }
  Dims dims{x.dim(0), x.dim(1) * kernel[0] * kernel[1], out[0] * out[1]};
  if (!batched) dims.erase(dims.begin());
  return hlo::reshape(hlo::concatenate(columns, 2), dims);
}

Value col2im(Value x, Dims size, Dims kernel, Dims dilation, Dims padding, Dims stride) {
  require_positive("kernel", kernel);
  require_positive("dilation", dilation);
  require_positive("stride", stride);
  const bool batched = x.rank() == 3;
  if (!batched) x = hlo::reshape(x, {1, x.dim(0), x.dim(1)});
  const int64_t offsets = kernel[0] * kernel[1];
  require(x.dim(1) % offsets == 0,
          "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
          "got input.size(1)={} and kernel_size=({}, {}).",
          x.dim(1), kernel[0], kernel[1]);
  const Dims out = window_counts(size, kernel, dilation, padding, stride);
  require(x.dim(2) == out[0] * out[1],
          "Given output_size=({}, {}), kernel_size=({}, {}), dilation=({}, {}), padding=({}, {}), "
          "stride=({}, {}), expected size of input's dimension 2 to match the calculated number of "
          "sliding blocks {} * {} = {}, but got input.size(2)={}.",
          size[0], size[1], kernel[0], kernel[1], dilation[0], dilation[1], padding[0], padding[1],
          stride[0], stride[1], out[0], out[1], out[0] * out[1], x.dim(2));
  const int64_t channels = x.dim(1) / offsets;
  const Dims image{x.dim(0), channels, size[0], size[1]};
  const Value columns = hlo::reshape(hlo::convert(x, ir::compute_type(x.dtype())),
                                     {x.dim(0), channels, offsets, out[0], out[1]});
  Values parts;
  for (int64_t k = 0; k < offsets; ++k) {
    parts.push_back(
        hlo::reshape(hlo::slice_axis(columns, 2, k, k + 1), {x.dim(0), channels, out[0], out[1]}));
  }
  const Value y = fold(parts, axis_windows(image, 2, kernel, stride, padding, dilation, out));
  Dims dims = image;
  if (!batched) dims.erase(dims.begin());
  return hlo::reshape(hlo::convert(y, x.dtype()), dims);
}

}  // namespace

Rules im2col_rules() {
  return {
      {"aten::im2col", im2col},
      {"aten::col2im", col2im},
  };
}

}  // namespace tpu::lower

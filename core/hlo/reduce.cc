// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/reduce.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/hlo/attributes.h"

namespace tpu::hlo {
namespace {

using BinaryBuilder = Value (*)(Value, Value);

std::vector<Type> element_types(const Values& values, int repeat) {
  std::vector<Type> types;
  for (int i = 0; i < repeat; ++i) {
    for (const Value& v : values) types.push_back({v.dtype(), {}});
  }
  return types;
}

void check_initial(const Values& operands, const Values& initial) {
  TPU_CHECK(!operands.empty() && operands.size() == initial.size(),
            "every operand has an initial value");
  for (size_t i = 0; i < operands.size(); ++i) {
    TPU_CHECK(initial[i].type() == (Type{operands[i].dtype(), {}}),
              "an initial value is one number of its operand's type");
    TPU_CHECK(operands[i].dims() == operands[0].dims(), "operands have equal dimensions");
  }
}

Values all_of(const Values& operands, const Values& initial) {
  Values all = operands;
  all.insert(all.end(), initial.begin(), initial.end());
  return all;
}

std::vector<Type> with_dims(const Values& operands, const Dims& dims) {
  std::vector<Type> types;
  for (const Value& operand : operands) types.push_back({operand.dtype(), dims});
  return types;
}

ReduceBody body_of(BinaryBuilder op) {
  return [op](std::span<const Value> v) { return Values{op(v[0], v[1])}; };
}

Value reduce_one(Value x, Value initial, const Dims& axes, BinaryBuilder op) {
  return reduce({x}, {initial}, axes, body_of(op))[0];
}

Value number(Value x, int64_t v) { return constant(x.graph(), x.dtype(), v); }

void check_window(int64_t rank, const Window& w) {
  for (const Dims* d :
       {&w.sizes, &w.strides, &w.base_dilations, &w.window_dilations, &w.pad_low, &w.pad_high}) {
    TPU_CHECK(static_cast<int64_t>(d->size()) == rank, "a window has one entry per axis");
  }
}

int64_t dilated(int64_t size, int64_t dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

// PyTorch's pooling takes a later element that is greater or NaN.
Value keeps_maximum(Value best, Value next) {
  const Value greater = gt(next, best);
  if (!is_float(next.dtype())) return not_(greater);
  return not_(or_(greater, is_nan(next)));
}

}  // namespace

Values reduce(const Values& operands, const Values& initial, const Dims& axes,
              const ReduceBody& body) {
  check_initial(operands, initial);
  if (axes.empty()) return operands;
  Dims sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  Dims dims;
  for (const int64_t axis : other_axes(operands[0].rank(), axes)) {
    dims.push_back(operands[0].dim(axis));
  }
  return operands[0].graph().node({.op = "stablehlo.reduce",
                                   .inputs = all_of(operands, initial),
                                   .results = with_dims(operands, dims),
                                   .attributes = "dimensions = " + array_text(sorted),
                                   .blocks = {{element_types(operands, 2), body}}});
}

Value reduce_sum(Value x, const Dims& axes) { return reduce_one(x, number(x, 0), axes, add); }
Value reduce_prod(Value x, const Dims& axes) { return reduce_one(x, number(x, 1), axes, mul); }

Value reduce_max(Value x, const Dims& axes) {
  return reduce_one(x, lowest(x.graph(), x.dtype()), axes, max);
}

Value reduce_min(Value x, const Dims& axes) {
  return reduce_one(x, highest(x.graph(), x.dtype()), axes, min);
}

Value reduce_and(Value x, const Dims& axes) {
  return reduce_one(x, number(x, is_bool(x.dtype()) ? 1 : -1), axes, and_);
}

Value reduce_or(Value x, const Dims& axes) { return reduce_one(x, number(x, 0), axes, or_); }

Window Window::of_rank(int64_t rank) {
  const Dims ones(static_cast<size_t>(rank), 1);
  const Dims zeros(static_cast<size_t>(rank), 0);
  return {ones, ones, ones, ones, zeros, zeros};
}

Dims window_result_dims(DimSpan dims, const Window& w) {
  check_window(static_cast<int64_t>(dims.size()), w);
  Dims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t padded = dilated(dims[i], w.base_dilations[i]) + w.pad_low[i] + w.pad_high[i];
    const int64_t window = dilated(w.sizes[i], w.window_dilations[i]);
    result.push_back(padded < window ? 0 : (padded - window) / w.strides[i] + 1);
  }
  return result;
}

Values reduce_window(const Values& operands, const Values& initial, const Window& window,
                     const ReduceBody& body) {
  check_initial(operands, initial);
  const Dims dims = window_result_dims(operands[0].dims(), window);
  return operands[0].graph().node(
      {.op = "stablehlo.reduce_window",
       .inputs = all_of(operands, initial),
       .results = with_dims(operands, dims),
       .attributes = fmt::format(
           "window_dimensions = {}, window_strides = {}, base_dilations = {}, "
           "window_dilations = {}, padding = {}",
           array_text(window.sizes), array_text(window.strides), array_text(window.base_dilations),
           array_text(window.window_dilations), padding_text(window.pad_low, window.pad_high)),
       .blocks = {{element_types(operands, 2), body}}});
}

Value reduce_window_sum(Value x, const Window& window) {
  return reduce_window({x}, {number(x, 0)}, window, body_of(add))[0];
}

Value reduce_window_max(Value x, const Window& window) {
  return reduce_window({x}, {lowest(x.graph(), x.dtype())}, window, body_of(max))[0];
}

Value select_and_scatter_add(Value operand, Value source, const Window& window) {
  TPU_CHECK(source.type() == (Type{operand.dtype(), window_result_dims(operand.dims(), window)}),
            "one source element per window");
  const Type element{operand.dtype(), {}};
  const auto select = [](std::span<const Value> v) { return Values{keeps_maximum(v[0], v[1])}; };
  return operand.graph().node1(
      {.op = "stablehlo.select_and_scatter",
       .inputs = {operand, source, number(operand, 0)},
       .results = {operand.type()},
       .attributes = fmt::format("window_dimensions = {}, window_strides = {}, padding = {}",
                                 array_text(window.sizes), array_text(window.strides),
                                 padding_text(window.pad_low, window.pad_high)),
       .blocks = {{{element, element}, select}, {{element, element}, body_of(add)}}});
}

}  // namespace tpu::hlo

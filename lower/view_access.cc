// SPDX-License-Identifier: Apache-2.0
// The graph side of the view algebra: reading and writing through a decoded form.
#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "lower/view_elements.h"
#include "lower/view_map.h"

namespace tpu::lower {
namespace {

using ir::Graph;

DType index_type(int64_t size) {
  return size > std::numeric_limits<int32_t>::max() ? DType::kS64 : DType::kS32;
}

// Covers all the elements that the form's steps jump over, too.
Dims window_sizes(const ViewForm& form) {
  Dims sizes = form.lengths;
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = (sizes[i] - 1) * form.steps[i] + 1;
  return sizes;
}

bool steps_over(const ViewForm& form) {
  return std::any_of(form.steps.begin(), form.steps.end(), [](int64_t s) { return s > 1; });
}

// The start of each axis as a graph value, a constant where there is no choice.
Values start_values(Graph& graph, const ViewForm& form, const Dims& window, const Values& starts) {
  TPU_CHECK(starts.empty() || starts.size() == form.reshaped.size(), "one start per axis");
  const DType t = index_type(*std::max_element(form.reshaped.begin(), form.reshaped.end()));
  Values result;
  for (size_t i = 0; i < form.reshaped.size(); ++i) {
    if (starts.empty() || window[i] == form.reshaped[i]) {
      result.push_back(hlo::constant(graph, t, starts.empty() ? form.starts[i] : int64_t{0}));
    } else {
      result.push_back(t == DType::kS32 ? starts[i] : hlo::convert(starts[i], t));
    }
  }
  return result;
}

// The sliced form's elements, dims = form.lengths.
Value read_sliced(Value x, const ViewForm& form, const Values& starts) {
  const Dims window = window_sizes(form);
  const bool whole = window == form.reshaped;
  if (whole && !steps_over(form)) return x;
  Dims first = form.starts;
  if (!starts.empty() && !whole) {
    x = hlo::dynamic_slice(x, start_values(x.graph(), form, window, starts), window);
    if (!steps_over(form)) return x;
  }
  if (!starts.empty()) first.assign(first.size(), 0);
  Dims limits = first;
  for (size_t i = 0; i < limits.size(); ++i) limits[i] += window[i];
  return hlo::slice(x, first, limits, form.steps);
}

// True where the steps from a window's start arrive, dims = `window`.
Value step_mask(Graph& graph, const ViewForm& form, const Dims& window) {
  std::optional<Value> mask;
  for (size_t i = 0; i < window.size(); ++i) {
    if (form.steps[i] == 1) continue;
    const Value position = hlo::iota(graph, {index_type(window[i]), {window[i]}}, 0);
    const Value phase = hlo::rem(position, hlo::full_like(position, form.steps[i]));
    const Value arrives = hlo::eq(phase, hlo::full_like(position, int64_t{0}));
    const Value wide = hlo::broadcast_in_dim(arrives, window, {static_cast<int64_t>(i)});
    mask = mask ? hlo::and_(*mask, wide) : wide;
  }
  return *mask;
}

Value write_sliced(Value x, const ViewForm& form, Value value, const Values& starts) {
  const Dims window = window_sizes(form);
  const bool whole = window == form.reshaped;
  if (steps_over(form)) {
    ViewForm box = form;
    box.lengths = window;
    box.steps.assign(window.size(), 1);
    const Value old = read_sliced(x, box, starts);
    const Dims none(window.size(), 0);
    Dims interior = form.steps;
    for (int64_t& n : interior) --n;
    const Value zero = hlo::constant(x.graph(), x.dtype(), int64_t{0});
    const Value spread = hlo::pad(value, zero, none, none, interior);
    value = hlo::select(step_mask(x.graph(), form, window), spread, old);
  }
  if (whole) return value;
  return hlo::dynamic_update_slice(x, value, start_values(x.graph(), form, window, starts));
}

// The part of x that a split takes, before the axis is split.
Value cut(Value x, const ViewForm::Split& split) {
  const int64_t size = x.dim(split.axis);
  if (split.size <= size) {
    if (split.size == size) return x;
    return hlo::slice_axis(x, split.axis, split.start, split.start + split.size);
  }
  const Dims none(x.dims().size(), 0);
  Dims high = none;
  high[static_cast<size_t>(split.axis)] = split.size - size;
  return hlo::pad(x, hlo::constant(x.graph(), x.dtype(), int64_t{0}), none, high, none);
}

// x with the part that a split takes replaced by `y`.
Value uncut(Value x, const ViewForm::Split& split, Value y) {
  const int64_t size = x.dim(split.axis);
  if (split.size == size) return y;
  if (split.size > size) return hlo::slice_axis(y, split.axis, 0, size);
  const DType t = index_type(*std::max_element(x.dims().begin(), x.dims().end()));
  Values starts;
  for (int64_t i = 0; i < x.rank(); ++i) {
    starts.push_back(hlo::constant(x.graph(), t, i == split.axis ? split.start : int64_t{0}));
  }
  return hlo::dynamic_update_slice(x, y, starts);
}

Value split_axis(Value x, const ViewForm::Split& split) {
  Dims dims = x.dims();
  const auto at = dims.begin() + split.axis;
  *at = split.size / split.inner;
  dims.insert(at + 1, split.inner);
  return hlo::reshape(x, dims);
}

Value read_split(Value x, const ViewForm& form, const Values& starts) {
  x = hlo::reshape(x, form.merged);
  for (const ViewForm::Split& split : form.splits) x = split_axis(cut(x, split), split);
  return read_sliced(x, form, starts);
}

Value write_split(Value x, const ViewForm& form, size_t level, Value value, const Values& starts) {
  if (level == form.splits.size()) return write_sliced(x, form, value, starts);
  const ViewForm::Split& split = form.splits[level];
  const Value part = cut(x, split);
  const Value y = write_split(split_axis(part, split), form, level + 1, value, starts);
  return uncut(x, split, hlo::reshape(y, part.dims()));
}

// The view's sizes without the axes that repeat elements.
Dims distinct_sizes(const ViewForm& form) {
  Dims sizes;
  for (const int64_t axis : form.broadcast_axes) {
    sizes.push_back(form.map.sizes[static_cast<size_t>(axis)]);
  }
  return sizes;
}

// Positions in the flat array, dims = distinct_sizes().
Value flat_positions(Graph& graph, const ViewForm& form, const Values& starts) {
  const Type type{index_type(form.reshaped[0]), distinct_sizes(form)};
  Value position = hlo::full(graph, type, form.map.offset);
  if (!starts.empty()) {
    position = hlo::broadcast_in_dim(hlo::convert(starts[0], type.dtype), type.dims, {});
  }
  for (size_t i = 0; i < type.dims.size(); ++i) {
    const int64_t stride = form.map.strides[static_cast<size_t>(form.broadcast_axes[i])];
    if (type.dims[i] == 1) continue;
    const Value index = hlo::iota(graph, type, static_cast<int64_t>(i));
    position = hlo::add(position, hlo::mul(index, hlo::full(graph, type, stride)));
  }
  return position;
}

Value write_scattered(Value x, const ViewForm& form, Value value, const Values& starts) {
  const Value positions = flat_positions(x.graph(), form, starts);
  const hlo::ScatterDims dims{.update_window_dims = {},
                              .inserted_window_dims = {0},
                              .scatter_dims_to_operand_dims = {0},
                              .index_vector_dim = positions.rank()};
  return hlo::scatter(x, positions, value, dims, [](Value, Value update) { return update; });
}

// From one value per distinct element to the view's sizes.
Value repeat(Value x, const ViewForm& form) {
  if (x.numel() == ir::element_count(form.map.sizes)) return hlo::reshape(x, form.map.sizes);
  return hlo::broadcast_in_dim(x, form.map.sizes, form.broadcast_axes);
}

// One of the equal claims on each element, dims = distinct_sizes().
Value unrepeat(Value value, const ViewForm& form) {
  const Dims sizes = distinct_sizes(form);
  if (value.numel() != ir::element_count(sizes)) {
    Dims limits(form.map.sizes.size(), 1);
    for (const int64_t axis : form.broadcast_axes) {
      limits[static_cast<size_t>(axis)] = form.map.sizes[static_cast<size_t>(axis)];
    }
    value = hlo::slice(value, Dims(limits.size(), 0), limits, Dims(limits.size(), 1));
  }
  return hlo::reshape(value, sizes);
}

Dims inverse(const Dims& permutation) {
  Dims result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  return result;
}

// The dtype that elements are moved in. XLA:CPU moves bf16 and 8-bit floats by way of wider floats,
// which touches the whole array instead of the written part, quiets NaNs and even changes some
// 8-bit numbers. Reads of bf16 stay as they are: products look for transposes of their operands.
DType moved_dtype(const Graph& graph, DType t, bool write) {
  if (!graph.target().cpu || !ir::is_float(t)) return t;
  if (byte_size(t) == 1) return DType::kU8;
  return t == DType::kBF16 && write ? DType::kU16 : t;
}

Value write_elements(Value x, const ViewForm& form, Value value, const Values& starts) {
  const Dims dims = x.dims();
  x = hlo::reshape(x, form.merged);
  value = unrepeat(value, form);
  if (form.gather) {
    x = write_scattered(x, form, value, starts);
  } else {
    value = hlo::reshape(hlo::transpose(value, inverse(form.permutation)), form.lengths);
    x = write_split(x, form, 0, value, starts);
  }
  return hlo::reshape(x, dims);
}

}  // namespace

Value read_view(Value array, const ViewForm& form, const Values& starts) {
  const Type type{form.map.dtype, form.map.sizes};
  if (type.numel() == 0) return hlo::full(array.graph(), type, int64_t{0});
  if (array.type() == type && form.map.strides == dense_strides(type.dims)) return array;
  const Graph& graph = array.graph();
  const DType t = moved_dtype(graph, element_dtype(array.dtype(), type.dtype), false);
  Value x = hlo::bitcast(array, moved_dtype(graph, array.dtype(), false));
  for (const Type& layer : element_layers(x.type(), t)) x = apply_layer(layer, x);
  if (form.gather) {
    x = hlo::take(hlo::reshape(x, form.reshaped), flat_positions(x.graph(), form, starts), 0);
  } else {
    x = read_split(x, form, starts);
    // One reshape instead of two where nothing moves.
    const bool moves = !std::is_sorted(form.permutation.begin(), form.permutation.end());
    if (moves || x.numel() != type.numel()) {
      x = hlo::transpose(hlo::reshape(x, form.distinct), form.permutation);
    }
  }
  return hlo::bitcast(repeat(x, form), type.dtype);
}

Value write_view(Value array, const ViewForm& form, Value value, const Values& starts) {
  TPU_CHECK(value.type() == (Type{form.map.dtype, form.map.sizes}), "a value fits its view");
  if (value.numel() == 0) return array;
  const Graph& graph = array.graph();
  const DType t = moved_dtype(graph, element_dtype(array.dtype(), form.map.dtype), true);
  Values before{hlo::bitcast(array, moved_dtype(graph, array.dtype(), true))};
  for (const Type& layer : element_layers(before[0].type(), t)) {
    before.push_back(apply_layer(layer, before.back()));
  }
  Value x = write_elements(before.back(), form, hlo::bitcast(value, t), starts);
  for (size_t i = before.size() - 1; i-- > 0;) x = undo_layer(x, before[i]);
  return hlo::bitcast(x, array.dtype());
}

Value to_memory(Value value, const ViewMap& map, int64_t storage_elements) {
  const std::optional<Dims> order = memory_order(map);
  if (order && map.offset == 0 && storage_elements == value.numel()) {
    return hlo::transpose(value, *order);
  }
  const Type memory{value.dtype(), {storage_elements}};
  const Value zeros = hlo::full(value.graph(), memory, int64_t{0});
  return write_view(zeros, decode_view(memory, map), value);
}

}  // namespace tpu::lower

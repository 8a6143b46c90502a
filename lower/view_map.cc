// SPDX-License-Identifier: Apache-2.0
// The metadata side of the view algebra: no graph is touched here.
#include "lower/view_map.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "lower/view_elements.h"

namespace tpu::lower {
namespace {

bool repeats(const ViewMap& map, size_t axis) {
  return map.strides[axis] == 0 && map.sizes[axis] > 1;
}

// All axes but those that repeat elements, from slowest to fastest. An axis of size 1 has no place
// of its own and follows the axis before it.
Dims by_stride(const ViewMap& map) {
  Dims order;
  for (size_t i = 0; i < map.sizes.size(); ++i) {
    if (map.sizes[i] != 1 && !repeats(map, i)) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return map.strides[static_cast<size_t>(a)] > map.strides[static_cast<size_t>(b)];
  });
  for (size_t i = 0; i < map.sizes.size(); ++i) {
    if (map.sizes[i] != 1) continue;
    const auto before = std::find(order.begin(), order.end(), static_cast<int64_t>(i) - 1);
    order.insert(before == order.end() ? order.begin() : before + 1, static_cast<int64_t>(i));
  }
  return order;
}

// The distance from the view's first element to its last.
int64_t span_of(const ViewMap& map) {
  int64_t span = 0;
  for (size_t i = 0; i < map.sizes.size(); ++i) span += (map.sizes[i] - 1) * map.strides[i];
  return span;
}

// `count` elements, `stride` apart.
struct Run {
  int64_t count;
  int64_t stride;
};

// The view's axes from slowest to fastest, those that continue each other joined into one.
std::vector<Run> runs_of(const ViewMap& map, const Dims& order) {
  std::vector<Run> runs;
  for (const int64_t axis : order) {
    const Run run{map.sizes[static_cast<size_t>(axis)], map.strides[static_cast<size_t>(axis)]};
    if (run.count == 1) continue;
    if (!runs.empty() && runs.back().stride == run.count * run.stride) {
      runs.back() = {runs.back().count * run.count, run.stride};
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

// An axis of the array and what the view takes of it: positions start + sum of i_k *
// runs[k].stride.
struct Axis {
  int64_t size;
  int64_t start = 0;
  std::vector<Run> runs = {};  // slowest first, strides in steps of this axis

  int64_t last() const {
    int64_t position = start;
    for (const Run& run : runs) position += (run.count - 1) * run.stride;
    return position;
  }
};

// Spreads runs over the axes of an array of these dims.
class Placement {
 public:
  Placement(const Dims& dims, int64_t offset) : strides_(dense_strides(dims)) {
    for (size_t i = 0; i < dims.size(); ++i) {
      axes_.push_back({.size = dims[i], .start = offset / strides_[i]});
      offset %= strides_[i];
    }
  }

  // The number of an axis which has to be merged with the next one, nullopt if all runs fit.
  std::optional<size_t> place(const std::vector<Run>& runs) {
    for (size_t r = runs.size(); r-- > 0;) {
      if (auto axis = place(runs[r])) return axis;
    }
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i].last() >= axes_[i].size) return i - 1;
    }
    return std::nullopt;
  }

  const std::vector<Axis>& axes() const { return axes_; }

 private:
  std::optional<size_t> place(Run run) {
    while (run.count > 1) {
      const size_t i = axis_of(run.stride);
      Axis& axis = axes_[i];
      if (run.stride % strides_[i] != 0) return i;
      const int64_t step = run.stride / strides_[i];
      int64_t count = run.count;
      if (axis.start + (count - 1) * step >= axis.size) {
        // The run goes on in the next slower axis, which works if it leaves this one in step.
        count = axis.size / step;
        if (axis.size % step != 0 || axis.start >= step || run.count % count != 0) return i - 1;
      }
      axis.runs.insert(axis.runs.begin(), {count, step});
      run = {run.count / count, strides_[i] * axis.size};
    }
    return std::nullopt;
  }

  // The slowest axis that moves by no more than `stride`.
  size_t axis_of(int64_t stride) const {
    size_t i = 0;
    while (axes_[i].size == 1 || strides_[i] > stride) ++i;
    return i;
  }

  Dims strides_;
  std::vector<Axis> axes_;
};

void merge_with_next(Dims& dims, size_t axis) {
  TPU_CHECK(axis < dims.size() - 1, "a view that stays in its storage fits the flat array");
  dims[axis] *= dims[axis + 1];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
}

// Appends an axis to the form, split until each part holds one run; false if runs overlap.
bool add_axis(Axis axis, ViewForm& form) {
  while (axis.runs.size() > 1) {
    const Run outer = axis.runs.front();
    axis.runs.erase(axis.runs.begin());
    const int64_t width = axis.last() - axis.start + 1;
    const int64_t inner = outer.stride;
    if (width > inner) return false;
    ViewForm::Split split{static_cast<int64_t>(form.reshaped.size()), 0, axis.size, inner};
    if (axis.size % inner != 0 || axis.start % inner + width > inner) {
      split.size = outer.count * inner;
      split.start = std::min(axis.start, std::max<int64_t>(axis.size - split.size, 0));
    }
    form.splits.push_back(split);
    axis.start -= split.start;
    form.reshaped.push_back(split.size / inner);
    form.starts.push_back(axis.start / inner);
    form.lengths.push_back(outer.count);
    form.steps.push_back(1);
    axis.size = inner;
    axis.start %= inner;
  }
  const Run run = axis.runs.empty() ? Run{1, 1} : axis.runs.front();
  form.reshaped.push_back(axis.size);
  form.starts.push_back(axis.start);
  form.lengths.push_back(run.count);
  form.steps.push_back(run.stride);
  return true;
}

void make_gather(ViewForm& form, int64_t elements) {
  form.gather = true;
  form.merged = form.reshaped = {elements};
  form.starts = {form.map.offset};
  form.splits.clear();
  form.lengths.clear();
  form.steps.clear();
}

// Where the view's axes of distinct elements go: from memory order to the view's.
void set_order(ViewForm& form, const Dims& order) {
  for (const int64_t axis : order)
    form.distinct.push_back(form.map.sizes[static_cast<size_t>(axis)]);
  form.broadcast_axes = order;
  std::sort(form.broadcast_axes.begin(), form.broadcast_axes.end());
  for (const int64_t axis : form.broadcast_axes) {
    form.permutation.push_back(std::find(order.begin(), order.end(), axis) - order.begin());
  }
}

Dims element_dims(const Type& array, DType view) {
  const std::vector<Type> layers = element_layers(array, element_dtype(array.dtype, view));
  return layers.empty() ? array.dims : layers.back().dims;
}

}  // namespace

Dims dense_strides(ir::DimSpan dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

std::optional<Dims> memory_order(const ViewMap& map) {
  if (ir::element_count(map.sizes) == 0) {
    Dims order(map.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  Dims order = by_stride(map);
  if (order.size() != map.sizes.size()) return std::nullopt;
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(order[i]);
    if (map.sizes[axis] == 1) continue;
    if (map.strides[axis] != expected) return std::nullopt;
    expected *= map.sizes[axis];
  }
  return order;
}

bool covers(const Type& array, const ViewMap& map) {
  const Type view{map.dtype, map.sizes};
  if (view.bytes() != array.bytes()) return false;
  return array.bytes() == 0 || (map.offset == 0 && memory_order(map).has_value());
}

ViewForm decode_view(const Type& array, const ViewMap& map) {
  ViewForm form;
  form.map = map;
  if (ir::element_count(map.sizes) == 0) return form;
  form.merged = element_dims(array, map.dtype);
  const int64_t elements = ir::element_count(form.merged);
  TPU_CHECK(map.offset >= 0 && map.offset + span_of(map) < elements,
            "PyTorch keeps views inside their storage");
  const Dims order = by_stride(map);
  set_order(form, order);
  const std::vector<Run> runs = runs_of(map, order);
  Placement placement(form.merged, map.offset);
  while (const auto axis = placement.place(runs)) {
    merge_with_next(form.merged, *axis);
    placement = Placement(form.merged, map.offset);
  }
  for (const Axis& axis : placement.axes()) {
    if (!add_axis(axis, form)) {
      make_gather(form, elements);
      break;
    }
  }
  return form;
}

std::optional<Dims> starts_for_offset(const ViewForm& form, int64_t offset) {
  Dims starts;
  if (ir::element_count(form.map.sizes) == 0) return starts;
  if (offset < 0 || offset + span_of(form.map) >= ir::element_count(form.merged)) {
    return std::nullopt;
  }
  starts.reserve(form.reshaped.size());
  starts.resize(form.merged.size());
  for (size_t i = form.merged.size(); i-- > 0;) {
    starts[i] = offset % form.merged[i];
    offset /= form.merged[i];
  }
  for (const ViewForm::Split& split : form.splits) {
    const auto at = starts.begin() + split.axis;
    const int64_t position = *at - split.start;
    if (position < 0 || position >= split.size) return std::nullopt;
    *at = position / split.inner;
    starts.insert(at + 1, position % split.inner);
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t reach = form.gather ? 0 : (form.lengths[i] - 1) * form.steps[i];
    if (starts[i] + reach >= form.reshaped[i]) return std::nullopt;
    if (starts[i] > std::numeric_limits<int32_t>::max()) return std::nullopt;
  }
  return starts;
}

}  // namespace tpu::lower

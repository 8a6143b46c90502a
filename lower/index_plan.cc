// SPDX-License-Identifier: Apache-2.0
#include "lower/index_plan.h"

#include <algorithm>

#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"

namespace tpu::lower {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

bool is_mask(Value index) { return index.dtype() == DType::kPred || index.dtype() == DType::kU8; }

std::string shape_text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

Dims common_dims(const Values& indices) {
  try {
    return broadcast_dims(indices);
  } catch (const Error&) {
    std::string shapes;
    for (const Value& v : indices) shapes += (shapes.empty() ? "" : ", ") + shape_text(v.dims());
    fail(ErrorKind::kIndex,
         "shape mismatch: indexing tensors could not be broadcast together with shapes {}", shapes);
  }
}

bool consecutive(const Dims& axes) {
  return axes.empty() || axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size());
}

Value stacked(const Values& indices, const Dims& batch) {
  Dims dims = batch;
  dims.push_back(1);
  Values columns;
  const bool wide =
      std::any_of(indices.begin(), indices.end(), [](Value v) { return v.dtype() == DType::kS64; });
  for (const Value& v : indices) {
    const Value same = hlo::convert(v, wide ? DType::kS64 : DType::kS32);
    columns.push_back(hlo::reshape(hlo::broadcast_to(same, batch), dims));
  }
  return hlo::concatenate(columns, static_cast<int64_t>(batch.size()));
}

[[noreturn]] void fail_values(const Dims& values, const Dims& result) {
  fail(ErrorKind::kRuntime,
       "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape "
       "{}",
       shape_text(values), shape_text(result));
}

Value broadcast_values(Value values, const Dims& result) {
  bool fits = values.dims().size() <= result.size();
  for (size_t i = 0; fits && i < values.dims().size(); ++i) {
    const int64_t own = values.dims()[i];
    fits = own == 1 || own == result[result.size() - values.dims().size() + i];
  }
  if (!fits) fail_values(values.dims(), result);
  return hlo::broadcast_to(values, result);
}

void check_mask_dims(const Dims& dims, int64_t axis, Value mask) {
  for (int64_t i = 0; i < mask.rank(); ++i) {
    if (at(axis + i) < dims.size() && dims[at(axis + i)] == mask.dim(i)) continue;
    fail(ErrorKind::kIndex,
         "The shape of the mask {} at index {} does not match the shape of the indexed tensor {} "
         "at index {}",
         shape_text(mask.dims()), i, shape_text(dims), axis + i);
  }
}

}  // namespace

Value places_of_true(Value mask, int64_t capacity) {
  const int64_t count = mask.numel();
  const Value flat = hlo::reshape(mask, {count});
  const Value rank = running_count(hlo::convert(flat, DType::kS32), 0) - 1.0;
  const Value slot = where(flat, rank, static_cast<double>(capacity));
  const Value unused = hlo::full(mask.graph(), {DType::kS32, {capacity}}, count);
  return scatter_rows(unused, slot, hlo::iota_like(slot, 0, DType::kS32), 0, keep_update);
}

Values coordinates(Value flat, const Dims& dims) {
  Values result(dims.size(), flat);
  Value rest = flat;
  for (size_t i = dims.size(); i-- > 0;) {
    const Value size = hlo::full_like(rest, dims[i]);
    const Value outside = hlo::ge(flat, hlo::full_like(flat, ir::element_count(dims)));
    result[i] = hlo::select(outside, size, hlo::rem(rest, size));
    rest = hlo::div(rest, size);
  }
  return result;
}

namespace {

// The known number of trues: the last dimension of the integer indices, else that of the values.
std::optional<int64_t> known_count(const OptionalValues& indices, Value values, int64_t trailing) {
  for (const auto& v : indices) {
    if (v && !is_mask(*v) && v->rank() > 0 && v->dim(v->rank() - 1) != 1) {
      return v->dim(v->rank() - 1);
    }
  }
  const int64_t axis = values.rank() - 1 - trailing;
  if (axis >= 0 && values.dim(axis) != 1) return values.dim(axis);
  return std::nullopt;
}

}  // namespace

IndexPlan::IndexPlan(const Dims& dims, const OptionalValues& indices) : dims_(dims) {
  Values positions;
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
    if (at(i) >= indices.size() || !indices[at(i)]) {
      others_.push_back(i);
      continue;
    }
    positions.push_back(from_end(*indices[at(i)], dims[at(i)]));
    axes_.push_back(i);
  }
  batch_ = common_dims(positions);
  place_ = consecutive(axes_) && !axes_.empty() ? axes_[0] : 0;
  if (!axes_.empty()) starts_ = stacked(positions, batch_);
}

Dims IndexPlan::result_dims() const {
  Dims result;
  for (const int64_t axis : others_) result.push_back(dims_[at(axis)]);
  result.insert(result.begin() + place_, batch_.begin(), batch_.end());
  return result;
}

Dims IndexPlan::window_dims() const {
  Dims axes;
  for (int64_t i = 0; i < static_cast<int64_t>(others_.size()); ++i) {
    axes.push_back(i < place_ ? i : i + static_cast<int64_t>(batch_.size()));
  }
  return axes;
}

Value IndexPlan::read(Value x) const {
  if (!starts_) return x;
  Dims sizes = dims_;
  for (const int64_t axis : axes_) sizes[at(axis)] = 1;
  return hlo::gather(x, *starts_,
                     {.offset_dims = window_dims(),
                      .collapsed_slice_dims = axes_,
                      .start_index_map = axes_,
                      .index_vector_dim = static_cast<int64_t>(batch_.size())},
                     sizes, result_dims());
}

Value IndexPlan::write(Value x, Value values, bool accumulate) const {
  const Value updates = broadcast_values(values, result_dims());
  const DType t = accumulate ? ir::compute_type(x.dtype()) : x.dtype();
  if (!starts_) {
    return accumulate ? computed(x, updates, [](Value a, Value b) { return a + b; }) : updates;
  }
  const Value result = hlo::scatter(hlo::convert(x, t), *starts_, hlo::convert(updates, t),
                                    {.update_window_dims = window_dims(),
                                     .inserted_window_dims = axes_,
                                     .scatter_dims_to_operand_dims = axes_,
                                     .index_vector_dim = static_cast<int64_t>(batch_.size())},
                                    accumulate ? hlo::Combine(hlo::add) : keep_update);
  return hlo::convert(result, x.dtype());
}

void check_indices(const Dims& dims, const OptionalValues& indices) {
  int64_t axis = 0;
  int64_t number = 0;  // what PyTorch's text calls the dimension counts the indexed ones only
  for (const auto& v : indices) {
    const int64_t axes = v && is_mask(*v) ? v->rank() : 1;
    if (v && !is_mask(*v)) {
      const int64_t size = dims[at(axis)];
      check_range(*v, {-size, size}, out_of_bounds(number, size));
    }
    axis += axes;
    if (v) number += axes;
  }
}

OptionalValues without_masks(const Dims& dims, const OptionalValues& indices, Value values) {
  int64_t named = 0;
  int64_t smallest = -1;
  for (const auto& v : indices) {
    named += v && is_mask(*v) ? v->rank() : 1;
    if (v && is_mask(*v)) smallest = smallest < 0 ? v->numel() : std::min(smallest, v->numel());
  }
  if (smallest < 0) return indices;
  const auto count = known_count(indices, values, static_cast<int64_t>(dims.size()) - named);
  OptionalValues result;
  for (const auto& v : indices) {
    if (!v || !is_mask(*v)) {
      result.push_back(v);
      continue;
    }
    check_mask_dims(dims, static_cast<int64_t>(result.size()), *v);
    const Value mask = hlo::convert(*v, DType::kPred);
    const Value places = places_of_true(mask, count.value_or(smallest));
    for (const Value& c : coordinates(places, mask.dims())) result.emplace_back(c);
  }
  return result;
}

std::optional<MaskAt> lone_mask(const OptionalValues& indices) {
  std::optional<MaskAt> found;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    if (found || !is_mask(*indices[i])) return std::nullopt;
    found = MaskAt{static_cast<int64_t>(i), hlo::convert(*indices[i], DType::kPred)};
  }
  return found;
}

Value put_masked(Value x, const MaskAt& place, Value values, bool accumulate) {
  const Value mask = place.mask;
  check_mask_dims(x.dims(), place.axis, mask);
  const int64_t trailing = x.rank() - place.axis - mask.rank();
  Dims result(x.dims().begin(), x.dims().begin() + place.axis);
  const int64_t axis = values.rank() - 1 - trailing;  // of the trues
  const int64_t count = axis >= 0 ? values.dim(axis) : 1;
  result.push_back(count);
  result.insert(result.end(), x.dims().end() - trailing, x.dims().end());
  const Value updates = broadcast_values(values, result);
  const Value trues = hlo::reduce_sum(hlo::convert(mask, DType::kS64), all_axes(mask.rank()));
  Value order = hlo::full(x.graph(), {DType::kS32, mask.dims()}, int64_t{0});
  if (count != 1) {
    const std::string text = fmt::format(
        "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape "
        "[{}{{}}{}]",
        shape_text(values.dims()),
        place.axis
            ? fmt::format("{}, ", fmt::join(x.dims().begin(), x.dims().begin() + place.axis, ", "))
            : "",
        trailing ? fmt::format(", {}", fmt::join(x.dims().end() - trailing, x.dims().end(), ", "))
                 : "");
    x.graph().check(differs(trues, static_cast<double>(count)), trues, text, CheckKind::kRuntime);
    const Value flat = hlo::reshape(hlo::convert(mask, DType::kS32), {mask.numel()});
    order = hlo::reshape(max(running_count(flat, 0) - 1.0, 0.0), mask.dims());
  }
  const Value spread = hlo::take(updates, order, place.axis);
  Dims mask_axes;
  for (int64_t i = 0; i < mask.rank(); ++i) mask_axes.push_back(place.axis + i);
  const Value written = hlo::broadcast_in_dim(mask, x.dims(), mask_axes);
  if (!accumulate) return where(written, spread, x);
  return where(written, computed(x, spread, [](Value a, Value b) { return a + b; }), x);
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
#include "lower/view_elements.h"

namespace tpu::lower {
namespace {

using ir::Dims;
using ir::DType;
using ir::Type;
using ir::Value;

// The dims after an axis of `n` has been taken out of the last axis, or out of the flat array.
Dims grouped_dims(Dims dims, int64_t n) {
  if (dims.empty() || dims.back() % n != 0) dims = {ir::element_count(dims)};
  dims.back() /= n;
  dims.push_back(n);
  return dims;
}

void add_layers(DType t, Type type, std::vector<Type>& layers) {
  const auto from = static_cast<int64_t>(byte_size(type.dtype));
  const auto to = static_cast<int64_t>(byte_size(t));
  if (to > from) {
    type.dims = grouped_dims(std::move(type.dims), to / from);
    layers.push_back(type);
    type.dims.pop_back();
  } else if (to < from) {
    type.dims.push_back(from / to);
  }
  layers.push_back({t, std::move(type.dims)});
}

Value flat(Value x) { return hlo::reshape(x, {x.numel()}); }

}  // namespace

DType element_dtype(DType array, DType view) {
  return ir::is_bool(view) && !ir::is_bool(array) ? DType::kU8 : view;
}

std::vector<Type> element_layers(const Type& array, DType t) {
  std::vector<Type> layers;
  if (array.dtype == t) return layers;
  const bool both_complex = ir::is_complex(array.dtype) && ir::is_complex(t);
  if (both_complex) add_layers(ir::real_of(array.dtype), array, layers);
  add_layers(t, both_complex ? layers.back() : array, layers);
  return layers;
}

Value apply_layer(const Type& layer, Value x) {
  if (layer.dtype != x.dtype()) return hlo::bitcast_resize(x, layer.dtype);
  const int64_t kept = layer.numel();
  if (kept < x.numel()) x = hlo::slice_axis(flat(x), 0, 0, kept);
  return hlo::reshape(x, layer.dims);
}

Value undo_layer(Value y, Value x) {
  if (y.dtype() != x.dtype()) return hlo::bitcast_resize(y, x.dtype());
  const int64_t kept = y.numel();
  if (kept < x.numel()) {
    y = hlo::concatenate({flat(y), hlo::slice_axis(flat(x), 0, kept, x.numel())}, 0);
  }
  return hlo::reshape(y, x.dims());
}

}  // namespace tpu::lower

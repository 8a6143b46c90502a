// SPDX-License-Identifier: Apache-2.0
// Reading the bytes of an array as elements of another dtype, and putting them back.
//
// A change of representation is a list of types: where the dtype changes the bits are recast, a
// wider element becoming a new last axis of narrower ones and the other way round; where it stays,
// elements are regrouped under a new last axis. Pure functions, thread-safe. Internal to the view
// algebra.
#pragma once

#include <vector>

#include "core/hlo/shape.h"

namespace tpu::lower {

// The dtype in which a view of dtype `view` is cut out of an array of dtype `array`: the view's
// own, except that bools among other bytes are handled as u8, for untouched bytes keep their value.
ir::DType element_dtype(ir::DType array, ir::DType view);

// The steps from the array's type to one of dtype `t`; empty if that is its own.
std::vector<ir::Type> element_layers(const ir::Type& array, ir::DType t);

// One step: x as `layer`. Elements that do not fill a group are dropped.
ir::Value apply_layer(const ir::Type& layer, ir::Value x);
// The value of x's type that apply_layer() turns into `y`; what it drops is taken from `x`.
ir::Value undo_layer(ir::Value y, ir::Value x);

}  // namespace tpu::lower

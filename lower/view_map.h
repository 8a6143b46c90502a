// SPDX-License-Identifier: Apache-2.0
// The view algebra: how a strided tensor reads from, and writes into, the dense array that its
// storage holds.
//
// A tensor is (sizes, strides, offset) in elements of its dtype over its storage's bytes; the array
// is dense, row-major, of any shape and dtype, covering the same bytes. A view is decoded into
//   array -> bitcast -> reshape -> slice -> transpose -> broadcast -> reshape
// and only where no such form exists (overlapping windows, strides that straddle dimensions) into
// a gather or scatter over the flat array. Pure functions, thread-safe.
#pragma once

#include <optional>

#include "core/hlo/shape.h"

namespace tpu::lower {

using ir::Dims;
using ir::DType;
using ir::Type;
using ir::Value;
using ir::Values;

struct ViewMap {
  DType dtype;
  Dims sizes;
  Dims strides;  // in elements, non-negative
  int64_t offset = 0;
  bool operator==(const ViewMap&) const = default;
};

// Row-major strides of dense dims.
Dims dense_strides(ir::DimSpan dims);

// The tensor's dimensions from slowest to fastest in memory, for a tensor whose elements are
// distinct and fill a range without gaps; nullopt otherwise. Row-major for a contiguous tensor.
std::optional<Dims> memory_order(const ViewMap& map);

// Whether the view covers the whole array of this type exactly once, so that writing through it
// replaces the array.
bool covers(const Type& array, const ViewMap& map);

// How a view is cut out of an array, without positions in its identity: two maps with equal forms
// apart from `starts` and `map.offset` may share one program, which then takes the starts at run
// time. A view without elements has no axes.
struct ViewForm {
  // Cuts [start, start + size) out of an axis (padding its end if that is longer) and splits the
  // cut into axes of size / inner and inner elements.
  struct Split {
    int64_t axis;  // as numbered after the splits before it
    int64_t start;
    int64_t size;
    int64_t inner;
    bool operator==(const Split&) const = default;
  };
  bool gather = false;  // no sliced form exists; `reshaped` is the flat array
  Dims merged;          // the array's dims in elements of the view, neighbours merged as needed
  std::vector<Split> splits;
  Dims reshaped;  // after the splits; the next three are per axis of it
  Dims starts;
  Dims lengths;
  Dims steps;
  Dims distinct;        // sizes of the view's axes that do not repeat elements, in memory order
  Dims permutation;     // of those axes into the view's order
  Dims broadcast_axes;  // where they then stand in map.sizes
  ViewMap map;
};
// Tries the array's own shape before flattening it. `array` may be of another dtype.
ViewForm decode_view(const Type& array, const ViewMap& map);

// The starts of `form` for another offset of the same structure; nullopt if the offset does not
// decode into the form.
std::optional<Dims> starts_for_offset(const ViewForm& form, int64_t offset);

// The tensor's value, dims = map.sizes. `starts`: run-time rank-0 s32 positions, one per axis of
// form.reshaped; they must be in range.
Value read_view(Value array, const ViewForm& form, const Values& starts = {});

// The array after `value` (dims = map.sizes, dtype = map.dtype) is written through the view; the
// result has the array's type. Elements the view does not reach keep their value.
Value write_view(Value array, const ViewForm& form, Value value, const Values& starts = {});

// `value` (dims = map.sizes) in memory order, for a fresh array of a tensor with these strides:
// a transpose where memory_order() exists, otherwise written into zeros.
Value to_memory(Value value, const ViewMap& map, int64_t storage_elements);

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
// x[i, :, j]: which axes an indexing expression names, where its result's axes come from, and the
// gather or scatter that reads or writes by it. Booleans stand for the positions where they are
// true. Pure functions on a graph under construction.
#pragma once

#include "lower/indexing.h"

namespace tpu::lower {

class IndexPlan {
 public:
  // Integer indices, one per axis of `dims` or nullopt.
  IndexPlan(const Dims& dims, const OptionalValues& indices);

  Value read(Value x) const;
  // x with `values`, which broadcast to the result's dims, assigned or added.
  Value write(Value x, Value values, bool accumulate) const;

 private:
  Dims result_dims() const;
  Dims window_dims() const;  // axes of the result that are whole axes of x

  Dims dims_;
  Dims axes_;                    // indexed
  Dims others_;                  // not indexed
  Dims batch_;                   // the indices' common dims
  int64_t place_ = 0;            // of the batch among the others in the result
  std::optional<Value> starts_;  // batch x axes
};

// Range checks of the integers among the indices.
void check_indices(const Dims& dims, const OptionalValues& indices);

// Replaces masks by integer indices. Their number of trues is known from an index or from `values`
// beside them, or is taken as large as can be with the surplus out of range, which a write drops.
OptionalValues without_masks(const Dims& dims, const OptionalValues& indices, Value values);

// The mask of x[:, mask] where nothing else is indexed.
struct MaskAt {
  int64_t axis;
  Value mask;
};
std::optional<MaskAt> lone_mask(const OptionalValues& indices);
Value put_masked(Value x, const MaskAt& at, Value values, bool accumulate);

// Flat positions s32[capacity] of the trues of `mask` in order; unused places hold numel.
Value places_of_true(Value mask, int64_t capacity);
// Per axis of `dims`, the coordinates of flat positions; those of numel are out of range in all.
Values coordinates(Value flat, const Dims& dims);

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
// Positions of the elements that are not zero, into a result of given size. The operators whose
// result is as long as the data says are built on it by the torch layer.
#include "lower/families.h"
#include "lower/index_plan.h"
#include "lower/promote.h"

namespace tpu::lower {
namespace {

Value nonzero_static(Value self, int64_t size, std::optional<int64_t> fill) {
  require(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  const int64_t rank = self.rank();
  const int64_t filler = fill.value_or(-1);
  if (rank == 0 || self.numel() == 0 || size == 0) {
    return hlo::full(self.graph(), {DType::kS64, {size, rank}}, filler);
  }
  const Value places = places_of_true(hlo::convert(self, DType::kPred), size);
  const Value unused = hlo::eq(places, hlo::full_like(places, self.numel()));
  Values columns;
  for (const Value& c : coordinates(places, self.dims())) {
    const Value wide = hlo::convert(c, DType::kS64);
    const Value column = hlo::select(unused, hlo::full_like(wide, filler), wide);
    columns.push_back(hlo::reshape(column, {size, 1}));
  }
  return hlo::concatenate(columns, 1);
}

}  // namespace

Rules position_rules() { return {{"aten::nonzero_static", nonzero_static}}; }

}  // namespace tpu::lower

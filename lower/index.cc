// SPDX-License-Identifier: Apache-2.0
// Reading at positions given as data: indexing, gather, take, and writing by the same indexing
// (index_put). Embeddings are in embedding.cc, scatter and its kin in scatter.cc.
#include <algorithm>

#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/index_plan.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

const Traits kReads{.indexes = true};

Value index(Value self, OptionalValues indices) {
  check_indices(self.dims(), indices);
  return IndexPlan(self.dims(), indices).read(self);
}

Value gather(Value self, int64_t dim, Value index) {
  const int64_t axis = wrap_axis(dim, self.rank());
  const Dims result = index.dims();
  if (index.numel() == 0) return hlo::full(self.graph(), {self.dtype(), result}, int64_t{0});
  self = at_least_1d(self);
  index = at_least_1d(index);
  check_range(index, {0, self.dim(axis)}, out_of_bounds(axis, self.dim(axis)), CheckKind::kRuntime);
  return hlo::reshape(hlo::take_along(self, as_position(index, self.dim(axis)), axis), result);
}

void require_index_type(const char* op, DType t) {
  require(t == DType::kS32 || t == DType::kS64,
          "{}(): Expected dtype int32/int64 for index but "
          "got: {}",
          op, scalar_type_name(t));
}

Value index_select(Value self, int64_t dim, Value index) {
  if (index.rank() > 1) fail(ErrorKind::kIndex, "index_select(): Index is supposed to be a vector");
  require_index_type("index_select", index.dtype());
  const int64_t axis = wrap_axis(dim, self.rank());
  require(self.rank() > 0 || index.numel() == 1,
          "index_select(): Index to scalar can have only 1 value, got {} value(s)", index.numel());
  const bool scalar = self.rank() == 0;
  self = at_least_1d(self);
  const int64_t size = self.dim(axis);
  check_range(index, {0, size}, "index out of range in self");
  const Value rows = hlo::take(self, as_position(at_least_1d(index), size), axis);
  return scalar ? hlo::reshape(rows, {}) : rows;
}

constexpr const char* kTakeText =
    "out of range: tried to access index {{}} on a tensor of {} elements.";

void require_long_index(const char* op, DType t) {
  require(t == DType::kS64, "{}(): Expected a long tensor for index, but got {}", op,
          scalar_type_name(t));
}

Value take(Value self, Value index) {
  require_long_index("take", index.dtype());
  const int64_t size = self.numel();
  if (size == 0 && index.numel() > 0) {
    fail(ErrorKind::kIndex, "take(): tried to take from an empty tensor");
  }
  check_range(index, {-size, size}, fmt::format(kTakeText, size));
  return take_flat(self, from_end(index, size));
}

Value put(Value self, Value index, Value source, bool accumulate) {
  require_long_index("put_", index.dtype());
  require(self.dtype() == source.dtype(),
          "put_(): self and source expected to have the same dtype, but got self.dtype = {} and "
          "source.dtype = {}",
          scalar_type_name(self.dtype()), scalar_type_name(source.dtype()));
  require(index.numel() == source.numel(),
          "put_(): Expected source and index to have the same number of elements, but got "
          "source.numel() = {}, index.numel() = {}",
          source.numel(), index.numel());
  const int64_t size = self.numel();
  if (size == 0 && index.numel() > 0) {
    fail(ErrorKind::kIndex, "put_(): tried to put elements into an empty tensor");
  }
  check_range(index, {-size, size}, fmt::format(kTakeText, size));
  const DType t = accumulate ? ir::compute_type(self.dtype()) : self.dtype();
  const Value flat = hlo::reshape(hlo::convert(self, t), {size});
  const Value values = hlo::reshape(hlo::convert(source, t), {source.numel()});
  const Value position = hlo::reshape(from_end(index, size), {index.numel()});
  const Value result =
      scatter_along(flat, position, values, 0, accumulate ? hlo::Combine(hlo::add) : keep_update);
  return hlo::convert(hlo::reshape(result, self.dims()), self.dtype());
}

void check_index_count(int64_t rank, const OptionalValues& indices) {
  int64_t named = 0;
  for (const auto& v : indices) {
    const bool mask = v && (v->dtype() == DType::kPred || v->dtype() == DType::kU8);
    named += mask ? v->rank() : 1;
    if (!v || mask || v->dtype() == DType::kS64 || v->dtype() == DType::kS32) continue;
    fail(ErrorKind::kIndex, "tensors used as indices must be long, int, byte or bool tensors");
  }
  if (named > rank) {
    fail(ErrorKind::kIndex, "too many indices for tensor of dimension {} (got {})", rank, named);
  }
}

// One number under a mask is masked_fill_ to PyTorch, which takes no bytes.
void refuse_byte_mask(const OptionalValues& indices, Value values, bool accumulate) {
  if (accumulate || values.numel() != 1 || !lone_mask(indices)) return;
  for (const auto& v : indices) {
    require(!v || v->dtype() != DType::kU8,
            "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char");
  }
}

Value index_put(Value self, OptionalValues indices, Value values, bool accumulate) {
  check_index_count(self.rank(), indices);
  require(self.dtype() == values.dtype(),
          "Index put requires the source and destination dtypes match, got {} for the destination "
          "and {} for the source.",
          scalar_type_name(self.dtype()), scalar_type_name(values.dtype()));
  refuse_byte_mask(indices, values, accumulate);
  if (const auto mask = lone_mask(indices)) return put_masked(self, *mask, values, accumulate);
  check_indices(self.dims(), indices);
  const IndexPlan plan(self.dims(), without_masks(self.dims(), indices, values));
  return plan.write(self, values, accumulate);
}

}  // namespace

Rules index_rules() {
  return {
      {"aten::index.Tensor", index, kReads},
      {"aten::gather", gather, kReads},
      {"aten::index_select", index_select, kReads},
      {"aten::take", take, kReads},
      {"aten::put", put, {.strides = Strides::kPreserve, .indexes = true}},
      {"aten::index_put", index_put, {.strides = Strides::kPreserve, .indexes = true}},
      {"aten::_index_put_impl", index_put, {.strides = Strides::kPreserve, .indexes = true}},
  };
}

}  // namespace tpu::lower

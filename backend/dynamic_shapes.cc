// SPDX-License-Identifier: Apache-2.0
#include "backend/dynamic_shapes.h"

#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>

#include "backend/clean_state.h"
#include "backend/recording.h"

namespace torch_tpu {

int64_t bucket(int64_t count) {
  constexpr int64_t kStep = 4096;
  if (count > kStep) return (count + kStep - 1) / kStep * kStep;
  int64_t size = 1;
  while (size < count) size *= 2;
  return size;
}

int64_t count_true(const at::Tensor& mask) {
  if (Recording::current()) throw RecordingAbandoned("a recorded call's shape depends on data");
  return mask.sum(at::kLong).item<int64_t>();
}

namespace {

at::Tensor positions_of_nonzero(const at::Tensor& self) {
  const CleanState clean;
  const int64_t count = count_true(self.ne(0));
  const at::Tensor positions = at::nonzero_static(self, bucket(count), 0).narrow(0, 0, count);
  // As the CPU's, whose result is a transposed matrix; of two columns that would take a copy.
  return self.dim() == 1 ? positions.as_strided({count, 1}, {1, count}) : positions;
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type ",
              out.scalar_type());
  const at::Tensor result = positions_of_nonzero(self);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

at::Tensor select_masked(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  const CleanState clean;
  const at::Tensor on_device = mask.to(self.device());
  const auto [values, where] = at::expand_outplace(self, on_device);
  const at::Tensor flat = where->reshape({-1});
  const int64_t count = count_true(flat);
  if (count == 0) return at::empty({0}, values->options());
  const at::Tensor positions = at::nonzero_static(flat, bucket(count), 0).select(1, 0);
  return values->reshape({-1}).index_select(0, positions).narrow(0, 0, count);
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  const at::Tensor result = select_masked(self, mask);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// Position i belongs to the first repeat whose end lies beyond it.
at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK_NOT_IMPLEMENTED(
      repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
      "\"repeat_interleave_cpu\" not implemented for '", repeats.scalar_type(), "'");
  if (repeats.size(0) == 0) return at::empty_like(repeats);
  if (Recording::current()) throw RecordingAbandoned("a recorded call's shape depends on data");
  const CleanState clean;
  const at::Tensor ends = repeats.cumsum(0, at::kLong);
  const at::Tensor facts = at::stack({ends.select(0, -1), repeats.min().to(at::kLong)}).cpu();
  const int64_t total = facts.const_data_ptr<int64_t>()[0];
  TORCH_CHECK(facts.const_data_ptr<int64_t>()[1] >= 0, "repeats can not be negative");
  TORCH_CHECK(!output_size || *output_size == total, "allocated size does not match required size");
  const at::Tensor positions = at::arange(bucket(total), ends.options());
  return at::searchsorted(ends, positions, /*out_int32=*/false, /*right=*/true)
      .narrow(0, 0, total)
      .to(repeats.scalar_type());
}

// Rows of an identity matrix.
at::Tensor one_hot(const at::Tensor& self, int64_t classes) {
  TORCH_CHECK(self.scalar_type() == at::kLong,
              "one_hot is only applicable to index tensor of type LongTensor.");
  const CleanState clean;
  if (self.numel() == 0) {
    TORCH_CHECK(classes > 0, "Can not infer total number of classes from empty tensor.");
  } else {
    at::_assert_async(self.ge(0).all(), "Class values must be non-negative.");
    if (classes == -1) {
      if (Recording::current()) throw RecordingAbandoned("a recorded call's shape depends on data");
      classes = self.max().item<int64_t>() + 1;
    }
    TORCH_CHECK(classes > 0, "Class values must be smaller than num_classes.");
    at::_assert_async(self.lt(classes).all(), "Class values must be smaller than num_classes.");
  }
  return self.unsqueeze(-1).eq(at::arange(classes, self.options())).to(at::kLong);
}

void check_bincount(const at::Tensor& self, const at::Tensor* weights, int64_t minlength) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isIntegralType(self.scalar_type(), /*includeBool=*/false) &&
                                  !c10::isBarebonesUnsignedType(self.scalar_type()),
                              "\"bincount_cpu\" not implemented for '", self.scalar_type(), "'");
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  TORCH_CHECK(!weights || (weights->dim() == 1 && weights->size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
}

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights,
                    int64_t minlength) {
  const bool weighted = weights && weights->defined();
  check_bincount(self, weighted ? &*weights : nullptr, minlength);
  const auto options = self.options().dtype(at::kLong);
  if (self.numel() == 0) return at::zeros({minlength}, options);
  if (Recording::current()) throw RecordingAbandoned("a recorded call's shape depends on data");
  const CleanState clean;
  const at::Tensor positions = self.to(at::kLong);
  const at::Tensor ends = at::stack({positions.min(), positions.max()}).cpu();
  TORCH_CHECK(ends.const_data_ptr<int64_t>()[0] >= 0,
              "bincount only supports 1-d non-negative integral inputs.");
  const int64_t size = std::max(ends.const_data_ptr<int64_t>()[1] + 1, minlength);
  const at::ScalarType t = !weighted                              ? at::kLong
                           : weights->scalar_type() == at::kFloat ? at::kFloat
                                                                  : at::kDouble;
  const at::Tensor share = weighted ? weights->to(t) : at::ones_like(positions);
  return at::zeros({bucket(size)}, options.dtype(t))
      .index_add_(0, positions, share)
      .narrow(0, 0, size);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("bincount", &bincount);
  m.impl("nonzero", &positions_of_nonzero);
  m.impl("nonzero.out", &nonzero_out);
  m.impl("repeat_interleave.Tensor", &repeat_interleave);
  m.impl("masked_select", &select_masked);
  m.impl("one_hot", &one_hot);
  m.impl("masked_select.out", &masked_select_out);
}

}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
// Operators whose result is as long as the data says. The device counts, the host waits for that
// one number, and the program that fills the result is compiled for a bucket of lengths, so that a
// changing count does not recompile: the result is the front of a longer storage.
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>

#include "backend/clean_state.h"
#include "backend/recording.h"

namespace torch_tpu {
namespace {

// Powers of two up to 4096, then multiples of 4096.
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

at::Tensor positions_of_nonzero(const at::Tensor& self) {
  const CleanState clean;
  const int64_t count = count_true(self.ne(0));
  return at::nonzero_static(self, bucket(count), 0).narrow(0, 0, count);
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

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero", &positions_of_nonzero);
  m.impl("nonzero.out", &nonzero_out);
  m.impl("masked_select", &select_masked);
  m.impl("masked_select.out", &masked_select_out);
}

}  // namespace torch_tpu

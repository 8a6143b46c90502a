// SPDX-License-Identifier: Apache-2.0
// Filling a small tensor with one number. The host writes the values and sends them: a program
// would have to be compiled for every new shape, and runs no faster.
#include "backend/boxed.h"
#include "backend/clean_state.h"
#include "backend/recording.h"

namespace torch_tpu {
namespace {

constexpr int64_t kMostElements = 4096;

bool is_small_and_whole(const at::Tensor& t) {
  return t.numel() > 0 && t.numel() <= kMostElements && t.is_contiguous() && !t.is_conj() &&
         !t.is_neg() && t.nbytes() == t.storage().nbytes() && !Recording::current();
}

at::Tensor& fill_(at::Tensor& self, const at::Scalar& value) {
  static const InPlaceOp fill("aten::fill", "Scalar");
  if (!is_small_and_whole(self)) {
    fill(self, value);
    return self;
  }
  const CleanState clean;
  return self.copy_(at::full(self.sizes(), value, self.options().device(at::kCPU)));
}

at::Tensor& zero_(at::Tensor& self) {
  static const InPlaceOp zero("aten::zero");
  if (!is_small_and_whole(self)) {
    zero(self);
    return self;
  }
  const CleanState clean;
  return self.copy_(at::zeros(self.sizes(), self.options().device(at::kCPU)));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", &fill_);
  m.impl("zero_", &zero_);
}

}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
// Scaled dot product attention arrives as one op: PyTorch asks the backend which kernel it wants,
// and the overrideable one has a rule.
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

#include "backend/torch_headers.h"

namespace torch_tpu {
namespace {

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double dropout, bool causal,
               std::optional<double> scale, bool gqa) {
  const bool dense = !query.is_nested() && !key.is_nested() && !value.is_nested();
  const bool fits = dense && query.dim() == 4 && key.dim() == 4 && value.dim() == 4 &&
                    at::isFloatingType(query.scalar_type()) && query.numel() > 0 && key.numel() > 0;
  const bool mask_needs_grad = mask && mask->defined() && mask->requires_grad();
  return static_cast<int64_t>(fits && !mask_needs_grad ? sdp::SDPBackend::overrideable
                                                       : sdp::SDPBackend::math);
}

// Whether PyTorch's encoder layers may turn padded batches into nested tensors: not on this device.
bool nested_from_mask_left_aligned(const at::Tensor& /*t*/, const at::Tensor& /*mask*/) {
  return false;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_tensor_from_mask_left_aligned", &nested_from_mask_left_aligned);
}

}  // namespace torch_tpu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_tpu::choose);
}

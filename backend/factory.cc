// SPDX-License-Identifier: Apache-2.0
// What PyTorch makes on the device without filling it by an operator that has a rule.
#include "backend/clean_state.h"
#include "backend/torch_headers.h"

namespace torch_tpu {
namespace {

// PyTorch's mark of a gradient that is known to be zero; here the zeros themselves.
at::Tensor zero_gradient(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  const CleanState clean;
  return at::zeros(size, dtype, layout, device, pin_memory);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_efficientzerotensor", &zero_gradient); }

}  // namespace torch_tpu

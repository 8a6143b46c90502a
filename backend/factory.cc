// SPDX-License-Identifier: Apache-2.0
// Factories that PyTorch leaves to the device: an empty tensor is made there and filled by the out=
// form, which a rule covers.
#include "backend/clean_state.h"
#include "backend/torch_headers.h"

namespace torch_tpu {
namespace {

using Fill = at::Tensor& (*)(at::Tensor&, int64_t, int64_t, int64_t);

template <Fill fill>
at::Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset,
                            std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                            std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const CleanState clean;
  at::Tensor out =
      at::empty({0}, dtype.value_or(at::kLong), layout, device, pin_memory, std::nullopt);
  return fill(out, rows, columns, offset);
}

// PyTorch's mark of a gradient that is known to be zero; here the zeros themselves.
at::Tensor zero_gradient(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  const CleanState clean;
  return at::zeros(size, dtype, layout, device, pin_memory);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_efficientzerotensor", &zero_gradient);
  m.impl("tril_indices", &triangle_indices<at::tril_indices_out>);
  m.impl("triu_indices", &triangle_indices<at::triu_indices_out>);
}

}  // namespace torch_tpu

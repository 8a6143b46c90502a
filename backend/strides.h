// SPDX-License-Identifier: Apache-2.0
// Strides of fresh results where PyTorch has no native metadata: what its CPU kernels would give,
// by the rule's Traits::strides and the strides of the inputs.
#pragma once

#include "backend/call.h"

namespace torch_tpu {

// The tensor's strides if it is dense, else those of a dense tensor in the same order.
c10::DimVector dense_strides_of(const at::Tensor& t);

class StrideChooser {
 public:
  // For the call's result of this number.
  StrideChooser(const OpCall& call, size_t result);
  c10::DimVector strides(c10::IntArrayRef sizes) const;

 private:
  std::optional<c10::MemoryFormat> requested_format() const;
  c10::DimVector pointwise(c10::IntArrayRef sizes) const;

  const OpCall& call_;
  c10::SmallVector<const at::Tensor*, 4> inputs_;
};

}  // namespace torch_tpu

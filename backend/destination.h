// SPDX-License-Identifier: Apache-2.0
// PyTorch's conditions on the tensors that results are written to, with its texts. Pure checks.
#pragma once

#include "backend/recording.h"

namespace torch_tpu {

// Throws if a result like `spec` may not go to an argument of the call: for in-place forms of
// another shape or dtype category, for out= forms of a dtype that the op does not cast to, or if
// memory overlaps.
void check_destination(const OpCall& call, const TensorArg& to, const ResultSpec& spec);

}  // namespace torch_tpu

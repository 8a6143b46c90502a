// SPDX-License-Identifier: Apache-2.0
// An op without a rule as a host call of the program being built, where PyTorch's metadata tells
// its results beforehand.
#pragma once

#include "backend/lowering.h"

namespace torch_tpu {

// Throws RecordingAbandoned where that cannot be (another target, results that depend on values,
// random numbers, views), and whatever PyTorch's metadata throws. Notes the op among the
// recording's fallbacks.
Lowered lower_on_host(Recording& recording, const OpCall& call);

}  // namespace torch_tpu

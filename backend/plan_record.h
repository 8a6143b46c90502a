// SPDX-License-Identifier: Apache-2.0
// Plans as bytes, so that a warm process goes from a key to its program without lowering.
#pragma once

#include "backend/plan.h"

namespace torch_tpu {

void store_plan(const Plan& plan, const tpu::Hash128& key);

}  // namespace torch_tpu

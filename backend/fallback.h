// SPDX-License-Identifier: Apache-2.0
// Ops without a rule: PyTorch's Python decomposition, recorded once per key and run as one program,
// else the CPU, visibly.
#pragma once

#include <map>

#include "backend/torch_headers.h"

namespace torch_tpu {

enum class FallbackPolicy { kAllow, kWarn, kError };
void set_fallback_policy(FallbackPolicy policy);
// Calls that ran on the CPU, by op.
std::map<std::string, int64_t> fallback_counts();
void reset_fallback_counts();

// Calls PyTorch's Python decomposition of the op on the stack's arguments, if there is one; set by
// the bindings. May throw whatever Python throws.
using Decomposition = bool (*)(const c10::OperatorHandle& op, torch::jit::Stack& stack);
void set_decomposition(Decomposition d);

}  // namespace torch_tpu

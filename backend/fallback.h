// SPDX-License-Identifier: Apache-2.0
// Ops without a rule: PyTorch's Python decomposition, recorded once per key and run as one program,
// else PyTorch's CPU kernel, visibly: as a host call inside a program where that can be, else with
// copies both ways.
#pragma once

#include <map>

#include "backend/torch_headers.h"

namespace torch_tpu {

enum class FallbackPolicy { kAllow, kWarn, kError };
void set_fallback_policy(FallbackPolicy policy);
// Counts a call of ops that run on the CPU inside of its program, and warns; NotImplementedError if
// the policy forbids it.
void note_fallbacks(const std::vector<std::string>& ops);
// Calls that ran on the CPU, by op.
std::map<std::string, int64_t> fallback_counts();
void reset_fallback_counts();

// Calls PyTorch's Python decomposition of the op on the stack's arguments, if there is one; set by
// the bindings. May throw whatever Python throws.
using Decomposition = bool (*)(const c10::OperatorHandle& op, torch::jit::Stack& stack);
void set_decomposition(Decomposition d);

}  // namespace torch_tpu

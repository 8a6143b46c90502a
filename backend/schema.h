// SPDX-License-Identifier: Apache-2.0
// Questions about operators' schemas, and the overloads that belong together. Thread-safe.
#pragma once

#include "backend/torch_headers.h"

namespace torch_tpu {

// "aten::add.Tensor"; throws if PyTorch has no such operator.
c10::OperatorHandle find_operator(std::string_view name);

bool is_written(const c10::Argument& argument);
// Tensor?[]
bool is_list_of_optionals(const c10::Argument& argument);

// The overload that takes the functional one's arguments and, beyond them, out= arguments.
std::optional<c10::OperatorHandle> out_overload_of(const c10::OperatorHandle& functional);

}  // namespace torch_tpu

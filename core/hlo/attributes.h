// SPDX-License-Identifier: Apache-2.0
// Text of StableHLO attributes, and the one way builders make a single-result node. For core/hlo's
// own sources only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"

namespace tpu::hlo {

std::string array_text(ir::DimSpan values);  // "array<i64: 1, 2>"
std::string list_text(ir::DimSpan values);   // "[1, 2]"
// The `padding` of windowed operations: "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>".
std::string padding_text(ir::DimSpan low, ir::DimSpan high);
std::string_view bool_text(bool value);

// The axes [0, rank) without `axes`.
ir::Dims other_axes(int64_t rank, ir::DimSpan axes);
ir::Dims all_axes(int64_t rank);

// One node with one result; the graph is that of the first operand.
ir::Value make(std::string_view op, ir::Values operands, ir::Type result,
               std::string attributes = {});

}  // namespace tpu::hlo

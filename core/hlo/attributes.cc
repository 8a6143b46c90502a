// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace tpu::hlo {

std::string array_text(ir::DimSpan values) {
  if (values.empty()) return "array<i64>";
  return fmt::format("array<i64: {}>", fmt::join(values, ", "));
}

std::string list_text(ir::DimSpan values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

std::string padding_text(ir::DimSpan low, ir::DimSpan high) {
  TPU_CHECK(low.size() == high.size(), "each axis has a low and a high padding");
  std::string rows;
  for (size_t i = 0; i < low.size(); ++i) {
    rows += fmt::format("{}[{}, {}]", i ? ", " : "", low[i], high[i]);
  }
  if (low.empty()) return "dense<> : tensor<0x2xi64>";
  return fmt::format("dense<[{}]> : tensor<{}x2xi64>", rows, low.size());
}

std::string_view bool_text(bool value) { return value ? "true" : "false"; }

ir::Dims all_axes(int64_t rank) {
  ir::Dims axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

ir::Dims other_axes(int64_t rank, ir::DimSpan axes) {
  ir::Dims others = all_axes(rank);
  std::erase_if(others, [&](int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  });
  return others;
}

ir::Value make(std::string_view op, ir::Values operands, ir::Type result, std::string attributes) {
  TPU_CHECK(!operands.empty(), "the graph is that of the first operand");
  ir::Graph& graph = operands[0].graph();
  return graph.node1({.op = std::string(op),
                      .inputs = std::move(operands),
                      .results = {std::move(result)},
                      .attributes = std::move(attributes)});
}

}  // namespace tpu::hlo

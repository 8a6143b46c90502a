// SPDX-License-Identifier: Apache-2.0
#include "core/ir/type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tpu::ir {

int64_t element_count(DimSpan dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

std::string dims_text(DimSpan dims) { return fmt::format("{}", fmt::join(dims, ",")); }

std::string Type::mlir() const {
  std::string text = "tensor<";
  for (const int64_t d : dims) text += fmt::format("{}x", d);
  text += mlir_name(dtype);
  return text + ">";
}

std::string Type::str() const { return fmt::format("{}[{}]", short_name(dtype), dims_text(dims)); }

}  // namespace tpu::ir

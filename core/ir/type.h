// SPDX-License-Identifier: Apache-2.0
// The static type of a device value: element type and dimensions. All dimensions are known and
// non-negative; the array is dense and row-major.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ir/dtype.h"

namespace tpu::ir {

using Dims = std::vector<int64_t>;
using DimSpan = std::span<const int64_t>;

int64_t element_count(DimSpan dims);
std::string dims_text(DimSpan dims);  // "2,3"

struct Type {
  DType dtype = DType::kF32;
  Dims dims;

  bool operator==(const Type&) const = default;
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t numel() const { return element_count(dims); }
  size_t bytes() const { return static_cast<size_t>(numel()) * byte_size(dtype); }
  std::string mlir() const;  // "tensor<2x3xf32>"
  std::string str() const;   // "f32[2,3]", for messages
};

}  // namespace tpu::ir

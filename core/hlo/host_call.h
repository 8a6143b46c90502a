// SPDX-License-Identifier: Apache-2.0
// A call of PyTorch's CPU kernel of an ATen op from inside a program. For targets that allow it
// (Target::host_calls): there device memory is host memory, and the kernel works in place of it.
//
// The arguments travel as text, one token for each of the schema's, separated by spaces:
//   -                     none
//   t, w                  the next operand; w: it is a wrapped number
//   q                     the next operand, its matrices stored by columns
//   T101                  a list of tensors: the next operands, 0 for an undefined element
//   o                     a tensor to be written: the next written result's memory
//   m                     the same, holding the next operand's value at first
//   b1 i-3 d<hex> c<hex>,<hex>   bool, int, double and complex by their bits
//   I1,2 D<hex>,<hex> B101       lists of them
//   s<hex>                a string, two digits a byte
//   y11                   an ir::DType
//   x                     the device the kernel runs on
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/hlo/elementwise.h"

namespace tpu::hlo {

// The custom call's target. The number changes with the format above or with what the other side
// does, so that stored programs are not found by a build that understands them differently.
inline constexpr std::string_view kHostCallTarget = "torch_tpu.host_call.1";

struct HostDevice {};
// Its last two axes change places in memory: no copy where the value is a transposed one.
struct HostByColumns {
  Value value;
};
struct HostWritten {
  std::optional<Value> initial;  // what the kernel finds in it
};
using HostArgument = std::variant<std::monostate, Value, std::vector<std::optional<Value>>,
                                  HostByColumns, HostWritten, Literal, Dims, std::vector<double>,
                                  std::vector<bool>, std::string, DType, HostDevice>;

struct HostCall {
  std::string op;                          // with overload: "aten::convolution_backward"
  std::vector<HostArgument> arguments;     // all of the schema's, in order
  std::vector<std::optional<Type>> fresh;  // per tensor returned; nullopt: not asked for
  std::vector<Type> written = {};          // per HostWritten
};

// The fresh results, with an undefined value (id -1) where nullopt was asked, then the written
// ones. An error of the kernel becomes a check of the graph, so it reaches the user like those.
Values host_call(Graph& graph, const HostCall& call);

}  // namespace tpu::hlo

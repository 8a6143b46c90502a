// SPDX-License-Identifier: Apache-2.0
// What the boxed entry knows about one ATen overload: which arguments are tensors, which are
// run-time numbers, which are written, and the rule that lowers it. Derived from the schema once,
// at registration; immutable afterwards.
#pragma once

#include "backend/torch_headers.h"
#include "lower/rule.h"

namespace torch_tpu {

struct ArgSpec {
  enum class Kind : uint8_t {
    kTensor,      // Tensor or Tensor?
    kTensorList,  // Tensor[] or Tensor?[]
    kNumber,      // run-time number (Scalar, float, int the rule wants as Scalar)
    kNumberList,
    kStatic,  // part of the key
    kGenerator,
    kIgnored,  // Device, Layout, MemoryFormat, pin_memory: in the key, not passed to rules
  };
  Kind kind;
  bool coefficient = false;  // its being 0 or 1 is part of the key
  bool exponent = false;     // its tpu::lower::exponent_class is part of the key
  bool written = false;
  bool out = false;    // an out= argument: written, never read
  bool dtype = false;  // a ScalarType, passed to rules as DType
};

struct Op {
  enum class Form : uint8_t {
    kFunctional,  // returns fresh tensors
    kInplace,     // derived: functional results go to the written arguments
    kOut,         // derived: functional results go to the out= arguments, resized
    kMutating,    // the rule itself is declared for an overload that writes arguments
  };

  Op(const c10::OperatorHandle& handle, const tpu::lower::Rule* rule, Form form,
     std::optional<c10::OperatorHandle> functional);

  c10::OperatorHandle handle;
  std::string name;  // "aten::add_.Tensor"
  std::string base;  // "aten::add", of every overload and form of the group
  uint64_t name_hash;
  const tpu::lower::Rule* rule;  // null: PyTorch's decomposition is recorded instead
  Form form;
  std::vector<ArgSpec> args;
  // Schema arguments in the order the rule's parameters expect; -1: pass the out tensor's dtype.
  std::vector<int> rule_args;
  int generator = -1;
  int memory_format = -1;
  int index_list = -1;  // the Tensor?[] of an indexing op
  // Runs PyTorch's native structured metadata, if the op has it.
  std::optional<c10::OperatorHandle> native_meta;
  // Per schema return: the argument it aliases, or -1 for a fresh tensor.
  std::vector<int> returns;
};

inline constexpr int kOutDtype = -1;

}  // namespace torch_tpu

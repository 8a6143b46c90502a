// SPDX-License-Identifier: Apache-2.0
// One call of an op, taken apart: its tensors, its run-time numbers and its key. Lives on the stack
// of the boxed entry.
#pragma once

#include "backend/cell.h"
#include "backend/op.h"
#include "core/base/hash.h"

namespace torch_tpu {

struct TensorArg {
  const at::Tensor* tensor;
  Cell* cell;     // null for a 0-dim CPU tensor, which is a run-time number
  int slot = -1;  // of that number
  bool written = false;
  bool out = false;
};

class OpCall {
 public:
  OpCall(const Op& op, torch::jit::Stack& stack);
  OpCall(const OpCall&) = delete;
  OpCall& operator=(const OpCall&) = delete;

  const Op& op;
  torch::jit::Stack& stack;
  c10::ArrayRef<c10::IValue> args;
  c10::DeviceIndex device = -1;
  c10::SmallVector<TensorArg, 8> tensors;           // defined ones, lists flattened, schema order
  c10::SmallVector<tpu::lower::Number, 4> numbers;  // run-time numbers by slot
  int64_t extent = 0;                               // see tpu::lower::Traits

  // Identity of the program: everything but the run-time numbers. The offsets of views come last,
  // so that key_without_offsets() identifies calls that differ only in position.
  const tpu::Hash128& key() const { return key_; }
  tpu::Hash128 key_without_offsets() const { return hasher_.finish_first(words_before_offsets_); }
  // Offsets of the device tensors, in order.
  c10::ArrayRef<int64_t> offsets() const { return offsets_; }

  // Applies the rule's check of run-time numbers.
  void check_numbers() const;

  // Replaces the arguments on the stack by the returned values.
  void finish(c10::ArrayRef<c10::IValue> results);

 private:
  void add_tensor(const at::Tensor& t, const ArgSpec& spec);
  void add_geometry(const at::Tensor& t, Cell& cell, tpu::ir::DType dtype, uint64_t bits);
  void add_number(const c10::IValue& v, const ArgSpec& spec);
  void add_static(const c10::IValue& v);
  void add_sharing();
  void add_extent();
  void find_device();
  tpu::ir::DType first_dtype() const;

  tpu::Hasher hasher_;
  size_t words_before_offsets_ = 0;
  tpu::Hash128 key_;
  c10::SmallVector<int64_t, 8> offsets_;
};

// What alpha or beta is, as far as it is part of the key.
tpu::lower::Coefficient::Class class_of(const tpu::lower::Number& n);

// Flags of the process that programs depend on: precision, host calls.
uint64_t program_flags();
// TORCH_TPU_LOWER_FOR=tpu: the forms that TPUs get, also on a plugin that computes on the host.
bool lowers_for_tpu();
void set_matmul_precision(tpu::ir::Precision p);
tpu::ir::Precision matmul_precision();

}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
// One host call as its program describes it: the operator and its arguments, decoded once. Kernels
// are kept for the life of the process, found by their description. Thread-safe.
#pragma once

#include "backend/torch_headers.h"
#include "core/pjrt/ffi.h"

namespace torch_tpu {

class HostKernel {
 public:
  static const HostKernel& of(const tpu::pjrt::HostCallFrame& frame);

  // Runs PyTorch's CPU kernel on the frame's memory. Throws what that throws; then the results hold
  // zeros, and tensors that were to be changed their old values.
  void run(const tpu::pjrt::HostCallFrame& frame) const;

 private:
  struct Slot {
    enum class Kind : uint8_t {
      kConstant,
      kTensor,
      kByColumns,
      kWrappedNumber,
      kList,
      kOut,
      kMutated
    };
    Kind kind = Kind::kConstant;
    c10::IValue constant = {};
    std::vector<bool> defined = {};  // of a list's elements
    bool optional_elements = false;
  };
  class Memory;

  HostKernel(std::string_view op, std::string_view args, std::string_view wanted);
  static Slot decode(const c10::Argument& argument, std::string_view token);
  c10::IValue list(const Slot& slot, Memory& memory) const;
  void call(torch::jit::Stack& stack, Memory& memory) const;
  void take_results(const torch::jit::Stack& stack, Memory& memory) const;

  c10::OperatorHandle handle_;
  // The overload that writes the fresh results in place, where there is one.
  std::optional<c10::OperatorHandle> out_form_;
  std::vector<Slot> slots_;
  std::vector<bool> wanted_;  // per fresh tensor
  size_t fresh_ = 0;          // of them wanted
};

}  // namespace torch_tpu

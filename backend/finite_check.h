// SPDX-License-Identifier: Apache-2.0
// Debug mode's look at values: an op that makes NaN or infinity of finite operands is an error.
// Off unless set_finite_checks(true) was called, and outside of Debug mode. One per call, on its
// stack.
#pragma once

#include "backend/plan.h"

namespace torch_tpu {

void set_finite_checks(bool on);  // of the process

class FiniteCheck {
 public:
  // Keeps the call's operands, which the launch must then not overwrite.
  explicit FiniteCheck(const OpCall& call);
  // Waits for the results. RuntimeError naming the op, the result, its first element that is not
  // finite and the Python line.
  void look_at(const Tensors& fresh) const;

 private:
  bool operands_are_finite() const;

  const OpCall& call_;
  bool active_;
  std::vector<tpu::exec::ArrayRef> operands_;
};

}  // namespace torch_tpu

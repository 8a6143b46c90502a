// SPDX-License-Identifier: Apache-2.0
// The one entry through which every ATen op with a rule (or a decomposition) runs.
#pragma once

#include "backend/op.h"
#include "backend/plan.h"

namespace torch_tpu {

// Runs the op on the arguments at the top of the stack and replaces them with its results.
void run_op(const Op& op, torch::jit::Stack& stack);

// Inside a recording: the op's values join the recorded graph, and nothing runs. Without a rule the
// op becomes a host call; throws RecordingAbandoned where that cannot be.
void record_op(const Op& op, torch::jit::Stack& stack, Recording& recording);

// The plan of a call whose key has not been seen: by the rule, or however the caller makes one.
using PlanMaker = std::function<std::unique_ptr<Plan>()>;
const Plan& plan_for(const OpCall& call, const PlanMaker& make);

// Puts the results of a launched call on the stack, as the schema says.
void return_results(OpCall& call, Tensors fresh);

// Makes the index list of x[...] one that a rule takes: integers, on the device.
void prepare_indices(const Op& op, torch::jit::Stack& stack);

void clear_plans();

// An in-place op that a kernel runs itself, by the rule of its functional form ("aten::copy").
class InPlaceOp {
 public:
  explicit InPlaceOp(const std::string& base, const std::string& overload = "");

  template <class... Args>
  void operator()(const at::Tensor& self, Args... args) const {
    torch::jit::Stack stack{self, args...};
    run_op(op_, stack);
  }

 private:
  const Op op_;
};

class BoxedOp final : public c10::OperatorKernel {
 public:
  explicit BoxedOp(const Op& op) : op_(op) {}
  void operator()(const c10::OperatorHandle& /*handle*/, c10::DispatchKeySet /*keys*/,
                  torch::jit::Stack* stack) {
    run_op(op_, *stack);
  }

 private:
  const Op& op_;
};

}  // namespace torch_tpu

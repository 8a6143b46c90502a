// SPDX-License-Identifier: Apache-2.0
// `x[i]` accepts index tensors on the CPU; they go to the device before the call is taken apart.
#include "backend/boxed.h"

namespace torch_tpu {
namespace {

bool has_cpu_tensor(const c10::IValue& list) {
  for (const c10::IValue& e : list.toListRef()) {
    if (e.isTensor() && e.toTensor().defined() && e.toTensor().is_cpu()) return true;
  }
  return false;
}

}  // namespace

void move_cpu_indices(const Op& op, torch::jit::Stack& stack) {
  const size_t n = op.args.size();
  for (size_t i = 0; i < n; ++i) {
    if (op.args[i].kind != ArgSpec::Kind::kTensorList) continue;
    c10::IValue& v = torch::jit::peek(stack, i, n);
    if (!v.isOptionalTensorList() || !has_cpu_tensor(v)) continue;
    const at::Device device = torch::jit::peek(stack, 0, n).toTensor().device();
    c10::List<std::optional<at::Tensor>> moved;
    for (const c10::IValue& e : v.toListRef()) {
      const bool defined = e.isTensor() && e.toTensor().defined();
      moved.push_back(defined ? std::optional(e.toTensor().to(device)) : std::nullopt);
    }
    v = std::move(moved);
  }
}

}  // namespace torch_tpu

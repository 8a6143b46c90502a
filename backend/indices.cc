// SPDX-License-Identifier: Apache-2.0
// Index lists as a rule can take them: `x[i]` accepts index tensors on the CPU and boolean masks.
// CPU indices go to the device. A mask that is read through becomes the positions of its true
// elements, whose number only the device knows, so it waits; one that is written through stays.
#include "backend/boxed.h"

namespace torch_tpu {
namespace {

bool is_mask(const at::Tensor& t) {
  return t.scalar_type() == at::kBool || t.scalar_type() == at::kByte;
}

bool needs_work(const c10::IValue& list, bool expand_masks) {
  for (const c10::IValue& e : list.toListRef()) {
    if (!e.isTensor() || !e.toTensor().defined()) continue;
    if (e.toTensor().is_cpu() || (expand_masks && is_mask(e.toTensor()))) return true;
  }
  return false;
}

void check_mask(const at::Tensor& self, const at::Tensor& mask, int64_t axis) {
  for (int64_t i = 0; i < mask.dim(); ++i) {
    TORCH_CHECK_INDEX(axis + i < self.dim() && mask.size(i) == self.size(axis + i),
                      "The shape of the mask ", mask.sizes(), " at index ", i,
                      " does not match the shape of the indexed tensor ", self.sizes(),
                      " at index ", axis + i);
  }
}

using Indices = c10::List<std::optional<at::Tensor>>;

Indices usable(const at::Tensor& self, const c10::IValue& list, bool expand_masks) {
  Indices out;
  int64_t axis = 0;
  for (const c10::IValue& e : list.toListRef()) {
    if (!e.isTensor() || !e.toTensor().defined()) {
      out.push_back(std::nullopt);
      ++axis;
      continue;
    }
    const at::Tensor index = e.toTensor();
    if (!is_mask(index) || !expand_masks) {
      out.push_back(index.to(self.device()));
      axis += is_mask(index) ? index.dim() : 1;
      continue;
    }
    check_mask(self, index, axis);
    // A mask on the CPU is counted there, without waiting for the device.
    for (const at::Tensor& position : index.nonzero().unbind(1)) {
      out.push_back(position.to(self.device()));
    }
    axis += index.dim();
  }
  return out;
}

}  // namespace

void prepare_indices(const Op& op, torch::jit::Stack& stack) {
  if (op.index_list < 0) return;
  const size_t n = op.args.size();
  c10::IValue& list = torch::jit::peek(stack, static_cast<size_t>(op.index_list), n);
  const bool reads = op.form == Op::Form::kFunctional && op.base == "aten::index";
  if (!needs_work(list, reads)) return;
  list = usable(torch::jit::peek(stack, 0, n).toTensor(), list, reads);
}

}  // namespace torch_tpu

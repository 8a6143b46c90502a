// SPDX-License-Identifier: Apache-2.0
// Which operators tensors that are not dense have on the device. Most of PyTorch's CPU kernels for
// sparse COO tensors are written in dense operators, so they serve any device; the others are in
// sparse.h. Compressed layouts can be made, moved and converted. The rest is refused by name.
#include "backend/sparse.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/_embedding_bag_backward_native.h>
#include <ATen/ops/to_sparse_native.h>

namespace torch_tpu {
namespace {

using c10::DispatchKey;
using c10::OperatorHandle;
using Names = std::unordered_set<std::string_view>;

// Operators, with their in-place and out= forms, whose kernel for SparseCPU touches memory only
// through dense operators.
const Names kShared{
    // construction and access
    "_coalesced", "_dimI", "_dimV", "_indices", "_nnz", "_sparse_coo_tensor_with_dims",
    "_sparse_coo_tensor_with_dims_and_tensors", "_values", "clone", "copy", "copy_sparse_to_sparse",
    "dense_dim", "empty", "empty_like", "indices", "is_coalesced", "resize_as_sparse", "sparse_dim",
    "sparse_resize", "sparse_resize_and_clear", "values", "zero", "zeros",
    // shape
    "_sparse_broadcast_to", "_to_dense", "_to_sparse", "cat", "narrow_copy", "permute", "unsqueeze",
    "view_as_complex", "view_as_real",
    // arithmetic
    "add", "any", "div", "floor_divide", "mm", "mul", "mv", "native_norm", "norm", "pow", "sub",
    "sum", "threshold_backward",
    // value by value
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "deg2rad", "erf", "erfinv",
    "expm1", "floor", "frac", "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num",
    "neg", "rad2deg", "relu", "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc"};
// The same for SparseCsrCPU, which serves all compressed layouts.
const Names kSharedCompressed{"_nnz",   "_to_dense",   "ccol_indices", "clone",
                              "copy",   "col_indices", "crow_indices", "dense_dim",
                              "empty",  "empty_like",  "row_indices",  "sparse_dim",
                              "values", "_to_sparse"};

bool on_tpu(c10::Device d) { return d.type() == c10::DeviceType::PrivateUse1; }

// Where a call makes its tensors: on the asked device, else on its first tensor's.
std::optional<c10::Device> device_of(c10::ArrayRef<c10::IValue> arguments) {
  std::optional<c10::Device> device;
  for (const c10::IValue& v : arguments) {
    if (v.isDevice()) return v.toDevice();
    if (!device && v.isTensor() && v.toTensor().defined()) device = v.toTensor().device();
  }
  return device;
}

template <DispatchKey kKey>
void run_shared(const OperatorHandle& op, torch::jit::Stack* stack) {
  const auto device = device_of(torch::jit::last(*stack, op.schema().arguments().size()));
  const c10::OptionalDeviceGuard guard(device && on_tpu(*device) ? device : std::nullopt);
  op.callBoxedForDispatchKey(kKey, *stack);
}

std::string_view without_underscore(const std::string& name) {
  std::string_view base(name);
  base.remove_prefix(std::string_view("aten::").size());
  if (base.ends_with('_')) base.remove_suffix(1);
  return base;
}

// Kernels for `kFrom` of the named operators serve `to` as well, unless it has its own.
template <DispatchKey kFrom>
void share(torch::Library& library, DispatchKey to, const Names& names) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::") || !names.contains(without_underscore(name.name)))
      continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !op->hasKernelForDispatchKey(kFrom) || op->hasKernelForDispatchKey(to)) continue;
    library.impl(c10::toString(name).c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&run_shared<kFrom>>());
  }
}

class Refusal : public c10::OperatorKernel {
 public:
  Refusal(const char* kind, const char* advice) : kind_(kind), advice_(advice) {}
  void operator()(const OperatorHandle& op, c10::DispatchKeySet /*keys*/,
                  torch::jit::Stack* /*stack*/) const {
    TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), ": not supported for ", kind_,
                                " on tpu; ", advice_);
  }
  static torch::CppFunction fallback(const char* kind, const char* advice) {
    return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Refusal>(kind, advice));
  }

 private:
  const char* kind_;
  const char* advice_;
};

at::Tensor& addmm_(at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                   const at::Scalar& beta, const at::Scalar& alpha) {
  return self.copy_(sparse::addmm(self, mat1, mat2, beta, alpha));
}

at::Tensor& addmm_out(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  const at::Tensor result = sparse::addmm(self, mat1, mat2, beta, alpha);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

at::Tensor mask_projection(const at::Tensor& self, const at::Tensor& mask,
                           bool /*accumulate_matches*/) {
  return sparse::mask(self, mask);
}

at::Tensor to_sparse(const at::Tensor& self, std::optional<c10::Layout> layout,
                     at::OptionalIntArrayRef blocks, std::optional<int64_t> dense_dim) {
  const bool hybrid = layout.value_or(at::kSparse) == at::kSparse && !blocks;
  if (hybrid) return sparse::dense_to_sparse(self, self.dim() - dense_dim.value_or(0));
  return at::native::dense_to_sparse(self, layout, blocks, dense_dim);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_to_sparse.sparse_dim", &sparse::dense_to_sparse);
  m.impl("_to_sparse", &to_sparse);
  m.impl("_embedding_bag_backward", &at::native::_embedding_bag_backward_symint);
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_coalesce", &sparse::coalesce);
  m.impl("sparse_mask", &sparse::mask);
  m.impl("_sparse_mask_projection", &mask_projection);
  m.impl("add.out", &sparse::add_out);
  m.impl("mul.out", &sparse::mul_out);
  m.impl("addmm", &sparse::addmm);
  m.impl("addmm_", &addmm_);
  m.impl("addmm.out", &addmm_out);
  m.impl("bmm", &sparse::bmm);
  m.impl("_sparse_sparse_matmul", &sparse::matmul);
  m.impl("index_select", &sparse::index_select);
  m.impl("_sparse_sum_backward", &sparse::sum_backward);
  share<DispatchKey::SparseCPU>(m, DispatchKey::SparsePrivateUse1, kShared);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  share<DispatchKey::SparseCsrCPU>(m, DispatchKey::SparseCsrPrivateUse1, kSharedCompressed);
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(Refusal::fallback("sparse COO tensors", "use .to_dense()"));
}
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(Refusal::fallback("compressed sparse tensors (CSR, CSC, BSR, BSC)",
                               "use .to_dense() or .to_sparse_coo()"));
}
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(Refusal::fallback("nested tensors of strided layout",
                               "make them with layout=torch.jagged, or pad them"));
}
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(Refusal::fallback("quantized tensors", "use .dequantize() on the CPU"));
}

}  // namespace torch_tpu

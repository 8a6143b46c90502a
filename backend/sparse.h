// SPDX-License-Identifier: Apache-2.0
// Sparse COO tensors on the device: PyTorch's SparseTensorImpl over two dense tpu tensors. These
// are the operators whose CPU kernels walk memory, written in dense operators instead; everything
// they launch runs on the device. Stateless, callable from any thread.
#pragma once

#include "backend/torch_headers.h"

namespace torch_tpu::sparse {

// Sorts and sums duplicates. Waits for the number of distinct indices.
at::Tensor coalesce(const at::Tensor& self);
at::Tensor dense_to_sparse(const at::Tensor& self, int64_t sparse_dim);
// `self` at the indices of `mask`, zero where it has none.
at::Tensor mask(const at::Tensor& self, const at::Tensor& mask);

at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
                    at::Tensor& out);
at::Tensor& mul_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out);
at::Tensor addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                 const at::Scalar& beta, const at::Scalar& alpha);
at::Tensor bmm(const at::Tensor& self, const at::Tensor& mat2);
at::Tensor matmul(const at::Tensor& self, const at::Tensor& other);
at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index);
at::Tensor sum_backward(const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef dims);

}  // namespace torch_tpu::sparse

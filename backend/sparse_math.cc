// SPDX-License-Identifier: Apache-2.0
#include <ATen/ExpandUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/mul_native.h>
#include <ATen/ops/sparse_mask_native.h>
#include <ATen/ops/to_sparse_native.h>

#include "backend/device.h"
#include "backend/dynamic_shapes.h"
#include "backend/sparse.h"

namespace torch_tpu::sparse {
namespace {

at::SparseTensorImpl& impl_of(const at::Tensor& t) {
  return static_cast<at::SparseTensorImpl&>(*t.unsafeGetTensorImpl());
}

at::Tensor make(const at::Tensor& indices, const at::Tensor& values, at::IntArrayRef sizes,
                bool coalesced) {
  return at::_sparse_coo_tensor_unsafe(indices, values, sizes, values.options().layout(at::kSparse),
                                       coalesced);
}

at::Tensor& assign(at::Tensor& out, const at::Tensor& from) {
  TORCH_CHECK(out.is_sparse(), "expected a sparse 'out', got layout ", out.layout());
  impl_of(out).raw_resize_(from.sparse_dim(), from.dense_dim(), from.sizes());
  impl_of(out).set_indices_and_values_unsafe(from._indices(), from._values().to(out.dtype()));
  return out._coalesced_(from.is_coalesced());
}

void check_same_device(const at::Tensor& a, const at::Tensor& b) {
  if (a.device() != b.device()) refuse_mixed_devices(a.device(), b.device());
}

void check_result_type(const at::Tensor& out, c10::ScalarType type, const char* operation) {
  TORCH_CHECK(at::canCast(type, out.scalar_type()), "Can't convert result type ", type,
              " to output ", out.scalar_type(), " in ", operation, " operation");
}

// Each index as one number, in the order of coalesced indices.
at::Tensor flatten(const at::Tensor& indices, at::IntArrayRef sizes) {
  if (indices.size(0) == 0) return at::zeros({indices.size(1)}, indices.options());
  at::Tensor keys = indices.select(0, 0);
  for (int64_t d = 1; d < indices.size(0); ++d) {
    keys = at::add(indices.select(0, d), keys, sizes[static_cast<size_t>(d)]);
  }
  return keys;
}

// Where keys lie among sorted keys; `hit` is false for those that do not.
struct Matches {
  at::Tensor position;
  at::Tensor hit;
};
Matches match(const at::Tensor& sorted, const at::Tensor& keys) {
  const at::Tensor position = at::searchsorted(sorted, keys).clamp_max(sorted.size(0) - 1);
  return {position, sorted.index_select(0, position).eq(keys)};
}

// The values of a sparse tensor at some indices, zero where it has none.
at::Tensor values_at(const at::Tensor& sparse, const at::Tensor& indices) {
  const at::Tensor from = sparse.coalesce();
  c10::DimVector sizes(from._values().sizes());
  sizes[0] = indices.size(1);
  if (from._nnz() == 0) return at::zeros(sizes, from._values().options());
  const auto [position, hit] =
      match(flatten(from._indices(), from.sizes()), flatten(indices, from.sizes()));
  c10::DimVector rows(sizes.size(), 1);
  rows[0] = sizes[0];
  return from._values().index_select(0, position).masked_fill(hit.logical_not().view(rows), 0);
}

// Every pair of equal keys: `left` counts along `keys`, `right` along the sorted ones.
struct Pairs {
  at::Tensor left;
  at::Tensor right;
};
Pairs join(const at::Tensor& keys, const at::Tensor& sorted) {
  const at::Tensor first = at::searchsorted(sorted, keys);
  const at::Tensor counts = at::searchsorted(sorted, keys, false, /*right=*/true).sub(first);
  const at::Tensor left = at::repeat_interleave(counts);
  const at::Tensor before = counts.cumsum(0).sub(counts).sub(first).index_select(0, left);
  return {left, at::arange(left.size(0), left.options()).sub(before)};
}

using IndexList = c10::List<std::optional<at::Tensor>>;
IndexList index_list(const at::Tensor& indices) {
  IndexList list;
  for (const at::Tensor& d : indices.unbind(0)) list.push_back(d);
  return list;
}

// Sums rows of equal segment number.
at::Tensor sum_segments(const at::Tensor& rows, const at::Tensor& segments, int64_t count) {
  c10::DimVector sizes(rows.sizes());
  sizes[0] = count;
  if (rows.scalar_type() == at::kBool)
    return sum_segments(rows.to(at::kInt), segments, count).ne(0);
  return at::zeros(sizes, rows.options()).index_add_(0, segments, rows);
}

// dense[indices] += alpha * values, duplicates too.
void scatter_add(const at::Tensor& dense, const at::Tensor& sparse, const at::Scalar& alpha) {
  const at::Tensor indices = sparse._indices();
  at::Tensor values = sparse._values().to(dense.scalar_type());
  if (sparse.sparse_dim() == 1 && dense.scalar_type() != at::kBool) {
    dense.index_add_(0, indices.select(0, 0), values, alpha);
    return;
  }
  values = values.mul(alpha).to(dense.scalar_type());
  if (sparse.sparse_dim() == 0) {
    dense.add_(values.sum(0));
    return;
  }
  dense.index_put_(index_list(indices), values, /*accumulate=*/true);
}

at::Tensor& add_to_dense(const at::Tensor& dense, const at::Tensor& sparse, const at::Scalar& alpha,
                         at::Tensor& out) {
  check_same_device(dense, sparse);
  TORCH_CHECK(dense.sizes().equals(sparse.sizes()),
              "add: expected 'self' and 'other' to have same size, but self has size ",
              dense.sizes(), " while other has size ", sparse.sizes(),
              " (FYI: dense-sparse addition does not currently support broadcasting)");
  const auto type = at::promote_types(dense.scalar_type(), sparse.scalar_type());
  check_result_type(out, type, "add");
  at::native::resize_output(out, dense.sizes());
  const bool direct = out.scalar_type() == type;
  if (direct && !out.is_same(dense)) out.copy_(dense);
  const at::Tensor sum = direct ? out : dense.to(type, false, /*copy=*/true);
  if (sparse._nnz() > 0) scatter_add(sum, sparse, alpha);
  return direct ? out : out.copy_(sum);
}

at::Tensor matrix_product(const at::Tensor& into, const at::Tensor& rows, const at::Tensor& columns,
                          const at::Tensor& values, const at::Tensor& dense,
                          const at::Scalar& alpha) {
  return into.index_add(0, rows, dense.index_select(0, columns).mul(values.unsqueeze(1)), alpha);
}

}  // namespace

at::Tensor coalesce(const at::Tensor& self) {
  if (self._nnz() < 2) return self.clone()._coalesced_(true);
  const auto [keys, order] = flatten(self._indices(), self.sizes()).sort(/*stable=*/true, 0, false);
  const int64_t last = keys.size(0) - 1;
  const at::Tensor starts = at::cat({at::ones({1}, keys.options().dtype(at::kBool)),
                                     keys.narrow(0, 1, last).ne(keys.narrow(0, 0, last))});
  const int64_t count = count_true(starts);
  const int64_t length = bucket(count);
  const at::Tensor firsts = at::nonzero_static(starts, length, 0).select(1, 0);
  const at::Tensor values =
      sum_segments(self._values().index_select(0, order), starts.cumsum(0).sub(1), length);
  const at::Tensor indices = self._indices().index_select(1, order.index_select(0, firsts));
  return make(indices.narrow(1, 0, count), values.narrow(0, 0, count), self.sizes(), true);
}

at::Tensor dense_to_sparse(const at::Tensor& self, int64_t sparse_dim) {
  if (sparse_dim <= 0 || sparse_dim >= self.dim()) {
    return at::native::dense_to_sparse(self, sparse_dim);
  }
  const at::Tensor kept = self.ne(0).flatten(sparse_dim).any(-1);
  const at::Tensor indices = kept.nonzero().t();
  return make(indices, self.index(index_list(indices)), self.sizes(), true);
}

at::Tensor mask(const at::Tensor& self, const at::Tensor& mask) {
  check_same_device(self, mask);
  if (!self.is_sparse() || !self.sizes().equals(mask.sizes()) || self._nnz() == 0 ||
      mask._nnz() == 0) {
    return at::native::sparse_mask(self, mask);
  }
  TORCH_CHECK(mask.sparse_dim() == self.sparse_dim(),
              "sparse_mask(): the number of sparse dimensions in `self` (", self.sparse_dim(),
              ") and `mask` (", mask.sparse_dim(), ") do not match");
  return make(mask._indices().clone(), values_at(self, mask._indices()), self.sizes(),
              mask.is_coalesced());
}

at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
                    at::Tensor& out) {
  if (!self.is_sparse()) return add_to_dense(self, other, alpha, out);
  TORCH_CHECK(other.is_sparse(),
              "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  check_same_device(self, other);
  TORCH_CHECK(self.sizes().equals(other.sizes()),
              "add: expected sizes of 'self' and 'other' to match, but ", self.sizes(),
              " != ", other.sizes());
  const auto type = at::promote_types(self.scalar_type(), other.scalar_type());
  check_result_type(out, type, "add");
  if (other._nnz() == 0) return assign(out, self.clone());
  const at::Tensor scaled = other._values().to(type).mul(alpha).to(type);
  if (self._nnz() == 0) {
    return assign(out, make(other._indices().clone(), scaled, other.sizes(), other.is_coalesced()));
  }
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim(),
              "add: expected 'self' and 'other' to have same density, but 'self' has ",
              self.sparse_dim(), " sparse dimensions while 'other' has ", other.sparse_dim(),
              " sparse dimensions");
  const at::Tensor sum = make(at::cat({self._indices(), other._indices()}, 1),
                              at::cat({self._values().to(type), scaled}), self.sizes(), false);
  const bool keep_coalesced = self.is_coalesced() && other.is_coalesced();
  const bool too_long = sum._nnz() > sum.numel();  // sums of many uncoalesced tensors stay bounded
  return assign(out, keep_coalesced || too_long ? coalesce(sum) : sum);
}

at::Tensor& mul_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  if (self.dim() > 0 && other.dim() > 0) check_same_device(self, other);
  const bool both = self.is_sparse() && other.is_sparse() && self.dim() > 0 && other.dim() > 0;
  TORCH_CHECK(
      !both || (self.sizes().equals(other.sizes()) && self.sparse_dim() == other.sparse_dim()),
      "mul: expected sparse tensors of the same sizes and sparse dimensions, got ", self.sizes(),
      " and ", other.sizes(), "; use .to_dense() to broadcast");
  if (!both || !self._nnz() || !other._nnz()) {
    return at::native::mul_out_sparse_cpu(self, other, out);  // of dense operators, but for `both`
  }
  const auto type = at::promote_types(self.scalar_type(), other.scalar_type());
  check_result_type(out, type, "mul");
  const at::Tensor a = self.coalesce();
  const at::Tensor b = other.coalesce();
  const auto [position, hit] =
      match(flatten(a._indices(), a.sizes()), flatten(b._indices(), b.sizes()));
  const at::Tensor kept = hit.nonzero().select(1, 0);
  const at::Tensor values = a._values()
                                .to(type)
                                .index_select(0, position.index_select(0, kept))
                                .mul(b._values().to(type).index_select(0, kept));
  return assign(out, make(b._indices().index_select(1, kept), values, a.sizes(), true));
}

at::Tensor addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                 const at::Scalar& beta, const at::Scalar& alpha) {
  TORCH_CHECK(mat1.is_sparse() && !mat2.is_sparse() && !self.is_sparse(),
              "addmm: only dense + sparse @ dense is supported on tpu; use .to_dense() on the "
              "second matrix");
  check_same_device(mat1, mat2);
  check_same_device(mat1, self);
  TORCH_CHECK(mat1.sparse_dim() == 2, "addmm: matrices expected, got ", mat1.sparse_dim(),
              "D tensor");
  TORCH_CHECK(mat1.dense_dim() == 0, "addmm: scalar values expected, got ", mat1.dense_dim(),
              "D values");
  TORCH_CHECK(mat2.dim() == 2, "addmm: matrices expected, got ", mat2.dim(), "D tensor");
  TORCH_CHECK(mat2.size(0) == mat1.size(1), "addmm: Argument #3 (dense): Expected dim 0 size ",
              mat1.size(1), ", got ", mat2.size(0));
  const at::Tensor into =
      beta.equal(0) ? at::zeros({mat1.size(0), mat2.size(1)}, self.options())
                    : at::expand_size(self, {mat1.size(0), mat2.size(1)}, "addmm")->mul(beta);
  return matrix_product(into, mat1._indices().select(0, 0), mat1._indices().select(0, 1),
                        mat1._values(), mat2, alpha);
}

at::Tensor bmm(const at::Tensor& self, const at::Tensor& mat2) {
  TORCH_CHECK(self.is_sparse() && !mat2.is_sparse(),
              "bmm: only sparse @ dense is supported on tpu; use .to_dense() on the second matrix");
  check_same_device(self, mat2);
  TORCH_CHECK(self.dense_dim() == 0, "bmm_sparse: Tensor 'self' must have 0 dense dims, but has ",
              self.dense_dim());
  TORCH_CHECK(self.sparse_dim() == 3, "bmm_sparse: Tensor 'self' must have 3 sparse dims, but has ",
              self.sparse_dim());
  TORCH_CHECK(mat2.dim() == 3, "bmm_sparse: Tensor 'mat2' must have 3 dims, but has ", mat2.dim());
  TORCH_CHECK(self.size(0) == mat2.size(0),
              "bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match");
  TORCH_CHECK(self.size(2) == mat2.size(1),
              "bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match");
  const at::Tensor batch = self._indices().select(0, 0);
  const at::Tensor rows = at::add(self._indices().select(0, 1), batch, self.size(1));
  const at::Tensor columns = at::add(self._indices().select(0, 2), batch, self.size(2));
  const at::Tensor zeros = at::zeros({self.size(0) * self.size(1), mat2.size(2)}, mat2.options());
  return matrix_product(zeros, rows, columns, self._values(), mat2.flatten(0, 1), 1)
      .view({self.size(0), self.size(1), mat2.size(2)});
}

at::Tensor matmul(const at::Tensor& self, const at::Tensor& other) {
  check_same_device(self, other);
  TORCH_CHECK(self.is_sparse() && other.is_sparse() && self.dim() == 2 && other.dim() == 2 &&
                  self.dense_dim() == 0 && other.dense_dim() == 0,
              "_sparse_sparse_matmul: expected two sparse matrices without dense dimensions");
  TORCH_CHECK(self.size(1) == other.size(0), "mat1 and mat2 shapes cannot be multiplied (",
              self.size(0), "x", self.size(1), " and ", other.size(0), "x", other.size(1), ")");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "mat1 dtype ", self.scalar_type(),
              " does not match mat2 dtype ", other.scalar_type());
  const at::Tensor b = other.coalesce();
  const auto [left, right] = join(self._indices().select(0, 1), b._indices().select(0, 0));
  const at::Tensor indices = at::stack({self._indices().select(0, 0).index_select(0, left),
                                        b._indices().select(0, 1).index_select(0, right)});
  const at::Tensor values =
      self._values().index_select(0, left).mul(b._values().index_select(0, right));
  return coalesce(make(indices, values, {self.size(0), other.size(1)}, false));
}

at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  TORCH_CHECK_INDEX(index.dim() == 1 && at::isIntegralType(index.scalar_type(), false),
                    "index_select() argument index must be 1-D strided (non-sparse) long-tensor.");
  check_same_device(self, index);
  dim = at::maybe_wrap_dim(dim, self.dim());
  c10::DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(dim)] = index.size(0);
  if (dim >= self.sparse_dim()) {
    return make(self._indices().clone(),
                self._values().index_select(dim - self.sparse_dim() + 1, index), sizes,
                self.is_coalesced());
  }
  // Checks the range.
  const at::Tensor wrapped =
      at::arange(self.size(dim), self._indices().options()).index(IndexList({index}));
  const auto [sorted, order] = self._indices().select(0, dim).sort(/*stable=*/true, 0, false);
  const auto [left, right] = join(wrapped, sorted);
  const at::Tensor entries = order.index_select(0, right);
  const at::Tensor indices = self._indices().index_select(1, entries);
  indices.select(0, dim).copy_(left);
  return make(indices, self._values().index_select(0, entries), sizes, entries.size(0) < 2);
}

at::Tensor sum_backward(const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef dims) {
  const auto summed = at::dim_list_to_bitset(dims, self.dim());
  const at::Tensor indices = self._indices();
  std::vector<at::Tensor> kept;
  for (int64_t d = 0; d < self.sparse_dim(); ++d) {
    if (!summed[static_cast<size_t>(d)]) kept.push_back(indices.select(0, d));
  }
  at::Tensor values = grad.is_sparse() ? values_at(grad, at::stack(kept)) : grad.unsqueeze(0);
  for (int64_t d = self.sparse_dim(); d < self.dim(); ++d) {
    if (summed[static_cast<size_t>(d)]) values = values.unsqueeze(d - self.sparse_dim() + 1);
  }
  return make(indices.clone(), values.expand_as(self._values()).contiguous(), self.sizes(),
              self.is_coalesced());
}

}  // namespace torch_tpu::sparse

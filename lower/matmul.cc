// SPDX-License-Identifier: Apache-2.0
// Products of vectors and matrices.
#include "lower/matmul.h"

#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/host_kernels.h"
#include "lower/promote.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

Value narrow(Value wide, DType t) { return hlo::convert(wide, t); }

// beta * self + alpha * product, in the product's type. With beta 0 self is not read, so that its
// NaN does not appear.
Value accumulate(Value self, Value product, const Coefficient& beta, const Coefficient& alpha) {
  alpha.require_fits(product.dtype());
  beta.require_fits(product.dtype());
  const Value scaled = alpha.times(product);
  if (beta.is_zero()) return scaled;
  const Value base = hlo::broadcast_to(hlo::convert(self, product.dtype()), product.dims());
  return hlo::add(beta.times(base), scaled);
}

void require_same_dtype(Value a, Value b) {
  require(a.dtype() == b.dtype(), "expected m1 and m2 to have the same dtype, but got: {} != {}",
          cpp_name(a.dtype()), cpp_name(b.dtype()));
}

Value mm(Value a, Value b) {
  require_same_dtype(a, b);
  require_number("addmm_impl_cpu_", a.dtype());
  if (const auto y = host_matmul(a, b)) return *y;
  return narrow(wide_matmul(a, b), a.dtype());
}

Value mm_wide(Value a, Value b, DType out) {
  require_number("addmm_impl_cpu_", a.dtype());
  return narrow(wide_matmul(a, b), out);
}

Value bmm(Value a, Value b) {
  require_number("bmm", a.dtype());
  require(a.dtype() == b.dtype(), "expected scalar type {} but found {}",
          scalar_type_name(a.dtype()), scalar_type_name(b.dtype()));
  if (const auto y = host_matmul(a, b)) return *y;
  return narrow(wide_matmul(a, b), a.dtype());
}

Value addmm_in(Value self, Value a, Value b, DType out, const Coefficient& beta,
               const Coefficient& alpha) {
  require_same_dtype(a, b);
  require_number("addmm_impl_cpu_", a.dtype());
  return narrow(accumulate(self, wide_matmul(a, b), beta, alpha), out);
}

Value addmm(Value self, Value a, Value b, Coefficient beta, Coefficient alpha) {
  if (beta.is_one() && alpha.is_one()) {
    if (const auto y = host_addmm(self, a, b)) return *y;
  }
  return addmm_in(self, a, b, a.dtype(), beta, alpha);
}

Value addmm_wide(Value self, Value a, Value b, DType out, Coefficient beta, Coefficient alpha) {
  return addmm_in(self, a, b, out, beta, alpha);
}

Value baddbmm(Value self, Value a, Value b, Coefficient beta, Coefficient alpha) {
  require_number("baddbmm", a.dtype());
  require(a.dtype() == b.dtype(), "expected scalar type {} but found {}",
          scalar_type_name(a.dtype()), scalar_type_name(b.dtype()));
  return narrow(accumulate(self, wide_matmul(a, b), beta, alpha), a.dtype());
}

Value gelu(Value x) {
  const Value half = hlo::full_like(x, 0.5);
  const Value phi = hlo::erf(hlo::mul(x, hlo::full_like(x, 0.70710678118654752440)));
  return hlo::mul(hlo::mul(half, x), hlo::add(hlo::full_like(x, 1.0), phi));
}

Value addmm_activation(Value self, Value a, Value b, Coefficient beta, Coefficient alpha,
                       bool use_gelu) {
  require_number("addmm_impl_cpu_", a.dtype());
  if (use_gelu) require_float("GeluKernelImpl", a.dtype());
  const Value sum = accumulate(self, wide_matmul(a, b), beta, alpha);
  const Value activated = use_gelu ? gelu(sum) : hlo::max(sum, hlo::full_like(sum, int64_t{0}));
  return narrow(activated, a.dtype());
}

void require_batches(Value a, Value b) {
  require(a.rank() == 3, "batch1 must be a 3D tensor");
  require(b.rank() == 3, "batch2 must be a 3D tensor");
  require(a.dim(0) == b.dim(0), "batch1 and batch2 must have same number of batches, got {} and {}",
          a.dim(0), b.dim(0));
  require(a.dim(2) == b.dim(1), "Incompatible matrix sizes for bmm ({}x{} and {}x{})", a.dim(1),
          a.dim(2), b.dim(1), b.dim(2));
}

std::string spaced(const Dims& dims) {
  std::string text;
  for (const int64_t d : dims) text += fmt::format("{}{}", text.empty() ? "" : ", ", d);
  return text;
}

// PyTorch's expand() of a term to the result's dims.
void require_expandable(Value self, const Dims& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  for (int64_t i = 1; i <= self.rank(); ++i) {
    const int64_t have = self.dim(self.rank() - i);
    const int64_t want = dims[static_cast<size_t>(rank - i)];
    require(have == 1 || have == want,
            "The expanded size of the tensor ({}) must match the existing size ({}) at "
            "non-singleton dimension {}.  Target sizes: [{}].  Tensor sizes: [{}]",
            want, have, rank - i, spaced(dims), spaced(self.dims()));
  }
}

// The sum over batches is one contraction.
Value addbmm(Value self, Value a, Value b, Coefficient beta, Coefficient alpha) {
  require_batches(a, b);
  require_expandable(self, {a.dim(1), b.dim(2)});
  require_number("addmm_impl_cpu_", a.dtype());
  const Value product = wide_dot(a, b, {.lhs_contract = {0, 2}, .rhs_contract = {0, 1}});
  return narrow(accumulate(self, product, beta, alpha), a.dtype());
}

Value matrix_vector(Value matrix, Value vector) {
  return wide_dot(matrix, vector, {.lhs_contract = {1}, .rhs_contract = {0}});
}

Value addmv(Value self, Value matrix, Value vector, Coefficient beta, Coefficient alpha) {
  require_number("addmv_impl_cpu", matrix.dtype());
  beta.require_fits(matrix.dtype());
  alpha.require_fits(matrix.dtype());
  return narrow(accumulate(self, matrix_vector(matrix, vector), beta, alpha), matrix.dtype());
}

Value mv(Value matrix, Value vector) {
  require(matrix.rank() == 2 && vector.rank() == 1,
          "vector + matrix @ vector expected, got {}, {}, {}", 1, matrix.rank(), vector.rank());
  require(matrix.dim(1) == vector.dim(0), "size mismatch, got input ({}), mat ({}x{}), vec ({})",
          matrix.dim(0), matrix.dim(0), matrix.dim(1), vector.dim(0));
  require(matrix.dtype() == vector.dtype(),
          "addmv input tensors must have the same dtype, but got {}, {}, and {}",
          scalar_type_name(vector.dtype()), scalar_type_name(matrix.dtype()),
          scalar_type_name(vector.dtype()));
  require_number("addmv_impl_cpu", matrix.dtype());
  if (const auto y = host_matrix_vector(matrix, vector)) return *y;
  return narrow(matrix_vector(matrix, vector), matrix.dtype());
}

void require_vectors(Value a, Value b) {
  require(a.rank() == 1 && b.rank() == 1, "1D tensors expected, but got {}D and {}D tensors",
          a.rank(), b.rank());
  require(a.dtype() == b.dtype(),
          "dot : expected both vectors to have same dtype, but found {} and {}",
          scalar_type_name(a.dtype()), scalar_type_name(b.dtype()));
  require(a.dim(0) == b.dim(0),
          "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of "
          "elements, but got {} and {} elements respectively",
          a.dim(0), b.dim(0), a.dim(0), b.dim(0));
}

Value dot(Value a, Value b) {
  require_vectors(a, b);
  require_number("dot", a.dtype());
  return narrow(wide_dot(a, b, {.lhs_contract = {0}, .rhs_contract = {0}}), a.dtype());
}

Value vdot(Value a, Value b) {
  require_vectors(a, b);
  require_number(ir::is_complex(a.dtype()) ? "vdot" : "dot", a.dtype());
  if (ir::is_complex(a.dtype())) a = hlo::complex(hlo::real(a), hlo::neg(hlo::imag(a)));
  return dot(a, b);
}

// beta * self + alpha * outer(a, b)
Value addr(Value self, Value a, Value b, Coefficient beta, Coefficient alpha) {
  require(a.rank() == 1, "addr: Expected 1-D argument vec1, but got {}-D", a.rank());
  require(b.rank() == 1, "addr: Expected 1-D argument vec2, but got {}-D", b.rank());
  const Dims dims{a.dim(0), b.dim(0)};
  require_expandable(self, dims);
  const DType t = result_type(Values{self, a, b});
  const bool integral = !ir::is_float(t) && !ir::is_complex(t);
  for (const auto& [name, c] : {std::pair{"beta", &beta}, {"alpha", &alpha}}) {
    require(!integral || c->scalar().kind() < Scalar::Kind::kFloat,
            "For integral input tensors, argument {} must not be a floating point number.", name);
    c->require_fits(t);
  }
  const DType wide = ir::compute_type(t);
  const Value product = hlo::mul(hlo::broadcast_in_dim(hlo::convert(a, wide), dims, {0}),
                                 hlo::broadcast_in_dim(hlo::convert(b, wide), dims, {1}));
  return narrow(accumulate(self, product, beta, alpha), t);
}

// 8-bit integers into s32.
Value int_mm(Value a, Value b) {
  require(a.rank() == 2, "int_mm_out_cpu: Expected self to be of dimension 2 but got {}", a.rank());
  require(b.rank() == 2, "int_mm_out_cpu: Expected mat2 to be of dimension 2 but got {}", b.rank());
  require(a.dim(1) == b.dim(0),
          "int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {} and {}", a.dim(1),
          b.dim(0));
  const auto small = [](DType t) { return t == DType::kS8 || t == DType::kU8; };
  require(small(a.dtype()), "int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {}",
          ir::short_name(a.dtype()));
  require(b.dtype() == DType::kS8, "int_mm_out_cpu: Expected mat2 dtype to be int8 but got {}",
          ir::short_name(b.dtype()));
  const hlo::DotDims dims{.lhs_contract = {1}, .rhs_contract = {0}};
  if (a.dtype() == b.dtype() && !a.graph().target().cpu) {
    return hlo::dot_general(a, b, dims, DType::kS32);
  }
  return hlo::dot_general(hlo::convert(a, DType::kS32), hlo::convert(b, DType::kS32), dims,
                          DType::kS32);
}

}  // namespace

Value wide_dot(Value lhs, Value rhs, const hlo::DotDims& dims) {
  const DType t = promote_types(lhs.dtype(), rhs.dtype());
  const DType wide = ir::compute_type(t);
  // XLA:CPU has no fast product of 16-bit floats; a TPU's matrix unit reads them as they are.
  const DType operand = lhs.graph().target().cpu ? wide : t;
  return hlo::dot_general(hlo::convert(lhs, operand), hlo::convert(rhs, operand), dims, wide);
}

Value wide_matmul(Value lhs, Value rhs) {
  const Dims batch = all_axes(lhs.rank() - 2);
  return wide_dot(lhs, rhs,
                  {.lhs_batch = batch,
                   .rhs_batch = batch,
                   .lhs_contract = {lhs.rank() - 1},
                   .rhs_contract = {rhs.rank() - 2}});
}

Value wide_matmul_transposed(Value lhs, Value rhs) {
  const Dims batch = all_axes(lhs.rank() - 2);
  return wide_dot(lhs, rhs,
                  {.lhs_batch = batch,
                   .rhs_batch = batch,
                   .lhs_contract = {lhs.rank() - 1},
                   .rhs_contract = {rhs.rank() - 1}});
}

Rules matmul_rules() {
  return {
      {"aten::mm", mm},
      {"aten::mm.dtype", mm_wide},
      {"aten::bmm", bmm},
      {"aten::bmm.dtype", mm_wide},
      {"aten::addmm", addmm},
      {"aten::addmm.dtype", addmm_wide},
      {"aten::baddbmm", baddbmm},
      {"aten::baddbmm.dtype", addmm_wide},
      {"aten::_addmm_activation", addmm_activation},
      {"aten::addbmm", addbmm},
      {"aten::addmv", addmv},
      {"aten::mv", mv},
      {"aten::dot", dot},
      {"aten::vdot", vdot},
      {"aten::addr", addr},
      {"aten::_int_mm", int_mm},
  };
}

}  // namespace tpu::lower

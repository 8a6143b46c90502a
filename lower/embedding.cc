// SPDX-License-Identifier: Apache-2.0
// Embedding lookups and their gradients. Bags are in embedding_bag.cc.
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

void require_index_type(DType t, const char* op) {
  require(t == DType::kS32 || t == DType::kS64,
          "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
          "Long, Int; but got torch.{}Tensor instead (while checking arguments for {})",
          scalar_type_name(t), op);
}

Value embedding(Value weight, Value indices) {
  require(weight.rank() == 2, "'weight' must be 2-D");
  require_index_type(indices.dtype(), "embedding");
  check_range(indices, {0, weight.dim(0)}, "index out of range in self");
  return hlo::take(weight, as_position(indices, weight.dim(0)), 0);
}

Value divided_by_frequency(Value rows, Value position, int64_t count) {
  const Value none = hlo::full(rows.graph(), {rows.dtype(), {count}}, 0.0);
  const Value one = hlo::full(rows.graph(), {rows.dtype(), position.dims()}, 1.0);
  const Value frequency = scatter_rows(none, position, one, 0, hlo::add);
  const Value own =
      hlo::take(frequency, hlo::min(position, hlo::full_like(position, count - 1)), 0);
  return rows / hlo::broadcast_in_dim(own, rows.dims(), {0});
}

Value embedding_dense_backward(Value grad, Value indices, int64_t num_weights, int64_t padding_idx,
                               bool scale_grad_by_freq) {
  require_index_type(indices.dtype(), "embedding_backward");
  const DType t = ir::compute_type(grad.dtype());
  const int64_t count = indices.numel();
  const int64_t width = grad.rank() > indices.rank() ? grad.dim(grad.rank() - 1) : 1;
  const Value zeros = hlo::full(grad.graph(), {t, {num_weights, width}}, 0.0);
  if (grad.numel() == 0) return hlo::convert(zeros, grad.dtype());
  const Value flat = hlo::reshape(indices, {count});
  // Rows out of range are dropped.
  const Value dropped = equals(flat, static_cast<double>(padding_idx));
  const Value kept = where(dropped, static_cast<double>(num_weights), flat);
  const Value position = as_position(kept, num_weights);
  Value rows = hlo::convert(hlo::reshape(grad, {count, width}), t);
  if (scale_grad_by_freq) rows = divided_by_frequency(rows, position, num_weights);
  return hlo::convert(scatter_rows(zeros, position, rows, 0, hlo::add), grad.dtype());
}

// Rows that are looked up and longer than max_norm are scaled to that length, in place.
Value embedding_renorm(Value self, Value indices, Scalar max_norm, double norm_type) {
  require(self.rank() == 2, "'self' must be 2-D");
  require_index_type(indices.dtype(), "embedding_renorm_");
  check_range(indices, {0, self.dim(0)}, "index out of range in self");
  const int64_t rows = self.dim(0);
  const Value flat = as_position(hlo::reshape(indices, {indices.numel()}), rows);
  const Value none = hlo::full(self.graph(), {DType::kPred, {rows}}, false);
  const Value used = scatter_rows(
      none, flat, hlo::full(self.graph(), {DType::kPred, flat.dims()}, true), 0, keep_update);
  return computed(self, [&](Value x) {
    const Value magnitude = hlo::abs(x);
    Value norm = hlo::reduce_max(magnitude, {1});
    if (norm_type == 2) {
      norm = hlo::sqrt(hlo::reduce_sum(magnitude * magnitude, {1}));
    } else if (norm_type == 1) {
      norm = hlo::reduce_sum(magnitude, {1});
    } else if (!std::isinf(norm_type)) {
      norm = hlo::reduce_sum(hlo::pow(magnitude, hlo::full_like(magnitude, norm_type)), {1});
      norm = hlo::pow(norm, hlo::full_like(norm, 1.0 / norm_type));
    }
    const Value limit = max_norm.like(norm);
    const Value scale = where(used & (norm > limit), limit / (norm + 1e-7), 1.0);
    return x * hlo::broadcast_in_dim(scale, x.dims(), {0});
  });
}

}  // namespace

Rules embedding_rules() {
  const Traits reads{.indexes = true};
  return {
      {"aten::embedding", embedding, reads},
      {"aten::embedding_dense_backward", embedding_dense_backward},
      {"aten::embedding_renorm", embedding_renorm, reads},
  };
}

}  // namespace tpu::lower

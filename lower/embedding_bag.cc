// SPDX-License-Identifier: Apache-2.0
// Sums, means and maxima of embedding rows by bags, and their gradients.
#include "core/hlo/reduce.h"
#include "core/hlo/shape.h"
#include "lower/families.h"
#include "lower/indexing.h"
#include "lower/unsupported.h"

namespace tpu::lower {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };

// The rows that make up the bags, one per index.
struct Bags {
  Value row;   // position in the table
  Value bag;   // of each index; `count`, which is out of range, for padding
  Value kept;  // pred: not padding
  int64_t count;

  Value per_bag(DType t, const Dims& more = {}) const {
    Dims dims{count};
    dims.insert(dims.end(), more.begin(), more.end());
    return hlo::full(row.graph(), {t, dims}, int64_t{0});
  }
  // x[bag]; arbitrary for padding.
  Value of_bag(Value x) const {
    return hlo::take(x, hlo::min(bag, hlo::full_like(bag, std::max<int64_t>(count - 1, 0))), 0);
  }
  Value sizes(DType t) const {
    return scatter_rows(per_bag(t), bag, hlo::full(row.graph(), {t, bag.dims()}, int64_t{1}), 0,
                        hlo::add);
  }
};

// The bag of each of `count` positions: how many of the later offsets lie at or before it.
Value bag_numbers(Value offsets, int64_t count) {
  const Value none = hlo::full(offsets.graph(), {DType::kS32, {count}}, int64_t{0});
  const int64_t bags = offsets.dim(0);
  if (bags <= 1 || count == 0) return none;
  const Value later = as_position(hlo::slice_axis(offsets, 0, 1, bags), count);
  const Value one = hlo::full(offsets.graph(), {DType::kS32, later.dims()}, int64_t{1});
  return running_count(scatter_rows(none, later, one, 0, hlo::add), 0);
}

Bags bags_of(Value indices, Value offset2bag, int64_t count, int64_t padding_idx) {
  const Value kept = differs(indices, static_cast<double>(padding_idx));
  const Value bag = as_position(offset2bag, count);
  return {hlo::convert(indices, DType::kS32), where(kept, bag, static_cast<double>(count)), kept,
          count};
}

Value by_row(Value x, const Dims& dims) { return hlo::broadcast_in_dim(x, dims, {0}); }

// The largest element of each bag and column, and the index of the row it comes from (the first).
std::pair<Value, Value> maxima(const Bags& bags, Value rows) {
  const int64_t width = rows.dim(1);
  Value best = hlo::broadcast_to(hlo::lowest(rows.graph(), rows.dtype()), {bags.count, width});
  best = scatter_rows(best, bags.bag, rows, 0, hlo::max);
  const Value place = hlo::iota_like(rows, 0, DType::kS32);
  const int64_t end = rows.dim(0);
  const Value wins = hlo::eq(rows, bags.of_bag(best));
  const Value candidate = where(wins, place, static_cast<double>(end));
  Value first = hlo::full(rows.graph(), {DType::kS32, {bags.count, width}}, end);
  first = scatter_rows(first, bags.bag, candidate, 0, hlo::min);
  const Value some = first < static_cast<double>(end);
  const Value index = hlo::take(bags.row, min(first, static_cast<double>(end - 1)), 0);
  return {where(some, best, 0.0), where(some, index, 0.0)};
}

void check_types(Value weight, Value indices, Value offsets,
                 const std::optional<Value>& per_sample_weights, int64_t mode) {
  for (const Value& v : {indices, offsets}) {
    require(v.dtype() == DType::kS32 || v.dtype() == DType::kS64,
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            "Long, Int; but got torch.{}Tensor instead (while checking arguments for "
            "embedding_bag)",
            scalar_type_name(v.dtype()));
  }
  require_float("embedding_bag", weight.dtype());
  require(!per_sample_weights || mode == kSum,
          "embedding_bag: per_sample_weights only supported with mode='sum'");
  require(!per_sample_weights || per_sample_weights->numel() == indices.numel(),
          "expected per_sample_weights to have the same shape as indices");
}

// Which outputs PyTorch's CPU leaves empty where its fast path does not need them.
struct Shapes {
  bool offset2bag;
  int64_t bag_size;
};
Shapes result_shapes(Value weight, Value offsets, int64_t mode, int64_t bags, int64_t padding_idx,
                     bool forward_only) {
  const DType t = weight.dtype();
  const bool fast = mode == kSum && padding_idx < 0 &&
                    (t == DType::kF32 || t == DType::kF16 || t == DType::kBF16);
  return {!fast, forward_only && mode == kSum ? offsets.dim(0) : bags};
}

struct BagArguments {
  Value weight, indices, offsets;
  int64_t mode;
  std::optional<Value> per_sample_weights;
  bool include_last_offset;
  int64_t padding_idx;
};

std::pair<Value, Value> reduce_bags(const BagArguments& a, const Bags& bags) {
  const DType t = ir::compute_type(a.weight.dtype());
  Value rows = hlo::convert(hlo::take(a.weight, bags.row, 0), t);
  if (a.mode == kMax) return maxima(bags, rows);
  if (a.per_sample_weights) {
    rows = rows * by_row(hlo::convert(*a.per_sample_weights, t), rows.dims());
  }
  Value sum = scatter_rows(bags.per_bag(t, {rows.dim(1)}), bags.bag, rows, 0, hlo::add);
  const Value sizes = bags.sizes(DType::kS32);
  if (a.mode == kMean) sum = sum / by_row(hlo::convert(max(sizes, 1.0), t), sum.dims());
  return {sum, sizes};
}

Values bag_forward(const BagArguments& a, bool forward_only) {
  check_types(a.weight, a.indices, a.offsets, a.per_sample_weights, a.mode);
  Graph& graph = a.weight.graph();
  check_range(a.indices, {0, a.weight.dim(0)},
              fmt::format("Index of input takes value {{}} which is not in the valid range [0, {})",
                          a.weight.dim(0)),
              CheckKind::kRuntime);
  const int64_t count = a.offsets.dim(0) - (a.include_last_offset ? 1 : 0);
  const Value starts = hlo::slice_axis(a.offsets, 0, 0, count);
  const DType kept_type = a.indices.dtype();
  const Value offset2bag = bag_numbers(starts, a.indices.dim(0));
  const Bags bags = bags_of(a.indices, offset2bag, count, a.padding_idx);
  const Shapes shapes =
      result_shapes(a.weight, a.offsets, a.mode, count, a.padding_idx, forward_only);
  const auto [reduced, detail] = reduce_bags(a, bags);
  Value sizes = hlo::full(graph, {kept_type, {shapes.bag_size}}, int64_t{0});
  if (a.mode != kSum) sizes = hlo::convert(bags.sizes(DType::kS32), kept_type);
  return {hlo::convert(reduced, a.weight.dtype()),
          shapes.offset2bag ? hlo::convert(offset2bag, kept_type)
                            : hlo::full(graph, {kept_type, {0}}, int64_t{0}),
          sizes, a.mode == kMax ? hlo::convert(detail, kept_type) : sizes};
}

Values embedding_bag(Value weight, Value indices, Value offsets, bool, int64_t mode, bool,
                     std::optional<Value> per_sample_weights, bool include_last_offset,
                     int64_t padding_idx) {
  return bag_forward(
      {weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx},
      false);
}

Values embedding_bag_forward_only(Value weight, Value indices, Value offsets, bool, int64_t mode,
                                  bool, std::optional<Value> per_sample_weights,
                                  bool include_last_offset, int64_t padding_idx) {
  return bag_forward(
      {weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx}, true);
}

// Maxima pass their gradient to the one row they come from.
Value max_backward(Value grad, Value bag_size, Value maximum_indices, int64_t num_weights) {
  const DType t = ir::compute_type(grad.dtype());
  const Value filled = bag_size > 0.0;
  const Value position = where(by_row(filled, maximum_indices.dims()), maximum_indices,
                               static_cast<double>(num_weights));
  const Value zeros = hlo::full(grad.graph(), {t, {num_weights + 1, grad.dim(1)}}, 0.0);
  const Value sum =
      scatter_along(zeros, as_position(position, num_weights), hlo::convert(grad, t), 0, hlo::add);
  return hlo::convert(hlo::slice_axis(sum, 0, 0, num_weights), grad.dtype());
}

Value frequencies(Value row, int64_t num_weights, DType t) {
  const Value none = hlo::full(row.graph(), {t, {num_weights}}, 0.0);
  const Value one = hlo::full(row.graph(), {t, row.dims()}, 1.0);
  return hlo::take(scatter_rows(none, row, one, 0, hlo::add), row, 0);
}

Value embedding_bag_dense_backward(Value grad, Value indices, Value offset2bag, Value bag_size,
                                   Value maximum_indices, int64_t num_weights,
                                   bool scale_grad_by_freq, int64_t mode,
                                   std::optional<Value> per_sample_weights, int64_t padding_idx) {
  if (mode == kMax) return max_backward(grad, bag_size, maximum_indices, num_weights);
  const DType t = ir::compute_type(grad.dtype());
  const Bags bags = bags_of(indices, offset2bag, grad.dim(0), padding_idx);
  Value wide = hlo::convert(grad, t);
  if (mode == kMean) {
    wide = wide / by_row(max(hlo::convert(bags.sizes(DType::kS32), t), 1.0), wide.dims());
  }
  Value rows = bags.of_bag(wide);
  if (per_sample_weights) rows = rows * by_row(hlo::convert(*per_sample_weights, t), rows.dims());
  if (scale_grad_by_freq) {
    rows = rows / by_row(frequencies(bags.row, num_weights, t), rows.dims());
  }
  const Value position = where(bags.kept, bags.row, static_cast<double>(num_weights));
  const Value zeros = hlo::full(grad.graph(), {t, {num_weights, grad.dim(1)}}, 0.0);
  return hlo::convert(scatter_rows(zeros, position, rows, 0, hlo::add), grad.dtype());
}

Value known_bags(Value indices, Value offsets, Value offset2bag) {
  return offset2bag.numel() == indices.numel() ? offset2bag : bag_numbers(offsets, indices.dim(0));
}

Value per_sample_weights_backward(Value grad, Value weight, Value indices, Value offsets,
                                  Value offset2bag, int64_t mode, int64_t padding_idx) {
  require(mode == kSum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  const DType t = ir::compute_type(grad.dtype());
  const Bags bags =
      bags_of(indices, known_bags(indices, offsets, offset2bag), grad.dim(0), padding_idx);
  const Value rows = hlo::convert(hlo::take(weight, bags.row, 0), t);
  const Value product = hlo::reduce_sum(rows * bags.of_bag(hlo::convert(grad, t)), {1});
  return hlo::convert(where(bags.kept, product, 0.0), grad.dtype());
}

}  // namespace

Rules embedding_bag_rules() {
  const Traits reads{.indexes = true};
  return {
      {"aten::_embedding_bag", embedding_bag, reads},
      {"aten::_embedding_bag_forward_only", embedding_bag_forward_only, reads},
      {"aten::_embedding_bag_dense_backward", embedding_bag_dense_backward},
      {"aten::_embedding_bag_per_sample_weights_backward", per_sample_weights_backward},
  };
}

}  // namespace tpu::lower

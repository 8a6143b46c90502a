// SPDX-License-Identifier: Apache-2.0
// Joining, repeating and reordering of elements. Views themselves are metadata and have no rules;
// writing through them is in view_write.cc.
#include "core/hlo/shape.h"

#include "lower/families.h"
#include "lower/promote.h"

namespace tpu::lower {
namespace {

size_t at(int64_t axis) { return static_cast<size_t>(axis); }

// Tensors of shape [0] take no part in a concatenation, whatever the others' rank.
Values without_legacy_empties(const Values& tensors) {
  Values kept;
  for (const Value& t : tensors) {
    if (t.dims() != Dims{0}) kept.push_back(t);
  }
  return kept;
}

Value cat(Values tensors, int64_t dim, const Outputs& outputs) {
  const DType type = outputs.known() ? outputs[0].dtype : result_type(tensors);
  Values parts = without_legacy_empties(tensors);
  if (parts.empty()) return hlo::convert(tensors[0], type);
  for (Value& part : parts) part = hlo::convert(part, type);
  return hlo::concatenate(parts, wrap_axis(dim, parts[0].rank()));
}

Value stack(Values tensors, int64_t dim) {
  require(!tensors.empty(), "stack expects a non-empty TensorList");
  const Dims& entry = tensors[0].dims();
  const int64_t axis = wrap_axis(dim, tensors[0].rank() + 1);
  Dims dims = entry;
  dims.insert(dims.begin() + axis, 1);
  const DType type = result_type(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    require(tensors[i].dims() == entry,
            "stack expects each tensor to be equal size, but got [{}] at entry 0 and [{}] at entry "
            "{}",
            fmt::join(entry, ", "), fmt::join(tensors[i].dims(), ", "), i);
    tensors[i] = hlo::reshape(hlo::convert(tensors[i], type), dims);
  }
  return hlo::concatenate(tensors, axis);
}

Value as_matrix(Value x, size_t number) {
  require(x.rank() <= 2,
          "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {} has {} "
          "dimensions",
          number, x.rank());
  if (x.rank() == 2) return x;
  return hlo::reshape(x, {1, x.numel()});
}

// Each block as a band of rows, padded with zeros on both sides.
Value block_diag(Graph& graph, Values tensors) {
  if (tensors.empty()) return hlo::full(graph, {DType::kF32, {1, 0}}, 0.0);
  DType type = tensors[0].dtype();
  int64_t width = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    type = promote_types(type, tensors[i].dtype());
    tensors[i] = as_matrix(tensors[i], i);
    width += tensors[i].dim(1);
  }
  int64_t left = 0;
  for (Value& block : tensors) {
    const int64_t right = width - left - block.dim(1);
    const Value zero = hlo::constant(graph, type, int64_t{0});
    const int64_t next = left + block.dim(1);
    block = hlo::pad(hlo::convert(block, type), zero, {0, left}, {0, right}, {0, 0});
    left = next;
  }
  return hlo::concatenate(tensors, 0);
}

Value flip(Value x, Dims dims) {
  const Dims axes = wrap_axes(dims, x.rank());
  return x.rank() == 0 ? x : hlo::reverse(x, axes);
}

// The shift is a run-time number: x beside itself, cut where the shift says.
Value roll_axis(Value x, const Scalar& shift, int64_t axis) {
  const int64_t size = x.dim(axis);
  if (size < 2) return x;
  const Value n = hlo::constant(x.graph(), DType::kS64, size);
  const Value back = hlo::rem(shift.as(DType::kS64), n);
  const Value start = hlo::rem(hlo::sub(n, back), n);  // in [0, size) for back of either sign
  const Value zero = hlo::constant(x.graph(), DType::kS64, int64_t{0});
  Values starts(x.dims().size(), zero);
  starts[static_cast<size_t>(axis)] = start;
  return hlo::dynamic_slice(hlo::concatenate({x, x}, axis), starts, x.dims());
}

Value roll(Value x, std::vector<Scalar> shifts, Dims dims) {
  require(!shifts.empty(), "`shifts` required");
  if (x.numel() == 0) return x;
  if (dims.empty() && shifts.size() == 1) {
    return hlo::reshape(roll_axis(hlo::reshape(x, {x.numel()}), shifts[0], 0), x.dims());
  }
  require(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: {}, dims:{}",
          shifts.size(), dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (x.rank() == 0) {
      fail(ErrorKind::kIndex, "Dimension specified as {} but tensor has no dimensions", dims[i]);
    }
    x = roll_axis(x, shifts[i], wrap_axis(dims[i], x.rank()));
  }
  return x;
}

Value repeat(Value x, Dims repeats) {
  const auto rank = static_cast<int64_t>(repeats.size());
  require(rank >= x.rank(),
          "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
          "tensor");
  Dims pairs;  // (times, size) of every axis
  Dims axes;
  Dims result;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t times = repeats[at(i)];
    require(times >= 0, "Trying to create tensor with negative dimension {}", times);
    const int64_t own = i - (rank - x.rank());
    const int64_t size = own < 0 ? 1 : x.dim(own);
    if (own >= 0) axes.push_back(static_cast<int64_t>(pairs.size()) + 1);
    pairs.insert(pairs.end(), {times, size});
    result.push_back(times * size);
  }
  return hlo::reshape(hlo::broadcast_in_dim(x, pairs, axes), result);
}

// [..., rows, cols] where column - row, compared with `diagonal`, decides what stays.
Value triangle(Value x, int64_t diagonal, Value (*keep)(Value, Value)) {
  const Dims matrix(x.dims().end() - 2, x.dims().end());
  const Value row = hlo::iota(x.graph(), {DType::kS32, matrix}, 0);
  const Value column = hlo::iota(x.graph(), {DType::kS32, matrix}, 1);
  const int64_t limit = std::clamp<int64_t>(diagonal, -matrix[0] - 1, matrix[1] + 1);
  const Value stays = keep(hlo::sub(column, row), hlo::full_like(row, limit));
  return hlo::select(hlo::broadcast_to(stays, x.dims()), x, hlo::full_like(x, int64_t{0}));
}
Value tril(Value x, int64_t diagonal) { return triangle(x, diagonal, hlo::le); }
Value triu(Value x, int64_t diagonal) { return triangle(x, diagonal, hlo::ge); }

Value channel_shuffle(Value x, int64_t groups) {
  require(x.rank() > 2,
          "channel_shuffle expects input with > 2 dims, but got input with sizes [{}]",
          fmt::join(x.dims(), ", "));
  require(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:{}",
          groups);
  require(x.dim(1) % groups == 0,
          "Number of channels must be divisible by groups. Got {} channels "
          "and {} groups.",
          x.dim(1), groups);
  Dims split = x.dims();
  split[1] = x.dim(1) / groups;
  split.insert(split.begin() + 1, groups);
  Dims permutation = all_axes(static_cast<int64_t>(split.size()));
  std::swap(permutation[1], permutation[2]);
  return hlo::reshape(hlo::transpose(hlo::reshape(x, split), permutation), x.dims());
}

Value narrow_copy(Value x, int64_t dim, int64_t start, int64_t length) {
  require(x.rank() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  require(dim < x.rank(),
          "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  "
          "(Could this error message be improved?  If so, please report an enhancement request to "
          "PyTorch.)");
  const int64_t axis = wrap_axis(dim, x.rank());
  const int64_t size = x.dim(axis);
  if (start < -size || start > size) {
    fail(ErrorKind::kIndex, "start out of range (expected to be in range of [{}, {}], but got {})",
         -size, size, start);
  }
  if (start < 0) start += size;
  require(length >= 0 && start + length <= size,
          "start ({}) + length ({}) exceeds dimension size ({}).", start, length, size);
  return hlo::slice_axis(x, axis, start, start + length);
}

}  // namespace

Rules shape_rules() {
  return {
      {"aten::cat", cat},
      {"aten::stack", stack},
      {"aten::block_diag", block_diag},
      {"aten::flip", flip, {.strides = Strides::kPreserve}},
      {"aten::roll", roll, {.strides = Strides::kContiguous}},
      {"aten::repeat", repeat},
      {"aten::tril", tril},
      {"aten::triu", triu},
      {"aten::native_channel_shuffle", channel_shuffle, {.strides = Strides::kSuggest}},
      {"aten::channel_shuffle", channel_shuffle, {.strides = Strides::kSuggest}},
      {"aten::narrow_copy", narrow_copy},
  };
}

}  // namespace tpu::lower

// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/shape.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/hlo/attributes.h"

namespace tpu::hlo {
namespace {

int64_t& at(Dims& dims, int64_t axis) { return dims[static_cast<size_t>(axis)]; }

Dims with_dim(Dims dims, int64_t axis, int64_t size) {
  at(dims, axis) = size;
  return dims;
}

bool is_zero_to_n(const Dims& axes) { return axes == all_axes(static_cast<int64_t>(axes.size())); }

int64_t padded_dim(int64_t dim, int64_t low, int64_t high, int64_t interior) {
  return low + dim + (dim > 0 ? (dim - 1) * interior : 0) + high;
}

}  // namespace

Value reshape(Value x, const Dims& dims) {
  TPU_CHECK(ir::element_count(dims) == x.numel(), "reshape keeps the number of elements");
  if (dims == x.dims()) return x;
  return make("stablehlo.reshape", {x}, {x.dtype(), dims});
}

Value broadcast_in_dim(Value x, const Dims& dims, const Dims& axes) {
  TPU_CHECK(static_cast<int64_t>(axes.size()) == x.rank(), "every operand axis has a result axis");
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t to = dims[static_cast<size_t>(axes[static_cast<size_t>(i)])];
    TPU_CHECK(x.dim(i) == 1 || x.dim(i) == to, "only dimensions of size 1 broadcast");
  }
  if (dims == x.dims() && is_zero_to_n(axes)) return x;
  return make("stablehlo.broadcast_in_dim", {x}, {x.dtype(), dims},
              "broadcast_dimensions = " + array_text(axes));
}

Value broadcast_to(Value x, const Dims& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  TPU_CHECK(x.rank() <= rank, "broadcasting only adds axes");
  Dims axes;
  for (int64_t i = rank - x.rank(); i < rank; ++i) axes.push_back(i);
  return broadcast_in_dim(x, dims, axes);
}

Value transpose(Value x, const Dims& permutation) {
  TPU_CHECK(static_cast<int64_t>(permutation.size()) == x.rank(), "a permutation of all axes");
  if (is_zero_to_n(permutation)) return x;
  Dims dims;
  for (const int64_t axis : permutation) dims.push_back(x.dim(axis));
  return make("stablehlo.transpose", {x}, {x.dtype(), dims},
              "permutation = " + array_text(permutation));
}

Value slice(Value x, const Dims& starts, const Dims& limits, const Dims& strides) {
  Dims dims;
  for (size_t i = 0; i < starts.size(); ++i) {
    TPU_CHECK(0 <= starts[i] && starts[i] <= limits[i] && strides[i] > 0 &&
                  limits[i] <= x.dim(static_cast<int64_t>(i)),
              "a static slice lies inside its operand");
    dims.push_back((limits[i] - starts[i] + strides[i] - 1) / strides[i]);
  }
  if (dims == x.dims()) return x;
  return make("stablehlo.slice", {x}, {x.dtype(), dims},
              fmt::format("start_indices = {}, limit_indices = {}, strides = {}",
                          array_text(starts), array_text(limits), array_text(strides)));
}

Value slice_axis(Value x, int64_t axis, int64_t start, int64_t limit, int64_t stride) {
  const Dims zeros(x.dims().size(), 0);
  const Dims ones(x.dims().size(), 1);
  return slice(x, with_dim(zeros, axis, start), with_dim(x.dims(), axis, limit),
               with_dim(ones, axis, stride));
}

Value dynamic_slice(Value x, const Values& starts, const Dims& sizes) {
  if (starts.empty()) return x;
  Values operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return make("stablehlo.dynamic_slice", operands, {x.dtype(), sizes},
              "slice_sizes = " + array_text(sizes));
}

Value dynamic_update_slice(Value x, Value update, const Values& starts) {
  if (update.dims() == x.dims()) return update;  // starts are clamped to 0
  Values operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return make("stablehlo.dynamic_update_slice", operands, x.type());
}

Value concatenate(const Values& parts, int64_t axis) {
  TPU_CHECK(!parts.empty(), "concatenate needs an operand");
  if (parts.size() == 1) return parts[0];
  Dims dims = parts[0].dims();
  at(dims, axis) = 0;
  for (const Value& part : parts) {
    at(dims, axis) += part.dim(axis);
    TPU_CHECK(part.type() == (Type{parts[0].dtype(), with_dim(dims, axis, part.dim(axis))}),
              "parts differ only along the axis");
  }
  return make("stablehlo.concatenate", parts, {parts[0].dtype(), dims},
              fmt::format("dimension = {} : i64", axis));
}

Value pad(Value x, Value fill, const Dims& low, const Dims& high, const Dims& interior) {
  TPU_CHECK(fill.type() == (Type{x.dtype(), {}}), "the fill is one number of the operand's type");
  Dims dims;
  bool trivial = true;
  for (size_t i = 0; i < low.size(); ++i) {
    const int64_t dim = x.dim(static_cast<int64_t>(i));
    dims.push_back(padded_dim(dim, low[i], high[i], interior[i]));
    trivial = trivial && low[i] == 0 && high[i] == 0 && (interior[i] == 0 || dim <= 1);
  }
  if (trivial) return x;
  return make("stablehlo.pad", {x, fill}, {x.dtype(), dims},
              fmt::format("edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}",
                          array_text(low), array_text(high), array_text(interior)));
}

Value reverse(Value x, const Dims& axes) {
  if (std::all_of(axes.begin(), axes.end(), [&](int64_t axis) { return x.dim(axis) <= 1; })) {
    return x;
  }
  return make("stablehlo.reverse", {x}, x.type(), "dimensions = " + array_text(axes));
}

Value iota(Graph& graph, const Type& type, int64_t axis) {
  TPU_CHECK(!is_bool(type.dtype), "iota counts in numbers");
  if (is_complex(type.dtype) || byte_size(type.dtype) == 1) {
    return convert(iota(graph, {DType::kS32, type.dims}, axis), type.dtype);
  }
  return graph.node1({.op = "stablehlo.iota",
                      .inputs = {},
                      .results = {type},
                      .attributes = fmt::format("iota_dimension = {} : i64", axis)});
}

Value iota_like(Value x, int64_t axis, DType t) { return iota(x.graph(), {t, x.dims()}, axis); }

Values sort(const Values& operands, int64_t axis, bool stable,
            const std::function<Value(std::span<const Value>)>& less) {
  TPU_CHECK(!operands.empty(), "sort needs an operand");
  if (operands[0].rank() == 0 || operands[0].dim(axis) <= 1) return operands;
  std::vector<Type> results;
  std::vector<Type> arguments;
  for (const Value& operand : operands) {
    results.push_back(operand.type());
    arguments.insert(arguments.end(), 2, {operand.dtype(), {}});
  }
  const auto body = [&](std::span<const Value> pairs) { return Values{less(pairs)}; };
  return operands[0].graph().node(
      {.op = "stablehlo.sort",
       .inputs = operands,
       .results = std::move(results),
       .attributes = fmt::format("dimension = {} : i64, is_stable = {}", axis, bool_text(stable)),
       .blocks = {{std::move(arguments), body}}});
}

Values top_k(Value x, int64_t k) {
  TPU_CHECK(x.rank() > 0 && k <= x.dims().back(), "a row holds at least k elements");
  Dims dims = x.dims();
  dims.back() = k;
  return x.graph().node({.op = "chlo.top_k",
                         .inputs = {x},
                         .results = {{x.dtype(), dims}, {DType::kS32, dims}},
                         .attributes = fmt::format("k = {} : i64", k)});
}

}  // namespace tpu::hlo

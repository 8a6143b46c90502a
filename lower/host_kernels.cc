// SPDX-License-Identifier: Apache-2.0
#include "lower/host_kernels.h"

#include "core/hlo/host_call.h"

namespace tpu::lower {
namespace {

using hlo::HostArgument;
using hlo::Literal;

// A call costs some 20 us; below so many multiplications the other form takes no longer.
constexpr int64_t kLeastProducts = 1 << 20;
constexpr int64_t kLeastConvolution = 1 << 20;
// XLA:CPU sums few taps of a depthwise convolution as fast.
constexpr int64_t kFewTaps = 9;

bool allowed(Value x) { return x.graph().target().host_calls; }

// The processor multiplies bf16 itself, which XLA:CPU does not make use of.
bool processor_has_bf16() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return has;
#else
  return false;
#endif
}

bool multiplies_on_host(Value lhs, Value rhs, int64_t multiplications) {
  return allowed(lhs) && lhs.dtype() == DType::kBF16 && rhs.dtype() == DType::kBF16 &&
         processor_has_bf16() && multiplications >= kLeastProducts;
}

bool multiplies_on_host(Value lhs, Value rhs) {
  return lhs.rank() >= 2 && lhs.rank() <= 3 && lhs.rank() == rhs.rank() &&
         multiplies_on_host(lhs, rhs, lhs.numel() * rhs.dims().back());
}

HostArgument matrix(Value x) {
  if (x.graph().is_transposed(x)) return hlo::HostByColumns{x};
  return x;
}

Type product_type(Value lhs, Value rhs) {
  Type type = lhs.type();
  type.dims.back() = rhs.dims().back();
  return type;
}

Value one_result(Graph& graph, std::string op, std::vector<HostArgument> arguments, Type type) {
  return hlo::host_call(
      graph,
      {.op = std::move(op), .arguments = std::move(arguments), .fresh = {std::move(type)}})[0];
}

// The smaller side times the positions and channels that each of its elements sums over.
int64_t multiplications(const Dims& narrow, const Dims& weight) {
  return ir::element_count(narrow) * (ir::element_count(weight) / std::max<int64_t>(weight[0], 1));
}

bool convolves_on_host(Value x, const HostConvolution& c, const Dims& narrow, const Dims& weight) {
  return allowed(x) && c.groups > 1 && multiplications(narrow, weight) >= kLeastConvolution;
}

Value widened(Value x) { return hlo::convert(x, ir::compute_type(x.dtype())); }

Dims zeros(const Dims& like) { return Dims(like.size(), 0); }

// The arguments of a convolution, or of its gradient, after their tensors.
std::vector<HostArgument> with_attributes(std::vector<HostArgument> tensors,
                                          const HostConvolution& c, bool transposed,
                                          const Dims& output_padding) {
  const std::vector<HostArgument> attributes{
      std::monostate(),    c.stride,       c.padding,        c.dilation,
      Literal(transposed), output_padding, Literal(c.groups)};
  tensors.insert(tensors.end(), attributes.begin(), attributes.end());
  return tensors;
}

}  // namespace

std::optional<Value> host_matmul(Value lhs, Value rhs) {
  if (!multiplies_on_host(lhs, rhs)) return std::nullopt;
  return one_result(lhs.graph(), lhs.rank() == 2 ? "aten::mm" : "aten::bmm",
                    {matrix(lhs), matrix(rhs)}, product_type(lhs, rhs));
}

std::optional<Value> host_matrix_vector(Value matrix_value, Value vector) {
  if (!multiplies_on_host(matrix_value, vector, matrix_value.numel())) return std::nullopt;
  return one_result(vector.graph(), "aten::mv", {matrix(matrix_value), vector},
                    {vector.dtype(), {matrix_value.dim(0)}});
}

std::optional<Value> host_addmm(Value bias, Value lhs, Value rhs) {
  if (bias.dtype() != DType::kBF16 || lhs.rank() != 2 || !multiplies_on_host(lhs, rhs)) {
    return std::nullopt;
  }
  const Literal one(int64_t{1});
  return one_result(lhs.graph(), "aten::addmm", {bias, matrix(lhs), matrix(rhs), one, one},
                    product_type(lhs, rhs));
}

std::optional<Value> host_to_narrow(Value wide, Value weight, const HostConvolution& c,
                                    const Dims& out) {
  if (!convolves_on_host(wide, c, out, weight.dims())) return std::nullopt;
  const int64_t taps = weight.numel() / weight.dim(0);
  if (weight.dim(1) == 1 && taps <= kFewTaps) return std::nullopt;
  const Value x = widened(wide);
  return one_result(wide.graph(), "aten::convolution",
                    with_attributes({x, widened(weight)}, c, false, zeros(c.stride)),
                    {x.dtype(), out});
}

std::optional<Value> host_to_wide(Value narrow, Value weight, const HostConvolution& c,
                                  const Dims& out) {
  if (!convolves_on_host(narrow, c, narrow.dims(), weight.dims())) return std::nullopt;
  Dims extra;
  for (size_t i = 0; i < c.stride.size(); ++i) {
    const int64_t extent = c.dilation[i] * (weight.dims()[i + 2] - 1) + 1;
    extra.push_back(out[i + 2] + 2 * c.padding[i] - extent -
                    (narrow.dims()[i + 2] - 1) * c.stride[i]);
  }
  const Value x = widened(narrow);
  return one_result(narrow.graph(), "aten::convolution",
                    with_attributes({x, widened(weight)}, c, true, extra), {x.dtype(), out});
}

std::optional<Value> host_to_weight(Value wide, Value narrow, const HostConvolution& c,
                                    const Dims& weight) {
  if (!convolves_on_host(wide, c, narrow.dims(), weight)) return std::nullopt;
  const Value x = widened(wide);
  const Type type{x.dtype(), weight};
  // Of the weight only its dims are read.
  std::vector<HostArgument> arguments = with_attributes(
      {widened(narrow), x, hlo::full(wide.graph(), type, int64_t{0})}, c, false, zeros(c.stride));
  arguments.emplace_back(std::vector<bool>{false, true, false});
  return hlo::host_call(wide.graph(), {.op = "aten::convolution_backward",
                                       .arguments = std::move(arguments),
                                       .fresh = {std::nullopt, type, std::nullopt}})[1];
}

}  // namespace tpu::lower

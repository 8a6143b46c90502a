// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/contract.h"

#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/hlo/attributes.h"

namespace tpu::hlo {
namespace {

// ", precision_config = [...]" where the operands have more bits than the matrix unit.
std::string precision_text(Value lhs) {
  if (lhs.dtype() != DType::kF32 && lhs.dtype() != DType::kC64) return "";
  std::string_view name;
  switch (lhs.graph().target().precision) {
    case ir::Precision::kDefault:
      return "";
    case ir::Precision::kHigh:
      name = "HIGH";
      break;
    case ir::Precision::kHighest:
      name = "HIGHEST";
      break;
  }
  return fmt::format(", precision_config = [#stablehlo<precision {}>, #stablehlo<precision {}>]",
                     name, name);
}

Dims dot_result_dims(Value lhs, Value rhs, const DotDims& d) {
  Dims dims;
  for (const int64_t axis : d.lhs_batch) dims.push_back(lhs.dim(axis));
  const auto add_free = [&dims](Value x, Dims used, const Dims& contract) {
    used.insert(used.end(), contract.begin(), contract.end());
    for (const int64_t axis : other_axes(x.rank(), used)) dims.push_back(x.dim(axis));
  };
  add_free(lhs, d.lhs_batch, d.lhs_contract);
  add_free(rhs, d.rhs_batch, d.rhs_contract);
  return dims;
}

void check_equal_dims(Value lhs, Value rhs, const Dims& lhs_axes, const Dims& rhs_axes) {
  TPU_CHECK(lhs_axes.size() == rhs_axes.size(), "axes come in pairs");
  for (size_t i = 0; i < lhs_axes.size(); ++i) {
    TPU_CHECK(lhs.dim(lhs_axes[i]) == rhs.dim(rhs_axes[i]), "paired axes have equal sizes");
  }
}

// "[b, f, 0, 1]"
std::string layout_text(const std::string& layout) {
  return fmt::format("[{}]", fmt::join(layout, ", "));
}

size_t axis_of(const std::string& layout, char name) {
  const size_t axis = layout.find(name);
  TPU_CHECK(axis != std::string::npos, "every axis is named in the layout");
  return axis;
}

Dims convolution_result_dims(Value input, Value kernel, const ConvolutionDims& d) {
  Dims dims(d.output.size());
  dims[axis_of(d.output, 'b')] = input.dims()[axis_of(d.input, 'b')] / d.batch_group_count;
  dims[axis_of(d.output, 'f')] = kernel.dims()[axis_of(d.kernel, 'o')];
  const size_t spatial = d.output.size() - 2;
  Window w = Window::of_rank(static_cast<int64_t>(spatial));
  w.strides = d.strides;
  w.base_dilations = d.lhs_dilation;
  w.window_dilations = d.rhs_dilation;
  w.pad_low = d.pad_low;
  w.pad_high = d.pad_high;
  Dims sizes(spatial);
  for (size_t i = 0; i < spatial; ++i) {
    const char name = static_cast<char>('0' + i);
    sizes[i] = input.dims()[axis_of(d.input, name)];
    w.sizes[i] = kernel.dims()[axis_of(d.kernel, name)];
  }
  const Dims result = window_result_dims(sizes, w);
  for (size_t i = 0; i < spatial; ++i) {
    dims[axis_of(d.output, static_cast<char>('0' + i))] = result[i];
  }
  return dims;
}

std::string_view transpose_name(TriangularSolve::Transpose t) {
  switch (t) {
    case TriangularSolve::Transpose::kNo:
      return "NO_TRANSPOSE";
    case TriangularSolve::Transpose::kTranspose:
      return "TRANSPOSE";
    case TriangularSolve::Transpose::kAdjoint:
      return "ADJOINT";
  }
  TPU_CHECK(false, "a Transpose is one of the enumerators");
}

struct FftFacts {
  std::string_view name;
  bool real_input;
  bool real_output;
};

FftFacts fft_facts(FftKind kind) {
  switch (kind) {
    case FftKind::kFft:
      return {"FFT", false, false};
    case FftKind::kIfft:
      return {"IFFT", false, false};
    case FftKind::kRfft:
      return {"RFFT", true, false};
    case FftKind::kIrfft:
      return {"IRFFT", false, true};
  }
  TPU_CHECK(false, "an FftKind is one of the enumerators");
}

}  // namespace

Value dot_general(Value lhs, Value rhs, const DotDims& d, DType result) {
  check_equal_dims(lhs, rhs, d.lhs_batch, d.rhs_batch);
  check_equal_dims(lhs, rhs, d.lhs_contract, d.rhs_contract);
  const Type type{result, dot_result_dims(lhs, rhs, d)};
  return make("stablehlo.dot_general", {lhs, rhs}, type,
              fmt::format("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {}, "
                          "rhs_batching_dimensions = {}, lhs_contracting_dimensions = {}, "
                          "rhs_contracting_dimensions = {}>{}",
                          list_text(d.lhs_batch), list_text(d.rhs_batch), list_text(d.lhs_contract),
                          list_text(d.rhs_contract), precision_text(lhs)));
}

Value matmul(Value lhs, Value rhs) {
  TPU_CHECK(lhs.rank() == rhs.rank() && lhs.rank() >= 2, "matrices with equal batch axes");
  const Dims batch = all_axes(lhs.rank() - 2);
  return dot_general(lhs, rhs,
                     {.lhs_batch = batch,
                      .rhs_batch = batch,
                      .lhs_contract = {lhs.rank() - 1},
                      .rhs_contract = {rhs.rank() - 2}},
                     lhs.dtype());
}

Value convolution(Value input, Value kernel, const ConvolutionDims& d, DType result) {
  const Type type{result, convolution_result_dims(input, kernel, d)};
  if (input.numel() == 0 || kernel.numel() == 0 || type.numel() == 0) {
    return full(input.graph(), type, int64_t{0});
  }
  return make("stablehlo.convolution", {input, kernel}, type,
              fmt::format("window_strides = {}, padding = {}, lhs_dilation = {}, "
                          "rhs_dilation = {}, dimension_numbers = #stablehlo.conv<{}x{}->{}>, "
                          "feature_group_count = {} : i64, batch_group_count = {} : i64{}",
                          array_text(d.strides), padding_text(d.pad_low, d.pad_high),
                          array_text(d.lhs_dilation), array_text(d.rhs_dilation),
                          layout_text(d.input), layout_text(d.kernel), layout_text(d.output),
                          d.feature_group_count, d.batch_group_count, precision_text(input)));
}

Value cholesky(Value a, bool lower) {
  return make("stablehlo.cholesky", {a}, a.type(), fmt::format("lower = {}", bool_text(lower)));
}

Value triangular_solve(Value a, Value b, const TriangularSolve& o) {
  return make("stablehlo.triangular_solve", {a, b}, b.type(),
              fmt::format("left_side = {}, lower = {}, unit_diagonal = {}, "
                          "transpose_a = #stablehlo<transpose {}>",
                          bool_text(o.left_side), bool_text(o.lower), bool_text(o.unit_diagonal),
                          transpose_name(o.transpose)));
}

Value fft(Value x, FftKind kind, const Dims& lengths) {
  const FftFacts facts = fft_facts(kind);
  TPU_CHECK(!lengths.empty() && is_complex(x.dtype()) != facts.real_input,
            "the kind of transform fits its operand");
  Type type{facts.real_output ? real_of(x.dtype()) : complex_of(x.dtype()), x.dims()};
  const size_t first = type.dims.size() - lengths.size();
  for (size_t i = 0; i < lengths.size(); ++i) type.dims[first + i] = lengths[i];
  if (kind == FftKind::kRfft) type.dims.back() = lengths.back() / 2 + 1;
  if (type.numel() == 0 || x.numel() == 0) return full(x.graph(), type, int64_t{0});
  return make("stablehlo.fft", {x}, type,
              fmt::format("fft_type = #stablehlo<fft_type {}>, fft_length = {}", facts.name,
                          array_text(lengths)));
}

}  // namespace tpu::hlo

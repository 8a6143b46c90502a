// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/contract.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/program_text.h"

namespace tpu::hlo {
namespace {

using ::testing::IsNotSubstring;
using ::testing::IsSubstring;

TEST(DotTest, Matmul) {
  Graph g;
  const Value a = g.parameter({DType::kF32, {5, 2, 3}});
  const Value b = g.parameter({DType::kF32, {5, 3, 4}});
  const Value r = matmul(a, b);
  EXPECT_EQ(r.type(), (Type{DType::kF32, {5, 2, 4}}));
  EXPECT_PRED_FORMAT2(
      IsSubstring,
      "<{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], "
      "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
      "rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision HIGHEST>, "
      "#stablehlo<precision HIGHEST>]}>",
      body_text({r}));
  EXPECT_THROW(matmul(a, a), Error);
}

std::string product_text(DType t, ir::Precision precision) {
  Graph g("dot", {.precision = precision});
  const Value a = g.parameter({t, {2, 2}});
  return body_text({matmul(a, a)});
}

TEST(DotTest, PrecisionIsAskedForWhereItMatters) {
  EXPECT_PRED_FORMAT2(IsSubstring, "precision HIGH>",
                      product_text(DType::kF32, ir::Precision::kHigh));
  EXPECT_PRED_FORMAT2(IsNotSubstring, "precision",
                      product_text(DType::kF32, ir::Precision::kDefault));
  EXPECT_PRED_FORMAT2(IsNotSubstring, "precision",
                      product_text(DType::kBF16, ir::Precision::kHighest));
}

TEST(DotTest, WiderResultAndFreeAxes) {
  Graph g;
  const Value a = g.parameter({DType::kS8, {2, 3, 4}});
  const Value b = g.parameter({DType::kS8, {5, 3, 2}});
  const DotDims dims{.lhs_contract = {0, 1}, .rhs_contract = {2, 1}};
  EXPECT_EQ(dot_general(a, b, dims, DType::kS32).type(), (Type{DType::kS32, {4, 5}}));
}

ConvolutionDims plain_dims() {
  return {.strides = {1, 1},
          .pad_low = {0, 0},
          .pad_high = {0, 0},
          .lhs_dilation = {1, 1},
          .rhs_dilation = {1, 1},
          .input = "bf01",
          .kernel = "oi01",
          .output = "bf01"};
}

TEST(ConvolutionTest, ResultDimensions) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {2, 4, 5, 5}});
  const Value k = g.parameter({DType::kF32, {6, 2, 3, 3}});
  ConvolutionDims dims = plain_dims();
  dims.strides = {2, 1};
  dims.pad_low = {1, 0};
  dims.pad_high = {1, 2};
  dims.rhs_dilation = {2, 1};
  dims.feature_group_count = 2;
  const Value r = convolution(x, k, dims, DType::kF32);
  EXPECT_EQ(r.dims(), (Dims{2, 6, 2, 5}));
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, "
                      "1]>, feature_group_count = 2 : i64, batch_group_count = 1 : i64",
                      body_text({r}));
}

TEST(ConvolutionTest, LayoutsByName) {
  Graph g;
  ConvolutionDims dims = plain_dims();
  dims.input = "f01b";
  dims.kernel = "i01o";
  dims.output = "01bf";
  const Value x = g.parameter({DType::kF32, {2, 4, 5, 7}});
  const Value k = g.parameter({DType::kF32, {2, 2, 3, 6}});
  EXPECT_EQ(convolution(x, k, dims, DType::kF32).dims(), (Dims{3, 3, 7, 6}));
}

TEST(ConvolutionTest, NoElementsNoConvolution) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {0, 2, 5, 5}});
  const Value k = g.parameter({DType::kF32, {6, 2, 3, 3}});
  const Value r = convolution(x, k, plain_dims(), DType::kF32);
  EXPECT_EQ(r.dims(), (Dims{0, 6, 3, 3}));
  EXPECT_PRED_FORMAT2(IsNotSubstring, "convolution", body_text({r}));
}

TEST(FactorizationTest, Texts) {
  Graph g;
  const Value a = g.parameter({DType::kF64, {3, 3}});
  const Value b = g.parameter({DType::kF64, {3, 1}});
  EXPECT_PRED_FORMAT2(IsSubstring, "\"stablehlo.cholesky\"(%0) <{lower = true}>",
                      body_text({cholesky(a, true)}));
  const TriangularSolve options{.lower = false, .transpose = TriangularSolve::Transpose::kAdjoint};
  const Value x = triangular_solve(a, b, options);
  EXPECT_EQ(x.type(), b.type());
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "<{left_side = true, lower = false, unit_diagonal = false, transpose_a = "
                      "#stablehlo<transpose ADJOINT>}>",
                      body_text({x}));
}

TEST(FftTest, Types) {
  Graph g;
  const Value x = g.parameter({DType::kF64, {3, 8}});
  const Value z = fft(x, FftKind::kRfft, {8});
  EXPECT_EQ(z.type(), (Type{DType::kC128, {3, 5}}));
  EXPECT_EQ(fft(z, FftKind::kIrfft, {8}).type(), x.type());
  EXPECT_EQ(fft(z, FftKind::kIfft, {3, 5}).type(), z.type());
  EXPECT_THROW(fft(x, FftKind::kFft, {8}), Error);
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "<{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>}>",
                      body_text({z}));
}

}  // namespace
}  // namespace tpu::hlo

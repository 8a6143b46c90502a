// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/elementwise.h"
#include "core/hlo/program_text.h"

namespace tpu::hlo {
namespace {

using ::testing::IsSubstring;

std::string converted_text(DType from, DType to) {
  Graph g;
  const Value r = convert(g.parameter({from, {2}}), to);
  EXPECT_EQ(r.type(), (Type{to, {2}}));
  return body_text({r});
}

TEST(ConvertTest, EveryPairKeepsDimensions) {
  for (int from = 0; from < ir::kDTypeCount; ++from) {
    for (int to = 0; to < ir::kDTypeCount; ++to) {
      converted_text(static_cast<DType>(from), static_cast<DType>(to));
    }
  }
}

TEST(ConvertTest, IntegersInOneStep) {
  EXPECT_EQ(converted_text(DType::kS64, DType::kU8),
            "%1 = \"stablehlo.convert\"(%0) : (tensor<2xi64>) -> tensor<2xui8>\n");
}

TEST(ConvertTest, TruthIsNotZero) {
  for (const DType t : {DType::kS32, DType::kF32, DType::kC64, DType::kF8E5M2}) {
    EXPECT_PRED_FORMAT2(IsSubstring, "comparison_direction NE", converted_text(t, DType::kPred));
  }
}

TEST(ConvertTest, NarrowFloatsAreMadeFromFloat) {
  EXPECT_PRED_FORMAT2(IsSubstring, "(tensor<2xf32>) -> tensor<2xbf16>",
                      converted_text(DType::kF64, DType::kBF16));
  EXPECT_PRED_FORMAT2(IsSubstring, "(tensor<2xf32>) -> tensor<2xf16>",
                      converted_text(DType::kS64, DType::kF16));
  EXPECT_EQ(converted_text(DType::kF16, DType::kBF16),
            "%1 = \"stablehlo.convert\"(%0) : (tensor<2xf16>) -> tensor<2xbf16>\n");
}

TEST(ConvertTest, FloatToIntegerGivesTheLeastOutOfRange) {
  EXPECT_PRED_FORMAT2(IsSubstring, "dense<-2147483648>", converted_text(DType::kF32, DType::kU8));
  EXPECT_PRED_FORMAT2(IsSubstring, "dense<-9223372036854775808>",
                      converted_text(DType::kBF16, DType::kS64));
  EXPECT_PRED_FORMAT2(IsSubstring, "(tensor<2xf32>) -> tensor<2xi64>",
                      converted_text(DType::kF16, DType::kU32));
}

TEST(ConvertTest, EightBitPeculiarities) {
  EXPECT_PRED_FORMAT2(IsSubstring, "stablehlo.clamp",
                      converted_text(DType::kF16, DType::kF8E4M3FN));
  EXPECT_PRED_FORMAT2(IsSubstring, "(tensor<2xui8>) -> tensor<2xf8E8M0FNU>",
                      converted_text(DType::kF32, DType::kF8E8M0FNU));
}

TEST(ConvertTest, AScalarIsReadAnew) {
  Graph g;
  const Value s = g.scalar(4, DType::kF64);
  const Value i = convert(s, DType::kS64);
  EXPECT_EQ(g.scalar_slot(i), 4);
  EXPECT_EQ(g.scalar_uses().back().carrier, DType::kS64);
  const Value narrow = convert(s, DType::kF16);
  EXPECT_EQ(g.scalar_uses().back().carrier, DType::kF32);
  EXPECT_EQ(narrow.dtype(), DType::kF16);
}

TEST(ConvertTest, ButNotForItsTruthNorTheGeneratorsState) {
  Graph g;
  convert(g.scalar(0, DType::kF64), DType::kPred);
  convert(g.random_state(1).seed, DType::kU32);
  ASSERT_EQ(g.scalar_uses().size(), 3u);
  EXPECT_EQ(g.scalar_uses()[1].carrier, DType::kU64);
}

Dims resized_dims(DType from, Dims dims, DType to) {
  Graph g;
  const Value r = bitcast_resize(g.parameter({from, std::move(dims)}), to);
  EXPECT_EQ(r.dtype(), to);
  return r.dims();
}

TEST(BitcastTest, MinorDimensionTakesUpTheSize) {
  EXPECT_EQ(resized_dims(DType::kF32, {3}, DType::kS32), (Dims{3}));
  EXPECT_EQ(resized_dims(DType::kF32, {3}, DType::kU8), (Dims{3, 4}));
  EXPECT_EQ(resized_dims(DType::kS16, {3, 4}, DType::kF64), (Dims{3}));
  EXPECT_THROW(resized_dims(DType::kS16, {3, 2}, DType::kF64), Error);
}

TEST(BitcastTest, ComplexNumbersArePairs) {
  EXPECT_EQ(resized_dims(DType::kC64, {3}, DType::kF32), (Dims{3, 2}));
  EXPECT_EQ(resized_dims(DType::kC64, {3}, DType::kF64), (Dims{3}));
  EXPECT_EQ(resized_dims(DType::kC64, {3}, DType::kU8), (Dims{3, 8}));
  EXPECT_EQ(resized_dims(DType::kU8, {3, 16}, DType::kC128), (Dims{3}));
  EXPECT_EQ(resized_dims(DType::kC128, {3}, DType::kC64), (Dims{3, 2}));
  EXPECT_EQ(resized_dims(DType::kC64, {3, 2}, DType::kC128), (Dims{3}));
}

TEST(BitcastTest, BoolIsAByte) {
  EXPECT_EQ(resized_dims(DType::kPred, {4}, DType::kF32), Dims{});
  EXPECT_EQ(resized_dims(DType::kF32, {}, DType::kPred), (Dims{4}));
}

}  // namespace
}  // namespace tpu::hlo

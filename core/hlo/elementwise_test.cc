// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/hlo/program_text.h"

namespace tpu::hlo {
namespace {

using ::testing::IsSubstring;

// The literal of the constant that `value` is or is made from.
std::string literal_text(Value value) {
  const std::string body = body_text({value});
  const size_t first = body.find("dense<") + 6;
  return body.substr(first, body.find("> :", first) - first);
}

std::string constant_text(DType t, Literal value) {
  Graph g;
  return literal_text(constant(g, t, value));
}

TEST(ElementwiseTest, OneNode) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {2}});
  EXPECT_EQ(body_text({tanh(x)}),
            "%1 = \"stablehlo.tanh\"(%0) : (tensor<2xf32>) -> tensor<2xf32>\n");
  EXPECT_EQ(add(x, x).type(), x.type());
  EXPECT_PRED_FORMAT2(IsSubstring, "\"chlo.erf_inv\"(%0)", body_text({erf_inv(x)}));
}

TEST(ElementwiseTest, Comparison) {
  Graph g;
  const Value x = g.parameter({DType::kS8, {2}});
  EXPECT_EQ(body_text({lt(x, x)}),
            "%1 = \"stablehlo.compare\"(%0, %0) <{compare_type = "
            "#stablehlo<comparison_type SIGNED>, comparison_direction = "
            "#stablehlo<comparison_direction LT>}> : (tensor<2xi8>, tensor<2xi8>) -> "
            "tensor<2xi1>\n");
}

TEST(ElementwiseTest, TypesOfResults) {
  Graph g;
  const Value z = g.parameter({DType::kC128, {2}});
  EXPECT_EQ(abs(z).dtype(), DType::kF64);
  EXPECT_EQ(real(z).dtype(), DType::kF64);
  EXPECT_EQ(complex(real(z), imag(z)).type(), z.type());
  EXPECT_EQ(is_nan(z).dtype(), DType::kPred);
  EXPECT_EQ(is_finite(real(z)).dtype(), DType::kPred);
}

TEST(ElementwiseTest, NothingToDo) {
  Graph g;
  const Value u = g.parameter({DType::kU8, {2}});
  const Value p = g.parameter({DType::kPred, {2}});
  EXPECT_EQ(abs(u), u);
  EXPECT_EQ(sign(p), p);
  EXPECT_EQ(real(u), u);
  EXPECT_EQ(convert(u, DType::kU8), u);
  EXPECT_EQ(bitcast(u, DType::kU8), u);
}

TEST(ElementwiseTest, IllTypedOperandsAreOurError) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {2}});
  const Value y = g.parameter({DType::kF64, {2}});
  const Value z = g.parameter({DType::kC64, {2}});
  EXPECT_THROW(add(x, y), Error);
  EXPECT_THROW(select(x, x, x), Error);
  EXPECT_THROW(rem(z, z), Error);
  EXPECT_THROW(max(z, z), Error);
  EXPECT_THROW(lt(z, z), Error);
  EXPECT_THROW(lowest(g, DType::kC64), Error);
  EXPECT_THROW(bitcast(x, DType::kF64), Error);
}

TEST(ConstantTest, Floats) {
  EXPECT_EQ(constant_text(DType::kF32, 1.0), "1.0");
  EXPECT_EQ(constant_text(DType::kF32, int64_t{-3}), "-3.0");
  EXPECT_EQ(constant_text(DType::kF32, true), "1.0");
  EXPECT_EQ(constant_text(DType::kF64, 0.1), "0.1");
  EXPECT_EQ(constant_text(DType::kF64, 1e300), "1.0e+300");
  EXPECT_EQ(constant_text(DType::kF32, -0.0), "-0.0");
  // Rounded by way of float, whose exact digits are shown.
  EXPECT_EQ(constant_text(DType::kF32, 0.1), "0.10000000149011612");
}

TEST(ConstantTest, SpecialValuesAreBitPatterns) {
  EXPECT_EQ(constant_text(DType::kF32, NAN), "0x7FC00000");
  EXPECT_EQ(constant_text(DType::kBF16, -INFINITY), "0xFF80");
  EXPECT_EQ(constant_text(DType::kF16, INFINITY), "0x7C00");
  EXPECT_EQ(constant_text(DType::kF64, NAN), "0x7FF8000000000000");
  EXPECT_EQ(constant_text(DType::kF32, 1e300), "0x7F800000");
  EXPECT_EQ(constant_text(DType::kF16, 65520.0), "0x7C00");
  EXPECT_EQ(constant_text(DType::kF16, 65519.0), "65519.0");
  EXPECT_EQ(constant_text(DType::kBF16, -3.4e38), "0xFF80");
}

TEST(ConstantTest, IntegersWrap) {
  EXPECT_EQ(constant_text(DType::kS8, int64_t{300}), "44");
  EXPECT_EQ(constant_text(DType::kU8, int64_t{-1}), "255");
  EXPECT_EQ(constant_text(DType::kU64, int64_t{-1}), "18446744073709551615");
  EXPECT_EQ(constant_text(DType::kS64, std::numeric_limits<int64_t>::min()),
            "-9223372036854775808");
  EXPECT_EQ(constant_text(DType::kS32, -2.9), "-2");
  EXPECT_EQ(constant_text(DType::kS64, NAN), "-9223372036854775808");
  EXPECT_EQ(constant_text(DType::kPred, 0.5), "true");
  EXPECT_EQ(constant_text(DType::kPred, std::complex<double>(0, 0)), "false");
}

TEST(ConstantTest, ComplexNumbers) {
  EXPECT_EQ(constant_text(DType::kC64, std::complex<double>(1, -2.5)), "(1.0, -2.5)");
  EXPECT_EQ(constant_text(DType::kC128, 2.0), "(2.0, 0.0)");
  EXPECT_EQ(constant_text(DType::kC64, std::complex<double>(NAN, INFINITY)),
            "(0x7FC00000, 0x7F800000)");
  EXPECT_EQ(constant_text(DType::kS32, std::complex<double>(3, 9)), "3");
}

TEST(ConstantTest, EightBitFloatsAreConvertedByTheCompiler) {
  Graph g;
  const Value c = constant(g, DType::kF8E5M2, 0.3);
  EXPECT_EQ(c.type(), (Type{DType::kF8E5M2, {}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "(tensor<f32>) -> tensor<f8E5M2>", body_text({c}));
}

TEST(ConstantTest, Extremes) {
  Graph a, b, c, d, e, f;
  EXPECT_EQ(literal_text(lowest(a, DType::kS16)), "-32768");
  EXPECT_EQ(literal_text(highest(b, DType::kS64)), "9223372036854775807");
  EXPECT_EQ(literal_text(highest(c, DType::kU32)), "4294967295");
  EXPECT_EQ(literal_text(lowest(d, DType::kPred)), "false");
  EXPECT_EQ(literal_text(lowest(e, DType::kF32)), "0xFF800000");
  EXPECT_EQ(literal_text(highest(f, DType::kF8E4M3FN)), "0x7E");
}

TEST(ConstantTest, ArraysAndSplats) {
  Graph a;
  const int64_t values[] = {1, 2, 3, -4};
  EXPECT_EQ(body_text({constant_array(a, {2, 2}, values, DType::kS32)}),
            "%0 = \"stablehlo.constant\"() <{value = dense<[1, 2, 3, -4]> : tensor<4xi32>}> : () "
            "-> tensor<4xi32>\n"
            "%1 = \"stablehlo.reshape\"(%0) : (tensor<4xi32>) -> tensor<2x2xi32>\n");
  Graph b;
  EXPECT_EQ(literal_text(constant_array(b, {0, 3}, std::vector<int64_t>{}, DType::kF32)), "");
  EXPECT_THROW(constant_array(b, {2}, std::vector<int64_t>{}, DType::kF32), Error);
  Graph c;
  const Value f = full(c, {DType::kF32, {2, 0}}, 1.0);
  EXPECT_EQ(f.type(), (Type{DType::kF32, {2, 0}}));
}

}  // namespace
}  // namespace tpu::hlo

// SPDX-License-Identifier: Apache-2.0
#include "core/ir/graph.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace tpu::ir {
namespace {

using ::testing::IsNotSubstring;
using ::testing::IsSubstring;

const Type kScalar{DType::kF32, {}};
const Type kVector{DType::kF32, {3}};
const Type kBool{DType::kPred, {}};

Value negated(Value x) {
  return x.graph().node1({.op = "stablehlo.negate", .inputs = {x}, .results = {x.type()}});
}

TEST(GraphTest, WholeProgram) {
  Graph g;
  const Value x = g.parameter(kVector);
  const Value y = g.node1({.op = "stablehlo.transpose",
                           .inputs = {x},
                           .results = {kVector},
                           .attributes = "permutation = array<i64: 0>"});
  const Graph::Module m = g.module({y, x});
  EXPECT_EQ(m.text, R"(module {
  func.func public @main(%0: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 0>}> : (tensor<3xf32>) -> tensor<3xf32>
    "func.return"(%1, %0) : (tensor<3xf32>, tensor<3xf32>) -> ()
  }
}
)");
  EXPECT_EQ(m.parameters, (std::vector<Type>{kVector}));
  EXPECT_EQ(m.results, (std::vector<Type>{kVector, kVector}));
}

TEST(GraphTest, AliasesAndDestinations) {
  Graph g;
  const Value x = g.parameter(kVector);
  const Value y = g.parameter(kScalar);
  const Graph::Module m = g.module({negated(x), negated(y)}, {{.result = 0, .parameter = 0}}, {1});
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "@main(%0: tensor<3xf32> {tf.aliasing_output = 0 : i32}, "
                      "%1: tensor<f32>, "
                      "%destination1: tensor<f32> {tf.aliasing_output = 1 : i32})",
                      m.text);
  EXPECT_EQ(m.parameters, (std::vector<Type>{kVector, kScalar, kScalar}));
}

TEST(GraphTest, NoResultsOfAProgram) {
  Graph g;
  EXPECT_PRED_FORMAT2(IsSubstring, "\"func.return\"() : () -> ()", g.module({}).text);
}

TEST(GraphTest, RegionsSeeTheirArgumentsAndOuterValues) {
  Graph g;
  const Value x = g.parameter(kScalar);
  const Values r = g.node({.op = "stablehlo.while",
                           .inputs = {x},
                           .results = {kScalar},
                           .attributes = {},
                           .blocks = {{{kScalar}, [](auto) { return Values{}; }},
                                      {{kScalar}, [&](std::span<const Value> v) {
                                         EXPECT_EQ(v.size(), 1u);
                                         return Values{negated(x), v[0]};
                                       }}}});
  EXPECT_PRED_FORMAT2(IsSubstring, R"( = "stablehlo.while"(%0) ({
    ^bb0(%1: tensor<f32>):
      "stablehlo.return"() : () -> ()
    }, {
    ^bb0(%2: tensor<f32>):
      %3 = "stablehlo.negate"(%0) : (tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%3, %2) : (tensor<f32>, tensor<f32>) -> ()
    }) : (tensor<f32>) -> tensor<f32>
)",
                      g.module(r).text);
}

TEST(GraphTest, ResultsMayBeThoseOfTheFirstBlock) {
  Graph g;
  const Value p = g.parameter(kBool);
  const auto body = [&](std::span<const Value>) { return Values{p, p}; };
  const Values r = g.node({.op = "stablehlo.if",
                           .inputs = {p},
                           .results = {},
                           .attributes = {},
                           .blocks = {{{}, body}, {{}, body}},
                           .results_of_block = true});
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[1].type(), kBool);
  EXPECT_PRED_FORMAT2(IsSubstring, "%1, %2 = \"stablehlo.if\"(%0) ({", g.module(r).text);
}

TEST(GraphTest, AThrowingBodyLeavesTheOuterBlockCurrent) {
  Graph g;
  const Value x = g.parameter(kScalar);
  const auto body = [](std::span<const Value>) -> Values { fail(ErrorKind::kValue, "no"); };
  EXPECT_THROW(g.node({.op = "stablehlo.if", .inputs = {x}, .results = {}, .blocks = {{{}, body}}}),
               Error);
  EXPECT_PRED_FORMAT2(IsSubstring, "    %1 = \"stablehlo.negate\"(%0)",
                      g.module({negated(x)}).text);
}

TEST(GraphTest, ForeignValuesAreRefused) {
  Graph a;
  Graph b;
  const Value x = a.parameter(kScalar);
  EXPECT_THROW(b.node1({.op = "stablehlo.abs", .inputs = {x}, .results = {kScalar}}), Error);
  EXPECT_THROW(a.parameter({DType::kF32, {-1}}), Error);
}

TEST(ScalarTest, CarriersAndWords) {
  EXPECT_EQ(carrier_type(DType::kPred), DType::kS32);
  EXPECT_EQ(carrier_type(DType::kU32), DType::kS32);
  EXPECT_EQ(carrier_type(DType::kS64), DType::kS64);
  EXPECT_EQ(carrier_type(DType::kBF16), DType::kF32);
  EXPECT_EQ(carrier_type(DType::kF64), DType::kF64);
  EXPECT_EQ(carrier_type(DType::kC64), DType::kC64);
  EXPECT_EQ(word_count(DType::kF32), 1);
  EXPECT_EQ(word_count(DType::kC128), 4);
}

TEST(ScalarTest, OneUsePerSlotAndCarrier) {
  Graph g;
  const Value a = g.scalar(0, DType::kBF16);
  EXPECT_EQ(a, g.scalar(0, DType::kF32));
  EXPECT_EQ(a.type(), kScalar);
  const Value b = g.scalar(0, DType::kS64);
  const Value c = g.scalar(2, DType::kF32);
  EXPECT_EQ(g.scalar_uses(),
            (std::vector<ScalarUse>{ScalarUse{0, DType::kF32, 0}, ScalarUse{0, DType::kS64, 1},
                                    ScalarUse{2, DType::kF32, 3}}));
  EXPECT_EQ(g.words(), 4);
  EXPECT_EQ(g.scalar_slot(b), 0);
  EXPECT_EQ(g.scalar_slot(c), 2);
  EXPECT_EQ(g.scalar_slot(negated(c)), std::nullopt);
}

TEST(ScalarTest, WordsFollowTheArrays) {
  Graph g;
  const Value s = g.scalar(0, DType::kF32);
  const Value x = g.parameter(kVector);
  const Graph::Module m = g.module({x, s});
  EXPECT_EQ(m.parameters, (std::vector<Type>{kVector, Type{DType::kS32, {1}}}));
  EXPECT_PRED_FORMAT2(IsSubstring, R"(@main(%1: tensor<3xf32>, %words: tensor<1xi32>))", m.text);
  EXPECT_PRED_FORMAT2(IsSubstring, R"(
    %w0bits = "stablehlo.slice"(%words) <{start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<1xi32>) -> tensor<1xi32>
    %w0word = "stablehlo.reshape"(%w0bits) : (tensor<1xi32>) -> tensor<i32>
    %0 = "stablehlo.bitcast_convert"(%w0word) : (tensor<i32>) -> tensor<f32>
)",
                      m.text);
}

TEST(ScalarTest, TwoWordsAndComplexNumbers) {
  Graph g;
  const Values r{g.scalar(0, DType::kS64), g.scalar(1, DType::kC128), g.scalar(2, DType::kS8)};
  const std::string text = g.module(r).text;
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "%0 = \"stablehlo.bitcast_convert\"(%w0bits) : (tensor<2xi32>) -> "
                      "tensor<i64>",
                      text);
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "%w1im = \"stablehlo.bitcast_convert\"(%w1imbits) : (tensor<2xi32>) "
                      "-> tensor<f64>",
                      text);
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "%1 = \"stablehlo.complex\"(%w1re, %w1im) : (tensor<f64>, "
                      "tensor<f64>) -> tensor<complex<f64>>",
                      text);
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "%2 = \"stablehlo.reshape\"(%w2bits) : (tensor<1xi32>) -> "
                      "tensor<i32>",
                      text);
}

TEST(ScalarTest, RandomStateAddsUpItsBlocks) {
  Graph g;
  const Graph::RandomState a = g.random_state(3);
  const Graph::RandomState b = g.random_state(4);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.offset.type(), (Type{DType::kU64, {}}));
  EXPECT_EQ(g.random_blocks(), 7);
  EXPECT_EQ(g.scalar_uses()[0].slot, kSeedSlot);
  EXPECT_EQ(g.scalar_uses()[1].slot, kOffsetSlot);
}

TEST(CheckTest, AddsOneResultAfterTheOthers) {
  Graph g;
  const Value x = g.parameter(kVector);
  EXPECT_PRED_FORMAT2(IsNotSubstring, "select", g.module({x}).text);
  const Value bad = g.parameter(kBool);
  const Value narrow = g.parameter({DType::kS32, {}});
  const Value wide = g.parameter({DType::kS64, {}});
  g.check(bad, narrow, "index {} is out of bounds");
  g.check(bad, wide, "broken", CheckKind::kRuntime);
  const Graph::Module m = g.module({x});
  EXPECT_EQ(m.results, (std::vector<Type>{kVector, Type{DType::kS64, {2}}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "\"stablehlo.convert\"(%2) : (tensor<i32>) -> tensor<i64>",
                      m.text);
  ASSERT_EQ(g.checks().size(), 2u);
  EXPECT_EQ(g.checks()[0].message, "index {} is out of bounds");
  EXPECT_EQ(g.checks()[0].kind, CheckKind::kIndex);
  EXPECT_EQ(g.checks()[1].kind, CheckKind::kRuntime);
}

TEST(CheckTest, OnlyOneBoolOutsideOfRegions) {
  Graph g;
  const Value x = g.parameter(kVector);
  const Value p = g.parameter(kBool);
  EXPECT_THROW(g.check(x, p, ""), Error);
  EXPECT_THROW(g.check(p, x, ""), Error);
  const auto body = [&](std::span<const Value>) {
    g.check(p, p, "");
    return Values{p};
  };
  EXPECT_THROW(g.node({.op = "stablehlo.if", .inputs = {p}, .results = {}, .blocks = {{{}, body}}}),
               Error);
}

}  // namespace
}  // namespace tpu::ir

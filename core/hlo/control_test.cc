// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/control.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/program_text.h"

namespace tpu::hlo {
namespace {

using ::testing::IsSubstring;

TEST(ControlTest, While) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {2}});
  const Value n = g.parameter({DType::kS32, {}});
  const Values r = while_loop(
      {n, x}, [&](std::span<const Value> s) { return lt(s[0], n); },
      [&](std::span<const Value> s) { return Values{s[0], add(s[1], x)}; });
  EXPECT_EQ(r[1].type(), x.type());
  EXPECT_PRED_FORMAT2(IsSubstring, "%8, %9 = \"stablehlo.while\"(%1, %0) ({\n", body_text(r));
}

TEST(ControlTest, StateKeepsItsTypes) {
  Graph g;
  const Value x = g.parameter({DType::kS32, {}});
  const auto always = [&](std::span<const Value>) { return constant(g, DType::kPred, true); };
  const auto widen = [](std::span<const Value> s) { return Values{convert(s[0], DType::kS64)}; };
  EXPECT_THROW(while_loop({x}, always, widen), Error);
  EXPECT_THROW(while_loop({}, always, widen), Error);
}

TEST(ControlTest, ForCountsInS32) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {2}});
  const Values r = for_loop(3, {x}, [](Value i, std::span<const Value> s) {
    EXPECT_EQ(i.type(), (Type{DType::kS32, {}}));
    return Values{s.begin(), s.end()};
  });
  ASSERT_EQ(r.size(), 1u);
  EXPECT_EQ(r[0].type(), x.type());
}

TEST(ControlTest, If) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {2}});
  const Value p = g.parameter({DType::kPred, {}});
  const Values r = if_else(p, [&] { return Values{neg(x)}; }, [&] { return Values{x}; });
  EXPECT_EQ(r[0].type(), x.type());
  EXPECT_PRED_FORMAT2(IsSubstring, "%3 = \"stablehlo.if\"(%1) ({\n^bb0():\n", body_text(r));
  EXPECT_THROW(if_else(p, [&] { return Values{x}; }, [&] { return Values{p}; }), Error);
}

TEST(ControlTest, CustomCall) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {2}});
  const Values r = custom_call(g, "host", {x}, {x.type(), x.type()}, "{n = 3 : i64}");
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "%1, %2 = \"stablehlo.custom_call\"(%0) <{call_target_name = \"host\", "
                      "api_version = 4 : i32, backend_config = {n = 3 : i64}}>",
                      body_text(r));
  EXPECT_EQ(optimization_barrier(x).type(), x.type());
}

TEST(PhiloxTest, BlocksAreSixteenBytes) {
  EXPECT_EQ(philox_blocks(0, DType::kU32), 0);
  EXPECT_EQ(philox_blocks(1, DType::kU64), 1);
  EXPECT_EQ(philox_blocks(3, DType::kU64), 2);
  EXPECT_EQ(philox_blocks(16, DType::kU8), 1);
  EXPECT_EQ(philox_blocks(17, DType::kU8), 2);
}

TEST(PhiloxTest, AnyDimensionsOfUnsignedTypes) {
  Graph g;
  const Graph::RandomState s = g.random_state(1);
  for (const DType t : {DType::kU8, DType::kU16, DType::kU32, DType::kU64}) {
    for (const Dims& dims : {Dims{}, Dims{3, 5}, Dims{0, 2}}) {
      EXPECT_EQ(philox_bits(s.seed, s.offset, dims, t).type(), (Type{t, dims}));
    }
  }
  EXPECT_THROW(philox_bits(s.seed, s.offset, {}, DType::kS32), Error);
  // The state is read as it travels, never through a narrower carrier.
  EXPECT_EQ(g.scalar_uses().size(), 2u);
}

}  // namespace
}  // namespace tpu::hlo

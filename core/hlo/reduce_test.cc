// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/reduce.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/program_text.h"

namespace tpu::hlo {
namespace {

using ::testing::IsSubstring;

TEST(ReduceTest, Sum) {
  Graph g;
  const Value r = reduce_sum(g.parameter({DType::kF32, {2, 3}}), {1});
  EXPECT_EQ(r.dims(), (Dims{2}));
  EXPECT_PRED_FORMAT2(
      IsSubstring,
      "%5 = \"stablehlo.reduce\"(%0, %1) <{dimensions = array<i64: 1>}> ({\n"
      "^bb0(%2: tensor<f32>, %3: tensor<f32>):\n"
      "  %4 = \"stablehlo.add\"(%2, %3) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n",
      body_text({r}));
}

TEST(ReduceTest, AxesInAnyOrderAndNone) {
  Graph g;
  const Value x = g.parameter({DType::kS32, {2, 3, 4}});
  const Value r = reduce_max(x, {2, 0});
  EXPECT_EQ(r.dims(), (Dims{3}));
  EXPECT_PRED_FORMAT2(IsSubstring, "dimensions = array<i64: 0, 2>", body_text({r}));
  EXPECT_EQ(reduce_max(x, {}), x);
}

TEST(ReduceTest, InitialValues) {
  const auto text = [](DType t, Value (*op)(Value, const Dims&)) {
    Graph g;
    return body_text({op(g.parameter({t, {4}}), {0})});
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "dense<0xFF800000>", text(DType::kF32, reduce_max));
  EXPECT_PRED_FORMAT2(IsSubstring, "dense<127>", text(DType::kS8, reduce_min));
  EXPECT_PRED_FORMAT2(IsSubstring, "dense<true>", text(DType::kPred, reduce_and));
  EXPECT_PRED_FORMAT2(IsSubstring, "dense<255>", text(DType::kU8, reduce_and));
  EXPECT_PRED_FORMAT2(IsSubstring, "dense<(1.0, 0.0)>", text(DType::kC64, reduce_prod));
}

TEST(ReduceTest, SeveralOperands) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {2, 3}});
  const Value i = g.parameter({DType::kS32, {2, 3}});
  const Values initial{constant(g, DType::kF32, 0.0), constant(g, DType::kS32, int64_t{0})};
  const auto body = [](std::span<const Value> v) {
    EXPECT_EQ(v[1].dtype(), DType::kS32);
    EXPECT_EQ(v[2].dtype(), DType::kF32);
    return Values{add(v[0], v[2]), max(v[1], v[3])};
  };
  const Values r = reduce({x, i}, initial, {0}, body);
  EXPECT_EQ(r[1].type(), (Type{DType::kS32, {3}}));
  EXPECT_THROW(reduce({x, i}, {initial[1], initial[0]}, {0}, body), Error);
}

TEST(WindowTest, ResultDimensions) {
  Window w = Window::of_rank(1);
  w.sizes = {3};
  EXPECT_EQ(window_result_dims(Dims{5}, w), (Dims{3}));
  w.strides = {2};
  w.pad_low = {1};
  EXPECT_EQ(window_result_dims(Dims{5}, w), (Dims{2}));
  w.window_dilations = {2};
  EXPECT_EQ(window_result_dims(Dims{5}, w), (Dims{1}));
  w.base_dilations = {3};
  EXPECT_EQ(window_result_dims(Dims{5}, w), (Dims{5}));
  EXPECT_EQ(window_result_dims(Dims{0}, w), (Dims{0}));
  EXPECT_THROW(window_result_dims(Dims{5, 5}, w), Error);
}

TEST(WindowTest, ReduceWindow) {
  Graph g;
  Window w = Window::of_rank(2);
  w.sizes = {1, 2};
  w.pad_high = {0, 1};
  const Value r = reduce_window_sum(g.parameter({DType::kF32, {2, 3}}), w);
  EXPECT_EQ(r.dims(), (Dims{2, 3}));
  EXPECT_PRED_FORMAT2(
      IsSubstring,
      "<{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 1>, base_dilations "
      "= array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 1]]> "
      ": tensor<2x2xi64>}>",
      body_text({r}));
}

TEST(WindowTest, SelectAndScatterTakesGreaterOrNan) {
  Graph g;
  const Value x = g.parameter({DType::kF32, {4}});
  const Value s = g.parameter({DType::kF32, {2}});
  Window w = Window::of_rank(1);
  w.sizes = w.strides = {2};
  const Value r = select_and_scatter_add(x, s, w);
  EXPECT_EQ(r.type(), x.type());
  EXPECT_PRED_FORMAT2(IsSubstring, "comparison_direction GT", body_text({r}));
  EXPECT_PRED_FORMAT2(IsSubstring, "comparison_direction NE", body_text({r}));
  EXPECT_THROW(select_and_scatter_add(x, x, w), Error);
}

}  // namespace
}  // namespace tpu::hlo

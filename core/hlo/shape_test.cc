// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/shape.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/program_text.h"

namespace tpu::hlo {
namespace {

using ::testing::IsSubstring;

class ShapeTest : public ::testing::Test {
 protected:
  Graph g_;
  Value x_ = g_.parameter({DType::kF32, {2, 3}});
  Value one_ = g_.parameter({DType::kF32, {}});
};

TEST_F(ShapeTest, WhatChangesNothingIsNotEmitted) {
  EXPECT_EQ(reshape(x_, {2, 3}), x_);
  EXPECT_EQ(broadcast_to(x_, {2, 3}), x_);
  EXPECT_EQ(transpose(x_, {0, 1}), x_);
  EXPECT_EQ(slice(x_, {0, 0}, {2, 3}, {1, 1}), x_);
  EXPECT_EQ(concatenate({x_}, 0), x_);
  EXPECT_EQ(pad(x_, one_, {0, 0}, {0, 0}, {0, 0}), x_);
  EXPECT_EQ(reverse(x_, {}), x_);
  EXPECT_EQ(dynamic_slice(one_, {}, {}), one_);
  EXPECT_EQ(dynamic_update_slice(one_, x_.graph().parameter(one_.type()), {}).type(), one_.type());
}

TEST_F(ShapeTest, Dimensions) {
  EXPECT_EQ(broadcast_to(x_, {4, 2, 3}).dims(), (Dims{4, 2, 3}));
  EXPECT_EQ(transpose(x_, {1, 0}).dims(), (Dims{3, 2}));
  EXPECT_EQ(slice_axis(x_, 1, 0, 3, 2).dims(), (Dims{2, 2}));
  EXPECT_EQ(slice_axis(x_, 1, 3, 3).dims(), (Dims{2, 0}));
  EXPECT_EQ(concatenate({x_, x_, x_}, 1).dims(), (Dims{2, 9}));
  EXPECT_EQ(pad(x_, one_, {-1, 1}, {0, 2}, {0, 1}).dims(), (Dims{1, 8}));
  EXPECT_EQ(iota_like(x_, 1, DType::kS64).type(), (Type{DType::kS64, {2, 3}}));
}

TEST_F(ShapeTest, PaddingAnEmptyAxisHasNoInterior) {
  const Value e = g_.parameter({DType::kF32, {0}});
  EXPECT_EQ(pad(e, one_, {2}, {1}, {5}).dims(), (Dims{3}));
}

TEST_F(ShapeTest, Texts) {
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "\"stablehlo.broadcast_in_dim\"(%1) <{broadcast_dimensions = array<i64>}>",
                      body_text({broadcast_to(one_, {2})}));
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "<{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 3>, "
                      "strides = array<i64: 1, 2>}>",
                      body_text({slice_axis(x_, 1, 1, 3, 2)}));
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "<{edge_padding_low = array<i64: 0, -1>, edge_padding_high = "
                      "array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}>",
                      body_text({pad(x_, one_, {0, -1}, {1, 0}, {0, 0})}));
}

TEST_F(ShapeTest, IllFormedRequestsAreOurError) {
  EXPECT_THROW(reshape(x_, {5}), Error);
  EXPECT_THROW(broadcast_to(x_, {2, 4}), Error);
  EXPECT_THROW(broadcast_to(x_, {3}), Error);
  EXPECT_THROW(slice_axis(x_, 0, 1, 3), Error);
  EXPECT_THROW(concatenate({x_, transpose(x_, {1, 0})}, 0), Error);
  EXPECT_THROW(iota(g_, {DType::kPred, {2}}, 0), Error);
}

TEST_F(ShapeTest, IotaOfTypesTheCompilerCannotCountIn) {
  const Value i = iota(g_, {DType::kC64, {4}}, 0);
  EXPECT_EQ(i.type(), (Type{DType::kC64, {4}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "-> tensor<4xi32>", body_text({i}));
}

TEST_F(ShapeTest, Sort) {
  const Value i = iota_like(x_, 1, DType::kS32);
  const Values r = sort({x_, i}, 1, true, [](std::span<const Value> v) {
    EXPECT_EQ(v.size(), 4u);
    EXPECT_EQ(v[3].type(), (Type{DType::kS32, {}}));
    return lt(v[0], v[1]);
  });
  EXPECT_EQ(r[1].type(), i.type());
  EXPECT_PRED_FORMAT2(IsSubstring, "<{dimension = 1 : i64, is_stable = true}> ({\n", body_text(r));
}

TEST_F(ShapeTest, OneElementIsSorted) {
  const auto less = [](std::span<const Value> v) { return lt(v[0], v[1]); };
  EXPECT_EQ(sort({one_}, 0, false, less), Values{one_});
}

TEST_F(ShapeTest, Take) {
  const Value index = g_.parameter({DType::kS64, {4, 5}});
  const Value r = take(x_, index, 1);
  EXPECT_EQ(r.dims(), (Dims{2, 4, 5}));
  EXPECT_PRED_FORMAT2(
      IsSubstring,
      "<{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], "
      "operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [1], "
      "index_vector_dim = 2>, slice_sizes = array<i64: 2, 1>, indices_are_sorted = false}>",
      body_text({r}));
  EXPECT_EQ(take(x_, g_.parameter({DType::kS32, {}}), 0).dims(), (Dims{3}));
}

TEST_F(ShapeTest, TakeAlongCropsWhatTheIndexDoesNotReach) {
  const Value index = g_.parameter({DType::kS64, {1, 7}});
  const Value r = take_along(x_, index, 1);
  EXPECT_EQ(r.dims(), (Dims{1, 7}));
  EXPECT_PRED_FORMAT2(IsSubstring, "limit_indices = array<i64: 1, 3>", body_text({r}));
  EXPECT_EQ(take_along(one_, g_.parameter({DType::kS64, {}}), 0), one_);
}

TEST_F(ShapeTest, NothingToGatherOrScatter) {
  const Value none = g_.parameter({DType::kS64, {0}});
  EXPECT_EQ(take(x_, none, 0).dims(), (Dims{0, 3}));
  const Value empty = g_.parameter({DType::kF32, {0, 3}});
  EXPECT_PRED_FORMAT2(IsSubstring, "dense<0.0>",
                      body_text({take(empty, g_.parameter({DType::kS64, {2}}), 0)}));
  const ScatterDims dims{.update_window_dims = {1},
                         .inserted_window_dims = {0},
                         .scatter_dims_to_operand_dims = {0},
                         .index_vector_dim = 1};
  EXPECT_EQ(scatter(x_, reshape(none, {0, 1}), empty, dims, add), x_);
}

}  // namespace
}  // namespace tpu::hlo

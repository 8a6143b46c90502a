// SPDX-License-Identifier: Apache-2.0
#include "core/hlo/host_call.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/program_text.h"

namespace tpu::hlo {
namespace {

using ::testing::IsSubstring;

TEST(HostCallTest, ArgumentsAreTextAndOperands) {
  Graph g("op", {.cpu = true, .host_calls = true});
  const Value x = g.parameter({DType::kF32, {2, 3}});
  const Value n = g.parameter({DType::kS64, {}});
  g.mark_wrapped(n);
  const std::vector<std::optional<Value>> list{x, std::nullopt};
  const Values r =
      host_call(g, {.op = "aten::f.x",
                    .arguments = {x, n, std::monostate(), list, Literal(true), Literal(int64_t{-3}),
                                  Literal(0.5), Dims{1, 2}, Dims{}, std::vector<bool>{true, false},
                                  std::string("a\""), DType::kF32, HostDevice{}, HostByColumns{x},
                                  HostWritten{x}, HostWritten{}},
                    .fresh = {Type{DType::kF32, {3}}, std::nullopt},
                    .written = {x.type(), Type{DType::kF32, {}}}});
  ASSERT_EQ(r.size(), 4u);
  EXPECT_EQ(r[0].type(), (Type{DType::kF32, {3}}));
  EXPECT_EQ(r[1].id(), -1);
  EXPECT_EQ(r[2].type(), x.type());
  EXPECT_EQ(r[3].type(), (Type{DType::kF32, {}}));
  ASSERT_EQ(g.checks().size(), 1u);
  EXPECT_EQ(g.checks()[0].kind, ir::CheckKind::kHostCall);
  const std::string text = body_text({r[0], r[2], r[3]});
  EXPECT_PRED_FORMAT2(IsSubstring,
                      R"(op = "aten::f.x", args = "t w - T10 b1 i-3 d3fe0000000000000 I1,2 I )"
                      R"(B10 s6122 y16 x q m o", results = "10")",
                      text);
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "operand_layouts = [dense<[1, 0]> : tensor<2xindex>, "
                      "dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>, "
                      "dense<[0, 1]>",
                      text);
}

TEST(HostCallTest, OnlyWhereAllowed) {
  Graph g("op", {.cpu = true, .host_calls = false});
  const Value x = g.parameter({DType::kF32, {2}});
  EXPECT_THROW(host_call(g, {.op = "aten::f", .arguments = {x}, .fresh = {x.type()}}), Error);
}

}  // namespace
}  // namespace tpu::hlo

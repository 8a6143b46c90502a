// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/exec/host_errors.h"
#include "core/exec/test_runtime.h"

namespace tpu::exec {
namespace {

// Fails its first check if the word is 1, its second if it is 2, and shows the word.
ProgramRef checked_program() {
  return make_program({.arrays = {kVector},
                       .words = 1,
                       .results = {kVector},
                       .checks = {{ir::CheckKind::kIndex, "index {} is out of bounds"},
                                  {ir::CheckKind::kRuntime, "probability tensor is broken"}}},
                      R"(%w = stablehlo.convert %words : (tensor<1xi32>) -> tensor<1xi64>
         %checks = stablehlo.concatenate %w, %w, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
         %r0 = stablehlo.add %0, %0 : tensor<8xf32>)");
}

// What is thrown, with its kind; empty if nothing is.
template <class Body>
std::string thrown(Body body) {
  try {
    body();
  } catch (const Error& e) {
    return fmt::format("{}:{}", static_cast<int>(e.kind()), e.what());
  }
  return "";
}

std::string raised() {
  return thrown([] { test_device().raise_failed_checks(); });
}

const std::string kIndexText = fmt::format("{}:", static_cast<int>(ErrorKind::kIndex));
const std::string kRuntimeText = fmt::format("{}:", static_cast<int>(ErrorKind::kRuntime));

TEST(Checks, PassedOnesSayNothing) {
  const ProgramRef program = checked_program();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(launch(program, {filled(1)}, {.words = {0}}).ok());
  EXPECT_EQ(raised(), "");
  EXPECT_TRUE(test_device().synchronize().ok());
}

TEST(Checks, FirstFailureIsRaisedOnceAndTheValueIsThere) {
  const ArrayRef a = filled(1);
  const auto results = launch(checked_program(), {a}, {.words = {1}, .origin = "model.py:12"});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(raised(),
            kIndexText + "index 1 is out of bounds (op aten::test recorded at model.py:12)");
  EXPECT_EQ(raised(), "");
  EXPECT_EQ(contents(results.value()[0])[0], 2) << "no tensor is lost";
  EXPECT_EQ(contents(a)[0], 1);
}

TEST(Checks, HostCallsErrorKeepsItsKindAndText) {
  const ProgramRef program =
      make_program({.arrays = {kVector},
                    .words = 1,
                    .results = {kVector},
                    .checks = {{ir::CheckKind::kHostCall, "aten::inverse"}}},
                   R"(%w = stablehlo.convert %words : (tensor<1xi32>) -> tensor<1xi64>
         %first = stablehlo.constant dense<1> : tensor<1xi64>
         %checks = stablehlo.concatenate %first, %w, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
         %r0 = stablehlo.add %0, %0 : tensor<8xf32>)");
  const int64_t number = keep_host_error({ErrorKind::kLinAlg, "singular"});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(launch(program, {filled(1)}, {.words = {static_cast<int32_t>(number)}}).ok());
  }
  EXPECT_EQ(raised(), fmt::format("{}:singular", static_cast<int>(ErrorKind::kLinAlg)));
  EXPECT_NE(raised().find("a host call failed"), std::string::npos) << "an error is told once";
}

TEST(Checks, FailuresComeInOrderOfLaunch) {
  const ProgramRef program = checked_program();
  for (const int word : {0, 2, 0, 1, 0}) {
    ASSERT_TRUE(launch(program, {filled(1)}, {.words = {word}}).ok());
  }
  EXPECT_EQ(thrown([] { (void)test_device().synchronize(); }),
            kRuntimeText + "probability tensor is broken");
  EXPECT_EQ(raised(), kIndexText + "index 1 is out of bounds");
  EXPECT_EQ(raised(), "");
}

TEST(Checks, ManyFailuresDoNotPileUp) {
  const ProgramRef program = checked_program();
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(launch(program, {filled(1)}, {.words = {1}}).ok());
  int count = 0;
  while (!raised().empty()) ++count;
  EXPECT_EQ(count, 1024);
}

// A graph that checks numbers it knows: `values` below 0 fail.
ProgramRef constant_program(const std::vector<int64_t>& values) {
  ir::Graph graph;
  const ir::Type number{ir::DType::kS64, {}};
  const auto constant = [&](int64_t v) {
    return graph.node1({.op = "stablehlo.constant",
                        .inputs = {},
                        .results = {number},
                        .attributes = fmt::format("value = dense<{}> : tensor<i64>", v)});
  };
  for (const int64_t v : values) {
    const ir::Value shown = constant(v);
    const ir::Value bad =
        graph.node1({.op = "stablehlo.compare",
                     .inputs = {shown, constant(0)},
                     .results = {{ir::DType::kPred, {}}},
                     .attributes = "compare_type = #stablehlo<comparison_type SIGNED>, "
                                   "comparison_direction = #stablehlo<comparison_direction LT>"});
    graph.check(bad, shown, "found {}", ir::CheckKind::kRuntime);
  }
  const ir::Value x = graph.parameter(kVector);
  const ir::Graph::Module module = graph.module({x});
  return value_or_throw(test_runtime().compiler().compile(
      {.op = "aten::test",
       .module = module,
       .layout = {.arrays = {kVector}, .results = {kVector}, .checks = graph.checks()}}));
}

TEST(Checks, ConstantConditions) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(launch(constant_program({0}), {filled(1)}).ok());
    ASSERT_TRUE(launch(constant_program({0, 7}), {filled(1)}).ok());
    EXPECT_EQ(raised(), "");
  }
  ASSERT_TRUE(launch(constant_program({3, -5, -6}), {filled(1)}).ok());
  EXPECT_EQ(raised(), kRuntimeText + "found -5");
}

}  // namespace
}  // namespace tpu::exec

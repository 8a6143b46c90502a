// SPDX-License-Identifier: Apache-2.0
// Launches of programs that are still being compiled.
#include <gtest/gtest.h>

#include "core/exec/test_runtime.h"

namespace tpu::exec {
namespace {

using Floats = std::vector<float>;

Compiler& compiler() { return test_runtime().compiler(); }

ProgramRef start(ProgramLayout layout, const std::string& body) {
  ir::Graph::Module module = make_module(layout, body);
  return value_or_throw(compiler().start(
      {.op = "aten::test", .module = std::move(module), .layout = std::move(layout)}));
}

// Adds `n` to its argument; `n` makes it new. Compiling takes the longer the more steps it has.
ProgramRef start_adding(int n, int steps, bool alias = false) {
  std::string chain = fmt::format(
      "%c = stablehlo.constant dense<{}.0> : tensor<8xf32>\n%z = stablehlo.constant dense<0.0> : "
      "tensor<8xf32>\n%v0 = stablehlo.add %0, %c : tensor<8xf32>\n",
      n);
  for (int i = 0; i < steps; ++i) {
    chain += fmt::format(
        "%t{0} = stablehlo.tanh %v{0} : tensor<8xf32>\n%m{0} = stablehlo.multiply %t{0}, %z : "
        "tensor<8xf32>\n%v{1} = stablehlo.add %v{0}, %m{0} : tensor<8xf32>\n",
        i, i + 1);
  }
  ProgramLayout layout{.arrays = {kVector}, .results = {kVector}};
  if (alias) layout.aliases = {{0, 0}};
  return start(layout, chain + fmt::format("%r0 = stablehlo.add %v{}, %z : tensor<8xf32>", steps));
}

// Not ready before the next launch, however slow this thread is.
ProgramRef start_slow(int n, bool alias = false) { return start_adding(n, 500, alias); }

// One that the plugin refuses.
ProgramRef start_broken(int n) {
  return start({.arrays = {kVector}, .aliases = {{0, 0}}, .results = {kVector}},
               fmt::format("%r0 = stablehlo.no_such_operation{} %0 : tensor<8xf32>", n));
}

TEST(Postponed, ResultsArePromisedAndKept) {
  const ArrayRef a = filled(1);
  const auto first = launch(start_slow(1), {a});
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_TRUE(first.value()[0]->promised());
  EXPECT_EQ(first.value()[0]->type(), kVector);
  const auto second = launch(add_program(kVector), {first.value()[0], a});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(contents(second.value()[0]), Floats(8, 3));
  EXPECT_EQ(contents(first.value()[0]), Floats(8, 2));
  EXPECT_FALSE(first.value()[0]->promised());
}

TEST(Postponed, LaterLaunchesKeepTheirTurn) {
  const ProgramRef ready = add_program(kVector, false, true);
  const auto first = launch(start_slow(2), {filled(1)});
  // Ready, but its argument is not.
  const auto second = launch(ready, {first.value()[0], filled(1)});
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second.value()[0]->promised());
  EXPECT_FALSE(test_device().idle());
  test_device().settle();
  EXPECT_FALSE(second.value()[0]->promised());
  EXPECT_EQ(contents(second.value()[0]), Floats(8, 4));
}

TEST(Postponed, ArgumentsAreHeldAndDonated) {
  const size_t live = test_device().memory().live_bytes;
  ArrayRef a = filled(1);
  auto results = launch(start_slow(3, true), {a}, {.donated = {0}});
  ASSERT_TRUE(results.ok());
  a = ArrayRef();
  EXPECT_EQ(test_device().memory().live_bytes, live + kVector.bytes());
  EXPECT_EQ(contents(results.value()[0]), Floats(8, 4));
}

TEST(Postponed, FailureKeepsWhatWasToBeOverwritten) {
  const ArrayRef a = filled(5);
  (void)launch(start_slow(4), {filled(1)});
  const auto results = launch(start_broken(1), {a}, {.donated = {0}});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(contents(results.value()[0]), Floats(8, 5));
  const Status status = test_device().synchronize();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(status.message().starts_with("compiling aten::test")) << status.message();
  EXPECT_TRUE(test_device().synchronize().ok()) << "reported once";
}

TEST(Postponed, FailureReachesWhoeverUsesTheResult) {
  const ProgramRef broken = start({.arrays = {kVector}, .results = {kVector}},
                                  "%r0 = stablehlo.no_such_operation %0 : tensor<8xf32>");
  (void)launch(start_slow(5), {filled(1)});
  const auto first = launch(broken, {filled(1)});
  const auto second = launch(add_program(kVector), {first.value()[0], filled(1)});
  ASSERT_TRUE(second.ok());
  float host[8];
  const Status status = test_device().download(*second.value()[0], host);
  EXPECT_NE(status.message().find("compiling aten::test"), std::string::npos) << status.message();
  EXPECT_FALSE(test_device().synchronize().ok());
  EXPECT_FALSE(launch(broken, {filled(1)}).ok()) << "known by now, so at once";
}

TEST(Postponed, ManyWaitForTheirPrograms) {
  ArrayRef value = filled(0);
  for (int i = 0; i < 40; ++i) value = launch(start_adding(100 + i % 20, 60), {value}).value()[0];
  float sum = 0;
  for (int i = 0; i < 40; ++i) sum += static_cast<float>(100 + i % 20);
  EXPECT_EQ(contents(value), Floats(8, sum));
}

}  // namespace
}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/compiler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/exec/option_sets.h"
#include "core/exec/test_runtime.h"

namespace tpu::exec {
namespace {

class CompilerTest : public testing::Test {
 protected:
  Compiler::Request request(OptionSet options = OptionSet::kFast) const {
    return {.op = "aten::neg",
            .module = module_,
            .layout = layout_,
            .options = options,
            .reason = CompileReason::kNewShape,
            .detail = "f32[8]"};
  }
  static float run(const ProgramRef& program) {
    return contents(launch(program, {filled(3)}).value()[0])[0];
  }

  pjrt::Client& client_ = test_runtime().client();
  const std::string directory_ = new_directory();
  const ProgramLayout layout_{.arrays = {kVector}, .results = {kVector}};
  const ir::Graph::Module module_ =
      make_module(layout_, "%r0 = stablehlo.negate %0 : tensor<8xf32>");
};

TEST_F(CompilerTest, CompilesOnceAndRemembersWhy) {
  cache::Store none("");
  Compiler compiler(client_, none);
  const ProgramRef program = compiler.compile(request()).value();
  EXPECT_EQ(run(program), -3);
  EXPECT_EQ(compiler.compile(request()).value(), program);
  EXPECT_EQ(compiler.find(program->identity, layout_), program);
  EXPECT_EQ(compiler.stats().compiles, 1U);
  EXPECT_EQ(compiler.stats().memory_hits, 2U);
  EXPECT_GT(compiler.stats().compile_seconds, 0);
  ASSERT_EQ(compiler.events().size(), 1U);
  EXPECT_EQ(compiler.events()[0].op, "aten::neg");
  EXPECT_EQ(compiler.events()[0].detail, "f32[8]");
  EXPECT_EQ(compiler.events()[0].reason, CompileReason::kNewShape);
  compiler.clear_memory();
  EXPECT_EQ(compiler.find(program->identity, layout_), nullptr);
  EXPECT_EQ(run(program), -3) << "programs in use stay alive";
}

TEST_F(CompilerTest, SecondCompilerCompilesNothing) {
  cache::Store store(directory_);
  Compiler first(client_, store);
  const Hash128 identity = first.compile(request()).value()->identity;
  EXPECT_EQ(first.stats().compiles, 1U) << "and is stored by then";

  cache::Store reopened(directory_);
  Compiler second(client_, reopened);
  EXPECT_EQ(run(second.compile(request()).value()), -3);
  Compiler third(client_, reopened);
  const ProgramRef found = third.find(identity, layout_);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(run(found), -3);
  for (const Compiler* c : {&second, &third}) {
    EXPECT_EQ(c->stats().compiles, 0U);
    EXPECT_EQ(c->stats().disk_hits, 1U);
    EXPECT_GT(c->stats().load_seconds, 0);
    EXPECT_GT(c->stats().disk_bytes, 0U);
  }
}

TEST_F(CompilerTest, DamagedProgramIsCompiledAgain) {
  {
    cache::Store store(directory_);
    Compiler compiler(client_, store);
    ASSERT_TRUE(compiler.compile(request()).ok());
  }
  for (const auto& file : std::filesystem::directory_iterator(directory_)) {
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(500);
    stream.put('\x5a');
  }
  cache::Store store(directory_);
  Compiler compiler(client_, store);
  EXPECT_EQ(run(compiler.compile(request()).value()), -3);
  EXPECT_EQ(compiler.stats().compiles, 1U);
  EXPECT_EQ(compiler.stats().disk_errors, 1U);
}

TEST_F(CompilerTest, WholeEntryThatIsNoProgramIsCompiledAgain) {
  cache::Store store(directory_);
  Compiler compiler(client_, store);
  const Hash128 identity = compiler.compile(request()).value()->identity;
  compiler.clear_memory();
  const ProgramLayout other{.arrays = {kVector}, .results = {kVector, kVector}};
  EXPECT_EQ(compiler.find(identity, other), nullptr) << "two results are not in it";
  EXPECT_EQ(compiler.stats().disk_errors, 1U);
}

TEST_F(CompilerTest, OptionSetsAreDifferentPrograms) {
  cache::Store none("");
  Compiler compiler(client_, none);
  for (const OptionSet set : {OptionSet::kFast, OptionSet::kReduction}) {
    EXPECT_EQ(run(compiler.compile(request(set)).value()), -3);
  }
  EXPECT_EQ(compiler.stats().compiles, test_runtime().is_cpu() ? 2U : 1U);
}

TEST_F(CompilerTest, CheckTextsBelongToTheProgram) {
  cache::Store none("");
  Compiler compiler(client_, none);
  Hash128 identity[2];
  for (int i = 0; i < 2; ++i) {
    const ProgramLayout layout{.arrays = {kVector},
                               .results = {kVector},
                               .checks = {{ir::CheckKind::kIndex, i ? "one" : "other"}}};
    const ir::Graph::Module module =
        make_module(layout,
                    "%r0 = stablehlo.negate %0 : tensor<8xf32>\n"
                    "%checks = stablehlo.constant dense<0> : tensor<2xi64>");
    identity[i] =
        compiler.compile({.op = "x", .module = module, .layout = layout}).value()->identity;
  }
  EXPECT_NE(identity[0], identity[1]);
}

TEST_F(CompilerTest, FailureNamesTheOpAndIsNotKept) {
  cache::Store store(directory_);
  Compiler compiler(client_, store);
  const ir::Graph::Module bad = make_module(layout_, "%r0 = stablehlo.nonsense %0");
  for (int i = 0; i < 2; ++i) {
    const auto failed = compiler.compile({.op = "aten::bad", .module = bad, .layout = layout_});
    EXPECT_EQ(failed.status().message().substr(0, 20), "compiling aten::bad:");
  }
  EXPECT_EQ(compiler.stats().compiles, 0U);
}

TEST_F(CompilerTest, LayoutMustDescribeTheModule) {
  cache::Store none("");
  Compiler compiler(client_, none);
  const ProgramLayout other{.arrays = {kVector, kVector}, .results = {kVector}};
  EXPECT_THROW((void)compiler.compile({.op = "x", .module = module_, .layout = other}), Error);
}

TEST_F(CompilerTest, ConcurrentRequestsCompileOnce) {
  cache::Store none("");
  Compiler compiler(client_, none);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] { failures += !compiler.compile(request()).ok(); });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(compiler.stats().compiles, 1U);
}

TEST_F(CompilerTest, RecordsSurviveTheProcess) {
  const Hash128 key = hash_bytes("key");
  cache::Store store(directory_);
  {
    Compiler compiler(client_, store);
    EXPECT_EQ(compiler.find_record(key), std::nullopt);
    compiler.store_record(key, "plan");
    EXPECT_EQ(compiler.find_record(key), "plan");
  }
  Compiler compiler(client_, store);
  EXPECT_EQ(compiler.find_record(key), "plan");
  cache::Store none("");
  Compiler memory_only(client_, none);
  memory_only.store_record(key, "plan");
  EXPECT_EQ(memory_only.find_record(key), "plan");
}

TEST_F(CompilerTest, TemporaryMemoryIsKnownAfterLoading) {
  const ir::Type matrix{ir::DType::kF32, {256, 256}};
  const ProgramLayout layout{.arrays = {matrix}, .results = {{ir::DType::kF32, {}}}};
  const ir::Graph::Module module = make_module(
      layout,
      "%p = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : "
      "(tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%r0 = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0, 1] : "
      "(tensor<256x256xf32>, tensor<f32>) -> tensor<f32>");
  cache::Store store(directory_);
  size_t temp_bytes[2];
  for (size_t& bytes : temp_bytes) {
    Compiler compiler(client_, store);
    bytes = compiler.compile({.op = "x", .module = module, .layout = layout}).value()->temp_bytes;
  }
  EXPECT_GE(temp_bytes[0], matrix.bytes());
  EXPECT_EQ(temp_bytes[0], temp_bytes[1]);
}

TEST(OptionSets, FollowTheEnvironment) {
  const auto fast = compile_options(OptionSet::kFast, true, "");
  EXPECT_EQ(fast.overrides.size(), 6U);
  EXPECT_EQ(compile_options(OptionSet::kFused, true, "").overrides.size(), 3U);
  EXPECT_TRUE(compile_options(OptionSet::kFast, false, "").overrides.empty());
  EXPECT_TRUE(compile_options(OptionSet::kFast, true, "sdy.mesh").shardy);
  setenv("TORCH_TPU_STRICT_ROUNDING", "1", 1);
  EXPECT_EQ(compile_options(OptionSet::kFast, true, "").serialize(),
            compile_options(OptionSet::kFused, true, "").serialize());
  unsetenv("TORCH_TPU_STRICT_ROUNDING");
}

}  // namespace
}  // namespace tpu::exec

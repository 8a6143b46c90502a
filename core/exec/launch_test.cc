// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/exec/test_runtime.h"

namespace tpu::exec {
namespace {

using Floats = std::vector<float>;

TEST(Launch, RunsAndReturnsArrays) {
  const auto results = launch(add_program(kVector), {filled(1), filled(2)});
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(contents(results.value()[0]), Floats(8, 3));
  EXPECT_EQ(results.value()[0]->type(), kVector);
  EXPECT_TRUE(results.value()[0]->unique());
}

TEST(Launch, RunsOnEveryDeviceFromOneProgram) {
  const ProgramRef add = add_program(kVector);
  const auto results = launch(add, {filled(1, kVector, 1), filled(2, kVector, 1)}, {.device = 1});
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(results.value()[0]->device().index(), 1);
  EXPECT_EQ(contents(results.value()[0]), Floats(8, 3));
}

TEST(Launch, PassesWords) {
  const ProgramRef program = make_program({.words = 3, .results = {{ir::DType::kS32, {3}}}},
                                          "%r0 = stablehlo.add %words, %words : tensor<3xi32>");
  for (int i = 0; i < 600; ++i) {
    const auto results = launch(program, {}, {.words = {i % 300, -7, 1 << 30}});
    ASSERT_TRUE(results.ok());
    EXPECT_EQ(contents<int32_t>(results.value()[0]),
              (std::vector<int32_t>{2 * (i % 300), -14, INT32_MIN}));
  }
}

TEST(Launch, PassesManyWords) {
  const ProgramRef program = make_program({.words = 40, .results = {{ir::DType::kS32, {40}}}},
                                          "%r0 = stablehlo.add %words, %words : tensor<40xi32>");
  std::vector<int32_t> words(40, 3);
  EXPECT_EQ(contents<int32_t>(launch(program, {}, {.words = words}).value()[0]),
            std::vector<int32_t>(40, 6));
}

TEST(Launch, TakesMoreValuesThanItKeepsInline) {
  constexpr int kCount = 40;
  ProgramLayout layout;
  std::string body;
  std::vector<ArrayRef> arrays;
  for (int i = 0; i < kCount; ++i) {
    layout.arrays.push_back(kVector);
    layout.results.push_back(kVector);
    layout.aliases.push_back({i, i});
    body += fmt::format("%r{0} = stablehlo.negate %{0} : tensor<8xf32>\n", i);
    arrays.push_back(filled(static_cast<float>(i)));
  }
  const ProgramRef program = make_program(layout, body);
  std::vector<int> donated;
  for (int i = 0; i < kCount; i += 2) donated.push_back(i);
  const auto results = launch(program, arrays, {.donated = donated});
  ASSERT_TRUE(results.ok()) << results.status().message();
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(contents(results.value()[static_cast<size_t>(i)])[0], static_cast<float>(-i));
    EXPECT_EQ(!arrays[static_cast<size_t>(i)]->buffer(), i % 2 == 0);
  }
}

TEST(Launch, RefusesAnotherElementTypeOfTheSameSize) {
  const std::vector<int32_t> host(8, 1);
  const ArrayRef integers =
      value_or_throw(test_device().upload(host.data(), {ir::DType::kS32, {8}}));
  const auto refused = launch(add_program(kVector), {integers, filled(1)});
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.status().message(), "aten::test: expected argument 0 to be f32[8], got i32[8]");
}

TEST(Launch, RefusesOtherDimensionsOfTheSameSize) {
  const auto refused =
      launch(add_program(kVector), {filled(1), filled(1, {ir::DType::kF32, {2, 4}})});
  EXPECT_EQ(refused.status().message(),
            "aten::test: expected argument 1 to be f32[8], got f32[2,4]");
}

TEST(Launch, RefusesAnotherDevicesArray) {
  const auto refused = launch(add_program(kVector), {filled(1), filled(1, kVector, 1)});
  EXPECT_EQ(refused.status().message(),
            "aten::test: expected argument 1 on device 0, got device 1");
}

TEST(Launch, RefusesAWrongNumberOfValues) {
  const auto refused = launch(add_program(kVector), {filled(1)});
  EXPECT_EQ(refused.status().message(),
            "aten::test: the program takes 2 arrays and 0 words and gives 1 results, the launch "
            "has 1, 0 and 1");
}

TEST(Donation, EmptiesTheArrayAndReusesItsMemory) {
  const ProgramRef program = add_program(kVector, false, true);
  const ArrayRef a = filled(1);
  const ArrayRef b = filled(2);
  const size_t live = test_device().memory().live_bytes;
  const auto results = launch(program, {a, b}, {.donated = {0}});
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(contents(results.value()[0]), Floats(8, 3));
  EXPECT_FALSE(a->buffer());
  EXPECT_EQ(test_device().memory().live_bytes, live);

  const auto again = launch(program, {a, b});
  EXPECT_EQ(again.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(again.status().message(),
            "aten::test: argument 0: the value of f32[8] was donated to a launch");
  float host[8];
  EXPECT_EQ(test_device().download(*a, host).code(), Code::kFailedPrecondition);
  EXPECT_EQ(test_device().copy_from(*a).status().code(), Code::kFailedPrecondition);
}

TEST(Donation, IsDecidedByTheLaunch) {
  const ProgramRef program = add_program(kVector, false, true);
  const ArrayRef a = filled(1);
  EXPECT_EQ(contents(launch(program, {a, a}).value()[0]), Floats(8, 2));
  EXPECT_EQ(contents(a), Floats(8, 1));
}

TEST(Donation, RefusesWhatTheProgramCannotReuse) {
  const ArrayRef a = filled(1);
  for (const std::vector<int>& donated : {std::vector{1}, {2}, {-1}, {0, 0}}) {
    const auto refused = launch(add_program(kVector, false, true), {a, a}, {.donated = donated});
    EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(contents(a), Floats(8, 1));
}

TEST(Donation, FailureConsumesNothing) {
  const ArrayRef a = filled(1);
  const ProgramRef program = add_program(kVector, false, true);
  // The plugin refuses to read and overwrite one buffer.
  EXPECT_FALSE(launch(program, {a, a}, {.donated = {0}}).ok());
  EXPECT_EQ(contents(a), Floats(8, 1));
  EXPECT_EQ(contents(launch(program, {a, filled(1)}, {.donated = {0}}).value()[0]), Floats(8, 2));
}

class HostMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!test_runtime().is_cpu()) GTEST_SKIP() << "device memory is not host memory";
    drop_blocks();
  }

  // Blocks come back on the plugin's threads, a little after their last user has gone: those of
  // earlier tests are waited for and dropped.
  static void drop_blocks() {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      test_device().empty_cache();
    }
  }
  // Waits until so many bytes are free for use again.
  static bool free_blocks(size_t bytes) {
    for (int i = 0; i < 1000; ++i) {
      const MemoryStats memory = test_device().memory();
      if (memory.reserved_bytes - memory.live_bytes == bytes) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
};

TEST_F(HostMemory, DestinationBlockIsUsedAgain) {
  const ProgramRef add = add_program(kLarge, true);
  const ArrayRef a = filled(1, kLarge);
  const ArrayRef b = filled(2, kLarge);
  auto results = launch(add, {a, b});
  ASSERT_TRUE(results.ok()) << results.status().message();
  const void* first = address(results.value()[0]);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % (2 << 20), 0U) << "a block of huge pages";
  EXPECT_EQ(contents(results.value()[0])[12345], 3);
  EXPECT_TRUE(free_blocks(0));
  results.value().clear();
  EXPECT_TRUE(free_blocks(kLarge.bytes()));
  const auto second = launch(add, {a, b});
  EXPECT_EQ(address(second.value()[0]), first);
  EXPECT_EQ(contents(second.value()[0])[12345], 3);
}

TEST_F(HostMemory, LargeUploadMayBeDonatedInPlace) {
  const ProgramRef add = add_program(kLarge, false, true);
  ArrayRef a = filled(1, kLarge);
  const ArrayRef b = filled(2, kLarge);
  const void* memory = address(a);
  auto results = launch(add, {a, b}, {.donated = {0}});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(address(results.value()[0]), memory);
  EXPECT_EQ(contents(results.value()[0])[7], 3);
  a = ArrayRef();
  EXPECT_TRUE(free_blocks(0)) << "the block is still in use";
  results.value().clear();
  EXPECT_TRUE(free_blocks(kLarge.bytes()));
  test_device().empty_cache();
  EXPECT_TRUE(free_blocks(0));
}

TEST_F(HostMemory, BlockOutlivesItsArrayUnderARunningReader) {
  const ir::Type matrix{ir::DType::kF32, {1024, 1024}};
  const ProgramRef multiply =
      make_program({.arrays = {matrix, matrix}, .results = {matrix}},
                   "%r0 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : "
                   "(tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>");
  for (int i = 0; i < 5; ++i) {
    std::vector<ArrayRef> inputs = {filled(1, matrix), filled(2, matrix)};
    const auto results = launch(multiply, inputs);
    ASSERT_TRUE(results.ok()) << results.status().message();
    inputs.clear();
    const ArrayRef other = filled(77, matrix);  // must not land under the running product
    EXPECT_EQ(contents(results.value()[0]), Floats(1 << 20, 2048));
  }
  EXPECT_TRUE(test_device().synchronize().ok());
  EXPECT_TRUE(test_device().idle());
}

TEST(Queue, MarksAndSynchronizes) {
  const ir::Type matrix{ir::DType::kF32, {512, 512}};
  const ProgramRef multiply =
      make_program({.arrays = {matrix, matrix}, .results = {matrix}},
                   "%r0 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : "
                   "(tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>");
  ArrayRef value = filled(0, matrix);
  const ArrayRef factor = filled(1, matrix);
  const auto before = test_device().mark();
  for (int i = 0; i < 20; ++i) value = launch(multiply, {value, factor}).value()[0];
  const auto after = test_device().mark();
  ASSERT_TRUE(before->await().ok());
  EXPECT_TRUE(before->is_ready());
  ASSERT_TRUE(after->await().ok());
  EXPECT_TRUE(after->is_ready());
  EXPECT_TRUE(value->buffer().ready_event()->is_ready());
  EXPECT_TRUE(test_device().synchronize().ok());
  EXPECT_TRUE(test_device().idle());
}

TEST(Queue, ThreadsLaunchTogether) {
  const ProgramRef program = make_program(
      {.arrays = {kVector}, .words = 1, .results = {kVector}},
      "%s = stablehlo.reshape %words : (tensor<1xi32>) -> tensor<i32>\n"
      "%f = stablehlo.convert %s : (tensor<i32>) -> tensor<f32>\n"
      "%b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8xf32>\n"
      "%r0 = stablehlo.add %0, %b : tensor<8xf32>");
  const ArrayRef a = filled(1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const int word = t * 2000 + i;
        const auto results = launch(program, {a}, {.words = {word}});
        wrong += !results.ok() || contents(results.value()[0])[3] != static_cast<float>(word + 1);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Transfers, RoundTripOfEverySize) {
  for (const int64_t n : {0, 1, 7, 1 << 18, (1 << 18) + 1, 1 << 20}) {
    const ir::Type type{ir::DType::kF32, {n}};
    Floats host(static_cast<size_t>(n));
    for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
    const ArrayRef array = value_or_throw(test_device().upload(host.data(), type));
    const Floats original = host;
    host.assign(host.size(), -1);
    EXPECT_EQ(contents(array), original) << "later writes to the source are not seen";
    EXPECT_EQ(contents(value_or_throw(test_device(1).copy_from(*array))), original);
    const ArrayRef copy = value_or_throw(test_device().copy_from(*array));
    EXPECT_EQ(contents(copy), original);
    if (n > 0) {
      EXPECT_NE(address(copy), address(array));
    }
  }
}

TEST(Transfers, EveryElementType) {
  for (int d = 0; d < ir::kDTypeCount; ++d) {
    const ir::Type type{static_cast<ir::DType>(d), {2, 3}};
    std::vector<uint8_t> host(type.bytes());
    for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<uint8_t>(i % 2);
    const auto array = test_device().upload(host.data(), type);
    ASSERT_TRUE(array.ok()) << type.str() << ": " << array.status().message();
    std::vector<uint8_t> read(type.bytes());
    ASSERT_TRUE(test_device().download(*array.value(), read.data()).ok());
    EXPECT_EQ(read, host) << type.str();
    EXPECT_EQ(array.value()->buffer().device_bytes().value(), type.bytes());
  }
}

}  // namespace
}  // namespace tpu::exec

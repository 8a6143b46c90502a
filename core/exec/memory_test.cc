// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/exec/block_pool.h"
#include "core/exec/test_runtime.h"

namespace tpu::exec {
namespace {

TEST(Accounting, FollowsArrays) {
  Device& device = test_device(1);
  const MemoryStats before = device.memory();
  device.reset_peak_memory();
  {
    const ArrayRef a = filled(1, kVector, 1);
    const ArrayRef same = a;
    const ArrayRef b = filled(1, kLarge, 1);
    EXPECT_EQ(device.memory().live_bytes, before.live_bytes + kVector.bytes() + kLarge.bytes());
    EXPECT_EQ(device.memory().live_arrays, before.live_arrays + 2);
    EXPECT_EQ(device.memory().allocations, before.allocations + 2);
  }
  const MemoryStats after = device.memory();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.live_arrays, before.live_arrays);
  EXPECT_EQ(after.peak_bytes, before.live_bytes + kVector.bytes() + kLarge.bytes());
  EXPECT_GE(after.peak_reserved_bytes, after.peak_bytes);
  EXPECT_EQ(after.total_allocated_bytes - before.total_allocated_bytes,
            after.total_freed_bytes - before.total_freed_bytes);
  device.reset_peak_memory();
  EXPECT_EQ(device.memory().peak_bytes, before.live_bytes);
  device.reset_accumulated_memory();
  EXPECT_EQ(device.memory().total_allocated_bytes, 0U);
}

class Limited : public testing::Test {
 protected:
  void SetUp() override {
    old_limit_ = test_device().memory().limit_bytes;
    test_device().empty_cache();
    test_device().set_memory_limit(test_device().memory().live_bytes + 3 * kLarge.bytes());
  }
  void TearDown() override { test_device().set_memory_limit(old_limit_); }
  size_t old_limit_;
};

TEST_F(Limited, LaunchBeyondTheLimitFailsAndTheDeviceStaysUsable) {
  const ProgramRef add = add_program(kLarge, test_runtime().is_cpu());
  const ArrayRef a = filled(1, kLarge);
  const ArrayRef b = filled(2, kLarge);
  {
    const auto c = launch(add, {a, b});
    ASSERT_TRUE(c.ok());
    const auto refused = launch(add, {a, b});
    EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
    EXPECT_EQ(refused.status().message(),
              "TPU out of memory. Tried to allocate 4.00 MiB. TPU 0 has a total capacity of 12.00 "
              "MiB of which 0 bytes is free. 12.00 MiB is allocated by 3 arrays, most of it by 3 x "
              "f32[1048576] (12.00 MiB).");
    EXPECT_THROW(throw_if_error(refused.status()), Error);
  }
  EXPECT_EQ(contents(launch(add, {a, b}).value()[0])[0], 3);
  EXPECT_GE(test_device().memory().out_of_memory, 1U);
}

TEST_F(Limited, UploadAndCopyBeyondTheLimitFail) {
  const std::vector<ArrayRef> full = {filled(1, kLarge), filled(1, kLarge), filled(1, kLarge)};
  const std::vector<float> host(1 << 20);
  EXPECT_EQ(test_device().upload(host.data(), kLarge).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(test_device().copy_from(*full[0]).status().code(), Code::kResourceExhausted);
}

TEST_F(Limited, DonationNeedsNoRoom) {
  const ProgramRef add = add_program(kLarge, false, true);
  const std::vector<ArrayRef> full = {filled(1, kLarge), filled(2, kLarge), filled(3, kLarge)};
  EXPECT_EQ(launch(add, {full[0], full[1]}).status().code(), Code::kResourceExhausted);
  const auto sum = launch(add, {full[0], full[1]}, {.donated = {0}});
  ASSERT_TRUE(sum.ok()) << sum.status().message();
  EXPECT_EQ(contents(sum.value()[0])[0], 3);
}

TEST_F(Limited, FreeBlocksGiveWay) {
  {
    const std::vector<ArrayRef> gone = {filled(1, kLarge), filled(2, kLarge)};
  }
  const ir::Type larger{ir::DType::kF32, {5 << 19}};  // 10 MB, no block fits
  EXPECT_EQ(contents(filled(5, larger))[1], 5);
}

TEST(BlockPool, RoundsUpAndFindsFits) {
  BlockPool pool;
  const BlockPool::Block odd = pool.take((1 << 20) + 1).value();
  EXPECT_EQ(odd.bytes, (1U << 20) + (1U << 17));
  EXPECT_EQ(pool.taken_blocks(), 1U);
  pool.give(odd);
  EXPECT_EQ(pool.free_bytes(), odd.bytes);
  EXPECT_EQ(pool.take(1 << 20).value().data, odd.data) << "the next larger one will do";
  EXPECT_EQ(pool.free_bytes(), 0U);
  pool.give(odd);
  const BlockPool::Block large = pool.take(64 << 20).value();
  EXPECT_NE(large.data, odd.data);
  pool.give(large);
  EXPECT_NE(pool.take(1 << 20).value().data, large.data) << "much too large a block is kept";
  EXPECT_EQ(pool.trim(), large.bytes);
}

TEST(BlockPool, NoMemoryIsAStatus) {
  BlockPool pool;
  EXPECT_EQ(pool.take(size_t{1} << 60).status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace tpu::exec

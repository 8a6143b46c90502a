// SPDX-License-Identifier: Apache-2.0
#include "core/cache/lru.h"

#include <gtest/gtest.h>

#include <string>

namespace tpu::cache {
namespace {

TEST(Lru, ForgetsTheLeastRecentlyUsed) {
  Lru<int, std::string> lru(10);
  lru.put(1, "one", 4);
  lru.put(2, "two", 4);
  ASSERT_NE(lru.find(1), nullptr);
  lru.put(3, "three", 4);
  EXPECT_EQ(lru.find(2), nullptr);
  EXPECT_EQ(*lru.find(1), "one");
  EXPECT_EQ(*lru.find(3), "three");
  EXPECT_EQ(lru.bytes(), 8U);
}

TEST(Lru, ReplacesAndCountsAnew) {
  Lru<int, std::string> lru(10);
  lru.put(1, "one", 4);
  lru.put(1, "uno", 6);
  EXPECT_EQ(*lru.find(1), "uno");
  EXPECT_EQ(lru.bytes(), 6U);
  EXPECT_EQ(lru.size(), 1U);
}

TEST(Lru, KeepsTheNewestThoughTooLarge) {
  Lru<int, std::string> lru(10);
  lru.put(1, "one", 4);
  lru.put(2, "two", 40);
  EXPECT_EQ(lru.find(1), nullptr);
  EXPECT_EQ(*lru.find(2), "two");
  lru.clear();
  EXPECT_EQ(lru.find(2), nullptr);
  EXPECT_EQ(lru.bytes(), 0U);
}

}  // namespace
}  // namespace tpu::cache

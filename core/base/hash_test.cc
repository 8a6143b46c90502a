// SPDX-License-Identifier: Apache-2.0
#include "core/base/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace tpu {
namespace {

Hash128 hash_words(int count, uint64_t last) {
  Hasher h;
  for (int i = 0; i + 1 < count; ++i) h.add(static_cast<uint64_t>(i));
  h.add(last);
  return h.finish();
}

TEST(HashTest, StableAcrossProcesses) {
  // The published XXH3-128 digest of nothing; file names depend on it.
  EXPECT_EQ(hash_bytes("").hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(HashTest, HexIsThirtyTwoLowerCaseDigits) {
  EXPECT_EQ((Hash128{0xAB, 0x1}).hex(), "000000000000000100000000000000ab");
}

TEST(HasherTest, WordsHashLikeTheirBytes) {
  const uint64_t words[] = {1, 2, 3};
  Hasher h;
  for (const uint64_t w : words) h.add(w);
  EXPECT_EQ(h.finish(), hash_bytes(words, sizeof(words)));
}

TEST(HasherTest, EveryWordCountsAlsoBeyondTheInlineOnes) {
  for (const int count : {1, 119, 120, 121, 500}) {
    EXPECT_NE(hash_words(count, 7), hash_words(count, 8)) << count;
    EXPECT_EQ(hash_words(count, 7), hash_words(count, 7)) << count;
  }
}

TEST(HasherTest, TextsKeepTheirBoundaries) {
  const auto hash_of = [](std::string_view a, std::string_view b) {
    Hasher h;
    h.add(a);
    h.add(b);
    return h.finish().hex();
  };
  const std::set<std::string> all = {hash_of("ab", "c"), hash_of("a", "bc"),
                                     hash_of("", "abc"), hash_of("abc", ""),
                                     hash_of("a", ""),   hash_of("12345678", "9")};
  EXPECT_EQ(all.size(), 6u);
}

TEST(HasherTest, FinishLeavesTheHasherAsItIs) {
  Hasher h;
  h.add(std::string_view("x"));
  EXPECT_EQ(h.finish(), h.finish());
}

}  // namespace
}  // namespace tpu

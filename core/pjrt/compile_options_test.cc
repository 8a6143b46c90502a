// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/compile_options.h"

#include <gtest/gtest.h>

namespace tpu::pjrt {
namespace {

using namespace std::string_literals;

TEST(CompileOptions, WritesOneReplicaPortable) {
  EXPECT_EQ(CompileOptions{}.serialize(), "\x1a\x04\x20\x01\x28\x01\x20\x01"s);
}

TEST(CompileOptions, WritesShardy) {
  EXPECT_EQ((CompileOptions{.portable = false, .shardy = true}).serialize(),
            "\x1a\x07\x20\x01\x28\x01\x98\x01\x01"s);
}

TEST(CompileOptions, WritesEveryKindOfOverride) {
  CompileOptions options;
  options.portable = false;
  options.overrides = {{"b", false}, {"i", int64_t{300}}, {"d", 1.0}, {"s", "AVX"s}};
  EXPECT_EQ(options.serialize(),
            "\x1a\x04\x20\x01\x28\x01"
            "\x3a\x07\x0a\x01"
            "b\x12\x02\x10\x00"
            "\x3a\x08\x0a\x01"
            "i\x12\x03\x18\xac\x02"
            "\x3a\x0e\x0a\x01"
            "d\x12\x09\x21\x00\x00\x00\x00\x00\x00\xf0\x3f"
            "\x3a\x0a\x0a\x01"
            "s\x12\x05\x0a\x03"
            "AVX"s);
}

}  // namespace
}  // namespace tpu::pjrt

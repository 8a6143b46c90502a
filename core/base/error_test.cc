// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"

#include <gtest/gtest.h>

namespace tpu {
namespace {

using ::testing::IsSubstring;

TEST(ErrorTest, FailCarriesKindAndText) {
  try {
    fail(ErrorKind::kIndex, "index {} is out of bounds", 7);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIndex);
    EXPECT_STREQ(e.what(), "index 7 is out of bounds");
    return;
  }
  FAIL() << "fail() returned";
}

TEST(ErrorTest, RequireThrowsOnlyWhenFalse) {
  EXPECT_NO_THROW(require(true, "never {}", 1));
  EXPECT_THROW(require(false, "always {}", 1), Error);
}

TEST(ErrorTest, CheckNamesTheAssumption) {
  EXPECT_NO_THROW(TPU_CHECK(1 + 1 == 2, "arithmetic"));
  try {
    TPU_CHECK(1 + 1 == 3, "arithmetic holds");
    FAIL() << "TPU_CHECK returned";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_PRED_FORMAT2(IsSubstring, "arithmetic holds (1 + 1 == 3)", e.what());
    EXPECT_PRED_FORMAT2(IsSubstring, "error_test.cc", e.what());
    EXPECT_PRED_FORMAT2(IsSubstring, "Please report this.", e.what());
  }
}

}  // namespace
}  // namespace tpu

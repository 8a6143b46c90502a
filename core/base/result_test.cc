// SPDX-License-Identifier: Apache-2.0
#include "core/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace tpu {
namespace {

Status failing() { return {Code::kNotFound, "no file"}; }

Status passes_on(bool fails) {
  TPU_RETURN_IF_ERROR(fails ? failing() : Status());
  return {Code::kInternal, "reached the end"};
}

ErrorKind thrown_kind(Code code) {
  try {
    throw_status({code, "text"});
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "text");
    return e.kind();
  }
}

TEST(StatusTest, ContextComesFirstAndOnlyOnFailure) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(Status().with_context("loading").ok());
  const Status s = failing().with_context("loading");
  EXPECT_EQ(s.code(), Code::kNotFound);
  EXPECT_EQ(s.message(), "loading: no file");
}

TEST(StatusTest, ReturnIfError) {
  EXPECT_EQ(passes_on(true).message(), "no file");
  EXPECT_EQ(passes_on(false).message(), "reached the end");
}

TEST(StatusTest, KindsOfExceptions) {
  EXPECT_EQ(thrown_kind(Code::kResourceExhausted), ErrorKind::kOutOfMemory);
  EXPECT_EQ(thrown_kind(Code::kUnimplemented), ErrorKind::kNotImplemented);
  EXPECT_EQ(thrown_kind(Code::kUnavailable), ErrorKind::kRuntime);
  EXPECT_NO_THROW(throw_if_error(Status()));
  EXPECT_THROW(throw_if_error(failing()), Error);
}

TEST(ResultTest, HoldsAValueOrAFailure) {
  const Result<int> good = 5;
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 5);
  const Result<int> bad = failing();
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "no file");
  EXPECT_THROW(value_or_throw(Result<int>(failing())), Error);
}

TEST(ResultTest, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(3);
  EXPECT_EQ(**r.operator->(), 3);
  const std::unique_ptr<int> p = value_or_throw(std::move(r));
  EXPECT_EQ(*p, 3);
}

TEST(ResultTest, AnOkStatusIsNoFailure) { EXPECT_THROW(Result<int>{Status()}, Error); }

}  // namespace
}  // namespace tpu

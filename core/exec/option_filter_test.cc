// SPDX-License-Identifier: Apache-2.0
#include "core/exec/option_filter.h"

#include <gtest/gtest.h>

#include "core/exec/test_runtime.h"

namespace tpu::exec {
namespace {

const std::string kGood =
    "module { func.func public @main(%0: tensor<f32>) -> tensor<f32> { return %0 : tensor<f32> } }";

TEST(OptionFilter, DropsOnlyWhatThePluginDoesNotKnow) {
  OptionFilter filter(test_runtime().client());
  pjrt::CompileOptions options;
  options.overrides = {{"xla_backend_optimization_level", int64_t{1}},
                       {"xla_no_such_option", true},
                       {"xla_neither_this", std::string("x")}};
  EXPECT_TRUE(filter.compile(kGood, options).ok());
  EXPECT_EQ(filter.refused(), (std::vector<std::string>{"xla_no_such_option", "xla_neither_this"}));
  EXPECT_TRUE(filter.compile(kGood, options).ok());
  EXPECT_EQ(filter.refused().size(), 2U);
}

TEST(OptionFilter, ABadProgramBlamesNoOption) {
  OptionFilter filter(test_runtime().client());
  pjrt::CompileOptions options;
  options.overrides = {{"xla_backend_optimization_level", int64_t{1}}};
  EXPECT_FALSE(filter.compile("module { nonsense }", options).ok());
  EXPECT_TRUE(filter.refused().empty());
}

}  // namespace
}  // namespace tpu::exec

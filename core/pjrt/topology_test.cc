// SPDX-License-Identifier: Apache-2.0
// Set TEST_TPU_COMPILER to a libtpu.so to try the compiler of TPUs too.
#include "core/pjrt/topology.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/pjrt/test_plugin.h"

namespace tpu::pjrt {
namespace {

constexpr const char* kAdd =
    "module { func.func public @main(%0: tensor<1024xf32>) -> tensor<1024xf32> {\n"
    "%1 = stablehlo.add %0, %0 : tensor<1024xf32>\nreturn %1 : tensor<1024xf32> } }";

TEST(Topology, UnknownOnesAreAnError) {
  const Plugin& plugin = *value_or_throw(Plugin::load(test_plugin_path()));
  const auto topology = Topology::create(plugin, "no such grid");
  EXPECT_FALSE(topology.ok());
}

TEST(Topology, CompilesForDevicesThatAreNotHere) {
  const char* compiler = std::getenv("TEST_TPU_COMPILER");
  if (compiler == nullptr) GTEST_SKIP() << "TEST_TPU_COMPILER is not set";
  const Plugin& plugin = *value_or_throw(Plugin::load(compiler));
  const auto topology = value_or_throw(Topology::create(plugin, "v6e:2x2"));
  EXPECT_EQ(topology->device_count().value(), 4U);
  const auto use = topology->compile(kAdd, {});
  ASSERT_TRUE(use.ok()) << use.status().message();
  EXPECT_GT(use->code_bytes, 0U);
  EXPECT_EQ(topology->compile("module { }", {}).status().ok(), false);
  EXPECT_EQ(topology->compile("func @main(%0: tensor<?xf32>)", {}).status().code(),
            Code::kInvalidArgument)
      << "it would abort the compiler";
}

}  // namespace
}  // namespace tpu::pjrt

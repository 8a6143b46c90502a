// SPDX-License-Identifier: Apache-2.0
// For tests: the plugin under test, TORCH_TPU_TEST_PLUGIN or the embedded CPU plugin, and its
// client. The client is shared by all tests of a program and never destroyed.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "core/pjrt/client.h"

namespace tpu::pjrt {

inline std::string test_plugin_path() {
  const char* chosen = std::getenv("TORCH_TPU_TEST_PLUGIN");
  return chosen != nullptr ? chosen : TEST_PJRT_PLUGIN;
}

inline const Plugin& test_plugin() { return *value_or_throw(Plugin::load(test_plugin_path())); }

inline Client& test_client() {
  static Client& client = [&]() -> Client& {
    auto sized = Client::create(test_plugin(), {{"cpu_device_count", 4}});
    if (!sized.ok()) sized = Client::create(test_plugin());
    return *value_or_throw(std::move(sized)).release();
  }();
  return client;
}

}  // namespace tpu::pjrt

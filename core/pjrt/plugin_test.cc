// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/plugin.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <fstream>

#include "core/pjrt/test_plugin.h"

namespace tpu::pjrt {
namespace {

TEST(Plugin, MissingFileIsNotFound) {
  const auto plugin = Plugin::load("/nonexistent/plugin.so");
  EXPECT_EQ(plugin.status().code(), Code::kNotFound);
  EXPECT_EQ(plugin.status().message(), "PJRT plugin /nonexistent/plugin.so is not a readable file");
}

TEST(Plugin, TextFileIsNoPlugin) {
  const std::string path = testing::TempDir() + "/not_a_library.so";
  std::ofstream(path) << "no library";
  const auto plugin = Plugin::load(path);
  EXPECT_EQ(plugin.status().code(), Code::kInvalidArgument);
  EXPECT_NE(plugin.status().message().find("cannot load PJRT plugin " + path), std::string::npos);
  unlink(path.c_str());
}

TEST(Plugin, LibraryWithoutEntryPointIsNoPlugin) {
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::terminate), &info), 0);
  void* some_library = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  ASSERT_NE(dladdr(some_library, &info), 0);
  const auto plugin = Plugin::load(info.dli_fname);
  EXPECT_EQ(plugin.status().code(), Code::kInvalidArgument);
  EXPECT_NE(plugin.status().message().find("no symbol GetPjrtApi"), std::string::npos);
}

TEST(Plugin, LoadsOncePerPath) {
  const auto first = Plugin::load(test_plugin_path());
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first.value(), Plugin::load(test_plugin_path()).value());
  EXPECT_EQ(first.value()->path(), test_plugin_path());
}

TEST(Plugin, TellsVersionAndAttributes) {
  EXPECT_EQ(test_plugin().version().substr(0, 2), "0.");
  const auto stablehlo = test_plugin().attribute("stablehlo_current_version");
  ASSERT_TRUE(stablehlo);
  EXPECT_EQ(std::count(stablehlo->begin(), stablehlo->end(), '.'), 2);
  EXPECT_FALSE(test_plugin().attribute("no such attribute"));
}

TEST(Api, EntryBeyondTheTableDoesNotExist) {
  PJRT_Api older = test_plugin().api().table();
  older.struct_size = offsetof(PJRT_Api, PJRT_Executable_GetCompiledMemoryStats);
  const Api api(older);
  EXPECT_TRUE(api.has<&PJRT_Api::PJRT_Client_Create>());
  EXPECT_FALSE(api.has<&PJRT_Api::PJRT_Executable_GetCompiledMemoryStats>());
  auto args = make_args<PJRT_Executable_GetCompiledMemoryStats_Args>();
  const Status status = api.call<&PJRT_Api::PJRT_Executable_GetCompiledMemoryStats>(args);
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_EQ(status.message(), "this PJRT plugin has no PJRT_Executable_GetCompiledMemoryStats");
}

TEST(Api, LongerTableIsCutToWhatWeKnow) {
  struct Longer {
    PJRT_Api known;
    void* newer[4];
  } table{test_plugin().api().table(), {}};
  table.known.struct_size = sizeof(table);
  const Api api(table.known);
  EXPECT_EQ(api.table().PJRT_Client_Create, test_plugin().api().table().PJRT_Client_Create);
}

TEST(Api, FindsExtensions) {
  PJRT_Extension_Base second{sizeof(second), PJRT_Extension_Type_FFI, nullptr};
  PJRT_Extension_Base first{sizeof(first), PJRT_Extension_Type_Layouts, &second};
  PJRT_Api table = test_plugin().api().table();
  table.extension_start = &first;
  EXPECT_EQ(Api(table).extension(PJRT_Extension_Type_FFI), &second);
  EXPECT_EQ(Api(table).extension(PJRT_Extension_Type_Triton), nullptr);
}

}  // namespace
}  // namespace tpu::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/runtime.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/exec/environment.h"
#include "core/exec/hardware.h"
#include "core/exec/test_runtime.h"

namespace tpu::exec {
namespace {

namespace fs = std::filesystem;

std::string error_of(void (*body)()) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Runs `body` in a forked child; its exit code, or -1 if it had to be killed after ten seconds.
int in_child(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Runtime, DescribesItself) {
  Runtime& runtime = test_runtime();
  EXPECT_TRUE(Runtime::started());
  EXPECT_EQ(Runtime::device_count(), 2);
  EXPECT_EQ(runtime.plugin_path(), pjrt::test_plugin_path());
  EXPECT_EQ(runtime.device(1).index(), 1);
  EXPECT_EQ(&runtime.device(0).runtime(), &runtime);
  if (runtime.is_cpu()) {
    EXPECT_EQ(runtime.platform(), "cpu");
    EXPECT_EQ(runtime.device_name(0),
              Runtime::tpu_present() ? "XLA:CPU" : "XLA:CPU (no TPU found)");
    EXPECT_LT(runtime.device(0).memory().limit_bytes, machine_memory());
  }
}

TEST(Runtime, RefusesADeviceBeyondTheCount) {
  EXPECT_EQ(error_of([] { test_runtime().device(2); }),
            "invalid device index 2: there are 2 TPU devices");
  EXPECT_EQ(error_of([] { test_runtime().device(-1); }),
            "invalid device index -1: there are 2 TPU devices");
}

TEST(Runtime, IsConfiguredBeforeItsStart) {
  test_runtime();
  EXPECT_EQ(error_of([] { Runtime::configure({}); }),
            "TPU options were set after the first use of a TPU device");
}

TEST(Fork, ChildIsToldInsteadOfHanging) {
  static const ProgramRef program = add_program(kVector);
  static ArrayRef array = filled(1);
  const int code = in_child([]() -> int {
    constexpr std::string_view kText = "Cannot re-initialize TPU in forked subprocess.";
    int told = Runtime::in_bad_fork();
    told += error_of([] { Runtime::instance(); }).starts_with(kText);
    told += launch(program, {array, array}).status().message().starts_with(kText);
    float host[8];
    told += test_device().download(*array, host).message().starts_with(kText);
    told += test_device().upload(host, kVector).status().message().starts_with(kText);
    told += test_device().synchronize().message().starts_with(kText);
    told += error_of([] { test_device().raise_failed_checks(); }).starts_with(kText);
    array = ArrayRef();  // must not call the plugin
    return told;
  });
  EXPECT_EQ(code, 7);
  EXPECT_FALSE(Runtime::in_bad_fork());
  EXPECT_EQ(contents(array), std::vector<float>(8, 1));
}

TEST(Fork, ChildOfAProcessWithABusyQueueDoesNotHang) {
  static const ProgramRef program = add_program(kVector);
  static const ArrayRef array = filled(1);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (void)launch(program, {array, array});
  });
  int codes = 0;
  for (int i = 0; i < 20; ++i) {
    codes += in_child([]() -> int { return !launch(program, {array, array}).ok(); });
  }
  stop = true;
  busy.join();
  EXPECT_EQ(codes, 20);
}

// Each of these starts its own process, because a process has one runtime.
class RuntimeDeath : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(RuntimeDeath, ExitWithLiveArraysIsClean) {
  EXPECT_EXIT(
      {
        static std::vector<ArrayRef> kept(1, filled(2, kLarge));
        kept.push_back(filled(1));
        kept.push_back(launch(add_program(kVector), std::vector(2, kept[1])).value()[0]);
        exit(7);
      },
      testing::ExitedWithCode(7), "^$");
}

TEST_F(RuntimeDeath, UseAfterShutdownIsAnError) {
  EXPECT_EXIT(
      {
        ArrayRef array = filled(1);
        Runtime::shutdown();
        Runtime::shutdown();
        float host[8];
        const Status status = array->device().download(*array, host);
        const std::string text = error_of([] { Runtime::instance(); });
        array = ArrayRef();
        exit(status.message() == text &&
                     text == "TPU was used after its runtime had been shut down" &&
                     !Runtime::in_bad_fork()
                 ? 7
                 : 1);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(RuntimeDeath, ForkBeforeTheStartIsAllowed) {
  EXPECT_EXIT(
      {
        const int code = in_child([]() -> int { return contents(filled(5))[0] == 5 ? 3 : 4; });
        exit(code == 3 && contents(filled(6))[0] == 6 ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(RuntimeDeath, MissingPluginIsAClearErrorAndCanBeTriedAgain) {
  EXPECT_EXIT(
      {
        Runtime::configure({.plugin_path = "/nonexistent.so"});
        const std::string text = error_of([] { Runtime::instance(); });
        if (text != "PJRT plugin /nonexistent.so is not a readable file") exit(1);
        exit(in_child([]() -> int { return Runtime::in_bad_fork(); }) == 0 &&
                     contents(filled(1))[0] == 1
                 ? 7
                 : 2);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(RuntimeDeath, NoPluginAtAllSaysWhatToDo) {
  EXPECT_EXIT(
      {
        Runtime::configure({});
        fmt::print(stderr, "{}", error_of([] { Runtime::instance(); }));
        exit(7);
      },
      testing::ExitedWithCode(7), "install xla-cpu-pjrt or set TORCH_TPU_PJRT_PLUGIN");
}

TEST_F(RuntimeDeath, EnvironmentChoosesPluginAndCount) {
  EXPECT_EXIT(
      {
        setenv("TORCH_TPU_DEVICES", "3", 1);
        setenv("TORCH_TPU_PJRT_PLUGIN", TEST_PJRT_PLUGIN, 1);
        Runtime::configure({.cpu_plugin_path = "/nonexistent.so"});
        const int before = Runtime::device_count();
        const bool lazy = !Runtime::started();
        exit(before == 3 && lazy && Runtime::instance().device(2).index() == 2 ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(RuntimeDeath, BadDeviceCountIsAClearError) {
  EXPECT_EXIT(
      {
        setenv("TORCH_TPU_DEVICES", "two", 1);
        Runtime::configure({.cpu_plugin_path = TEST_PJRT_PLUGIN});
        fmt::print(stderr, "{}", error_of([] { Runtime::device_count(); }));
        exit(7);
      },
      testing::ExitedWithCode(7),
      "TORCH_TPU_DEVICES: expected a number from 1 to 1024, got \"two\"");
}

TEST(Hardware, CountsChipsOnTheBusThatHaveADriver) {
  const fs::path root = new_directory();
  EXPECT_EQ(tpu_chips_below(root), 0);
  for (const char* device : {"0000:00:04.0", "0000:00:05.0", "0000:00:06.0"}) {
    fs::create_directories(root / "sys/bus/pci/devices" / device);
    std::ofstream(root / "sys/bus/pci/devices" / device / "vendor")
        << (device[9] == '6' ? "0x8086\n" : "0x1ae0\n");
  }
  EXPECT_EQ(tpu_chips_below(root), 0) << "a network card of the same vendor";
  fs::create_directories(root / "dev/vfio");
  std::ofstream(root / "dev/vfio/vfio") << "";
  EXPECT_EQ(tpu_chips_below(root), 0);
  std::ofstream(root / "dev/vfio/0") << "";
  std::ofstream(root / "dev/vfio/1") << "";
  EXPECT_EQ(tpu_chips_below(root), 2);
  fs::remove_all(root / "dev/vfio");
  std::ofstream(root / "dev/accel0") << "";
  EXPECT_EQ(tpu_chips_below(root), 1);
}

TEST(Environment, IdentitiesAreStable) {
  EXPECT_EQ(machine_identity(test_runtime().client()), machine_identity(test_runtime().client()));
  EXPECT_NE(build_identity(), Hash128{});
  EXPECT_EQ(build_identity(), build_identity());
}

}  // namespace
}  // namespace tpu::exec

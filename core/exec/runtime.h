// SPDX-License-Identifier: Apache-2.0
// The process's connection to its devices: chooses the plugin, starts the client on first use and
// tears down in order at exit. Never started by an import; refuses to work in a forked child of a
// process that had started it.
#pragma once

#include <memory>
#include <string>

#include "core/exec/compiler.h"
#include "core/exec/device.h"

namespace tpu::exec {

struct RuntimeOptions {
  std::string plugin_path;      // explicit choice (TORCH_TPU_PJRT_PLUGIN, TPU_LIBRARY_PATH); wins
  std::string tpu_plugin_path;  // libtpu.so if installed; used when TPU hardware is present
  std::string cpu_plugin_path;  // the embedded default
  int device_count = 0;         // TORCH_TPU_DEVICES; 0: one on the CPU plugin, all on a TPU
  std::string cache_dir;        // empty: no disk cache
  size_t cache_bytes = size_t{4} << 30;
  size_t memory_limit = 0;  // 0: the device's, on the CPU plugin 90% of the machine's memory
  void (*prepare)(pjrt::Client&) = nullptr;  // called before any program is made or loaded
};

class Runtime {
 public:
  // Before the first instance(); later calls are an error.
  static void configure(RuntimeOptions options);
  static const RuntimeOptions& options();
  // Starts on first call. Throws tpu::Error: plugin missing or without entry point, client failed,
  // process forked after start ("Cannot re-initialize TPU in forked subprocess. ...").
  static Runtime& instance();
  static bool started();
  static bool in_bad_fork();
  // Without starting anything: from options, the environment and the PCI bus.
  static int device_count();
  // Whether TPU hardware is in this machine (PCI vendor 0x1ae0 or VFIO nodes). Asks no network.
  static bool tpu_present();
  // Waits for running work and drops the client; called at exit. Arrays may outlive it.
  static void shutdown();

  bool is_cpu() const;                  // the plugin computes on the host
  const std::string& platform() const;  // "cpu", "tpu"
  const std::string& plugin_path() const;
  std::string device_name(int index) const;  // "XLA:CPU (no TPU found)", "TPU v6e"
  Device& device(int index);                 // tpu::Error "invalid device index" beyond the count
  Compiler& compiler();
  pjrt::Client& client();

 private:
  Runtime();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
// A set of devices that need not exist, to compile for ahead of time: what a TPU's compiler takes
// can be tried on any machine. A bad program may abort the compiler and with it the process, so
// whoever compiles programs of unknown quality does so in a process of its own. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "core/pjrt/compile_options.h"
#include "core/pjrt/executable.h"
#include "core/pjrt/plugin.h"

namespace tpu::pjrt {

class Topology {
 public:
  // `name` in the plugin's spelling: chips and their grid, such as "v6e:1x1" or "tpu7x:2x2x1".
  static Result<std::unique_ptr<Topology>> create(const Plugin& plugin, const std::string& name);
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  Result<size_t> device_count() const;
  // Compiles and forgets the code; what running it would take.
  Result<MemoryUse> compile(const std::string& module, const CompileOptions& options) const;

 private:
  Topology(const Api& api, PJRT_TopologyDescription* raw) : api_(api), raw_(raw) {}

  const Api& api_;
  PJRT_TopologyDescription* raw_;
};

}  // namespace tpu::pjrt

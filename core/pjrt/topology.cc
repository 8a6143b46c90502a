// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/topology.h"

#include "core/pjrt/module.h"

namespace tpu::pjrt {

Result<std::unique_ptr<Topology>> Topology::create(const Plugin& plugin, const std::string& name) {
  auto args = make_args<PJRT_TopologyDescription_Create_Args>();
  args.topology_name = name.data();
  args.topology_name_size = name.size();
  if (Status s = plugin.api().call<&PJRT_Api::PJRT_TopologyDescription_Create>(args); !s.ok()) {
    return s.with_context(fmt::format("topology {} of {}", name, plugin.path()));
  }
  return std::unique_ptr<Topology>(new Topology(plugin.api(), args.topology));
}

Topology::~Topology() {
  if (handles_abandoned.load(std::memory_order_relaxed)) return;
  auto args = make_args<PJRT_TopologyDescription_Destroy_Args>();
  args.topology = raw_;
  (void)api_.call<&PJRT_Api::PJRT_TopologyDescription_Destroy>(args);
}

Result<size_t> Topology::device_count() const {
  auto args = make_args<PJRT_TopologyDescription_GetDeviceDescriptions_Args>();
  args.topology = raw_;
  TPU_RETURN_IF_ERROR(api_.call<&PJRT_Api::PJRT_TopologyDescription_GetDeviceDescriptions>(args));
  return args.num_descriptions;
}

Result<MemoryUse> Topology::compile(const std::string& module,
                                    const CompileOptions& options) const {
  const auto program = program_of(module);
  if (!program.ok()) return program.status();
  const std::string option_bytes = options.serialize();
  auto args = make_args<PJRT_Compile_Args>();
  args.topology = raw_;
  args.program = &program.value();
  args.compile_options = option_bytes.data();
  args.compile_options_size = option_bytes.size();
  TPU_RETURN_IF_ERROR(api_.call<&PJRT_Api::PJRT_Compile>(args));
  return Description(&api_, args.executable).memory_use();
}

}  // namespace tpu::pjrt

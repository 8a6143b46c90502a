// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/client.h"

#include "core/pjrt/module.h"

namespace tpu::pjrt {
namespace {

PJRT_NamedValue named_value(const Client::IntOption& option) {
  auto value = make_args<PJRT_NamedValue>();
  value.name = option.first.data();
  value.name_size = option.first.size();
  value.type = PJRT_NamedValue_kInt64;
  value.int64_value = option.second;
  value.value_size = 1;
  return value;
}

}  // namespace

Result<std::unique_ptr<Client>> Client::create(const Plugin& plugin,
                                               const std::vector<IntOption>& options) {
  std::vector<PJRT_NamedValue> values;
  values.reserve(options.size());
  for (const IntOption& o : options) values.push_back(named_value(o));
  auto args = make_args<PJRT_Client_Create_Args>();
  args.create_options = values.data();
  args.num_options = values.size();
  if (Status s = plugin.api().call<&PJRT_Api::PJRT_Client_Create>(args); !s.ok()) {
    return s.with_context(fmt::format("starting a client of {}", plugin.path()));
  }
  std::unique_ptr<Client> client(new Client(plugin, args.client));
  TPU_RETURN_IF_ERROR(client->read_properties());
  return client;
}

Client::~Client() {
  if (handles_abandoned.load()) return;
  auto args = make_args<PJRT_Client_Destroy_Args>();
  args.client = client_;
  (void)api().call<&PJRT_Api::PJRT_Client_Destroy>(args);
}

Status Client::read_properties() {
  auto name = make_args<PJRT_Client_PlatformName_Args>();
  name.client = client_;
  TPU_RETURN_IF_ERROR(api().call<&PJRT_Api::PJRT_Client_PlatformName>(name));
  platform_.assign(name.platform_name, name.platform_name_size);

  auto version = make_args<PJRT_Client_PlatformVersion_Args>();
  version.client = client_;
  TPU_RETURN_IF_ERROR(api().call<&PJRT_Api::PJRT_Client_PlatformVersion>(version));
  platform_version_.assign(version.platform_version, version.platform_version_size);

  auto devices = make_args<PJRT_Client_AddressableDevices_Args>();
  devices.client = client_;
  TPU_RETURN_IF_ERROR(api().call<&PJRT_Api::PJRT_Client_AddressableDevices>(devices));
  devices_.assign(devices.addressable_devices,
                  devices.addressable_devices + devices.num_addressable_devices);
  return {};
}

std::string Client::device_kind(PJRT_Device* device) const {
  auto description = make_args<PJRT_Device_GetDescription_Args>();
  description.device = device;
  if (!api().call<&PJRT_Api::PJRT_Device_GetDescription>(description).ok()) return platform_;
  auto kind = make_args<PJRT_DeviceDescription_Kind_Args>();
  kind.device_description = description.device_description;
  if (!api().call<&PJRT_Api::PJRT_DeviceDescription_Kind>(kind).ok()) return platform_;
  return std::string(kind.device_kind, kind.device_kind_size);
}

Result<size_t> Client::memory_limit(PJRT_Device* device) const {
  auto args = make_args<PJRT_Device_MemoryStats_Args>();
  args.device = device;
  TPU_RETURN_IF_ERROR(api().call<&PJRT_Api::PJRT_Device_MemoryStats>(args));
  if (!args.bytes_limit_is_set || args.bytes_limit <= 0) {
    return Status(Code::kUnimplemented, "the plugin reports no memory limit");
  }
  return static_cast<size_t>(args.bytes_limit);
}

Result<Executable> Client::compile(const std::string& module, const CompileOptions& options) const {
  const auto program = program_of(module);
  if (!program.ok()) return program.status();
  const std::string option_bytes = options.serialize();

  auto args = make_args<PJRT_Client_Compile_Args>();
  args.client = client_;
  args.program = &program.value();
  args.compile_options = option_bytes.data();
  args.compile_options_size = option_bytes.size();
  TPU_RETURN_IF_ERROR(api().call<&PJRT_Api::PJRT_Client_Compile>(args));
  return Executable(&api(), args.executable);
}

Result<Executable> Client::deserialize(const std::string& bytes) const {
  auto args = make_args<PJRT_Executable_DeserializeAndLoad_Args>();
  args.client = client_;
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  TPU_RETURN_IF_ERROR(api().call<&PJRT_Api::PJRT_Executable_DeserializeAndLoad>(args));
  return Executable(&api(), args.loaded_executable);
}

Result<Client::Wrapped> Client::from_host(const HostData& host, PJRT_Device* device,
                                          PJRT_HostBufferSemantics semantics) const {
  auto args = make_args<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client_;
  args.data = host.data;
  args.type = host.type;
  args.dims = host.dims.data();
  args.num_dims = host.dims.size();
  args.host_buffer_semantics = semantics;
  args.device = device;
  TPU_RETURN_IF_ERROR(api().call<&PJRT_Api::PJRT_Client_BufferFromHostBuffer>(args));
  return Wrapped{Buffer(&api(), args.buffer), Event(&api(), args.done_with_host_buffer)};
}

Result<Buffer> Client::copy_from_host(const HostData& host, PJRT_Device* device) const {
  auto copied = from_host(host, device, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  if (!copied.ok()) return copied.status();
  return std::move(copied->buffer);
}

Result<Client::Wrapped> Client::wrap_host_memory(const HostData& host, PJRT_Device* device) const {
  return from_host(host, device, PJRT_HostBufferSemantics_kMutableZeroCopy);
}

}  // namespace tpu::pjrt

// SPDX-License-Identifier: Apache-2.0
// A connection to the devices of one plugin. Everything made by it (buffers, executables) must go
// before it does. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/pjrt/buffer.h"
#include "core/pjrt/compile_options.h"
#include "core/pjrt/executable.h"
#include "core/pjrt/plugin.h"

namespace tpu::pjrt {

class Client {
 public:
  using IntOption = std::pair<std::string, int64_t>;  // such as cpu_device_count
  static Result<std::unique_ptr<Client>> create(const Plugin& plugin,
                                                const std::vector<IntOption>& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Plugin& plugin() const { return plugin_; }
  const Api& api() const { return plugin_.api(); }
  const std::string& platform() const { return platform_; }  // "cpu", "tpu"
  const std::string& platform_version() const { return platform_version_; }
  std::span<PJRT_Device* const> devices() const { return devices_; }  // addressable ones

  std::string device_kind(PJRT_Device* device) const;
  // The device's memory; kUnimplemented where the plugin does not know.
  Result<size_t> memory_limit(PJRT_Device* device) const;

  // `module` is StableHLO text or bytecode with static dimensions. Blocks while compiling.
  Result<Executable> compile(const std::string& module, const CompileOptions& options) const;
  // Bytes of Executable::serialize(). The plugin notices truncation but not a flipped bit: the
  // caller vouches for the bytes.
  Result<Executable> deserialize(const std::string& bytes) const;

  struct HostData {
    const void* data;
    PJRT_Buffer_Type type;
    std::span<const int64_t> dims;  // dense, row-major
  };
  // Copies before returning.
  Result<Buffer> copy_from_host(const HostData& host, PJRT_Device* device) const;
  // On plugins that compute on the host and for 64-byte-aligned data: a buffer *in* that memory,
  // which programs may overwrite through donation. The memory belongs to the plugin until `done`,
  // which happens after every handle on it, including outputs donated into it, is gone.
  struct Wrapped {
    Buffer buffer;
    Event done;
  };
  Result<Wrapped> wrap_host_memory(const HostData& host, PJRT_Device* device) const;

 private:
  Client(const Plugin& plugin, PJRT_Client* client) : plugin_(plugin), client_(client) {}
  Status read_properties();
  Result<Wrapped> from_host(const HostData& host, PJRT_Device* device,
                            PJRT_HostBufferSemantics semantics) const;

  const Plugin& plugin_;
  PJRT_Client* client_;
  std::string platform_;
  std::string platform_version_;
  std::vector<PJRT_Device*> devices_;
};

}  // namespace tpu::pjrt

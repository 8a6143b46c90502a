// SPDX-License-Identifier: Apache-2.0
// Functions of this process that programs call: custom calls of api_version 4 (XLA's typed FFI),
// for plugins that compute on the host.
//
// A function gets the addresses of its operands and results and must be done with them when it
// returns. It runs on whichever thread executes the program, several at once, and may not block on
// the device. Registrations last as long as the process. Thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/ir/dtype.h"
#include "core/pjrt/client.h"

struct XLA_FFI_CallFrame;
struct XLA_FFI_Error;

namespace tpu::pjrt {

// Memory of the running program: dense, row-major.
struct HostBuffer {
  ir::DType dtype;
  std::span<const int64_t> dims;
  void* data;
};

// One running call, seen by the function.
class HostCallFrame {
 public:
  explicit HostCallFrame(const XLA_FFI_CallFrame& frame) : frame_(frame) {}

  size_t operand_count() const;
  size_t result_count() const;
  // kInvalidArgument for an element type that no DType names.
  Result<HostBuffer> operand(size_t i) const;
  Result<HostBuffer> result(size_t i) const;
  // A string of the call's backend_config.
  std::optional<std::string_view> text(std::string_view name) const;

 private:
  const XLA_FFI_CallFrame& frame_;
};

// A failure ends the program, whose results then all carry it. Must not throw.
using HostFunction = Status (*)(const HostCallFrame&);

namespace internal {
using FfiHandler = XLA_FFI_Error* (*)(XLA_FFI_CallFrame*);
XLA_FFI_Error* run_host_function(XLA_FFI_CallFrame& frame, HostFunction function);
Status register_ffi_handler(const Plugin& plugin, std::string_view name, FfiHandler handler);
}  // namespace internal

// Makes `F` the target `name` of custom calls; before any program that calls it is compiled or
// deserialized. kUnimplemented if the plugin takes no functions.
template <HostFunction F>
Status register_host_function(const Plugin& plugin, std::string_view name) {
  return internal::register_ffi_handler(
      plugin, name, [](XLA_FFI_CallFrame* f) { return internal::run_host_function(*f, F); });
}

// Whether registered functions are really called: a plugin of another FFI version accepts a
// registration and ignores it. Compiles and runs a tiny program.
Status probe_host_functions(const Client& client);

}  // namespace tpu::pjrt

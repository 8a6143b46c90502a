// SPDX-License-Identifier: Apache-2.0
#include "core/pjrt/executable.h"

namespace tpu::pjrt {
namespace {

Result<Description> describe(const Api& api, PJRT_LoadedExecutable* loaded) {
  auto args = make_args<PJRT_LoadedExecutable_GetExecutable_Args>();
  args.loaded_executable = loaded;
  TPU_RETURN_IF_ERROR(api.call<&PJRT_Api::PJRT_LoadedExecutable_GetExecutable>(args));
  return Description(&api, args.executable);
}

size_t unsign(int64_t bytes) { return bytes > 0 ? static_cast<size_t>(bytes) : 0; }

}  // namespace

Status Executable::execute(const Execution& execution) const {
  auto options = make_args<PJRT_ExecuteOptions>();
  options.non_donatable_input_indices = execution.non_donatable.data();
  options.num_non_donatable_input_indices = execution.non_donatable.size();
  PJRT_Buffer* const* const arguments = execution.arguments.data();
  PJRT_Buffer** const results = execution.results.data();

  auto args = make_args<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = raw_;
  args.options = &options;
  args.argument_lists = &arguments;
  args.num_devices = 1;
  args.num_args = execution.arguments.size();
  args.output_lists = &results;
  args.device_complete_events = execution.complete;
  args.execute_device = execution.device;
  return api_->call<&PJRT_Api::PJRT_LoadedExecutable_Execute>(args);
}

Result<size_t> Executable::output_count() const {
  auto description = describe(*api_, raw_);
  if (!description.ok()) return description.status();
  auto args = make_args<PJRT_Executable_NumOutputs_Args>();
  args.executable = description->get();
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Executable_NumOutputs>(args));
  return args.num_outputs;
}

Result<MemoryUse> Description::memory_use() const {
  auto args = make_args<PJRT_Executable_GetCompiledMemoryStats_Args>();
  args.executable = raw_;
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Executable_GetCompiledMemoryStats>(args));
  return MemoryUse{.argument_bytes = unsign(args.argument_size_in_bytes),
                   .output_bytes = unsign(args.output_size_in_bytes),
                   .alias_bytes = unsign(args.alias_size_in_bytes),
                   .temp_bytes = unsign(args.temp_size_in_bytes),
                   .code_bytes = unsign(args.generated_code_size_in_bytes)};
}

Result<MemoryUse> Executable::memory_use() const {
  auto description = describe(*api_, raw_);
  return description.ok() ? description->memory_use() : description.status();
}

Result<std::string> Executable::serialize() const {
  auto description = describe(*api_, raw_);
  if (!description.ok()) return description.status();
  auto args = make_args<PJRT_Executable_Serialize_Args>();
  args.executable = description->get();
  TPU_RETURN_IF_ERROR(api_->call<&PJRT_Api::PJRT_Executable_Serialize>(args));
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

}  // namespace tpu::pjrt

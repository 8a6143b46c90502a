// SPDX-License-Identifier: Apache-2.0
// A compiled program loaded into a client. Owns the handle. Const members are thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/pjrt/event.h"

namespace tpu::pjrt {

struct MemoryUse {
  size_t argument_bytes = 0;
  size_t output_bytes = 0;
  size_t alias_bytes = 0;  // of the arguments, reused by outputs
  size_t temp_bytes = 0;
  size_t code_bytes = 0;
};

// The form of an executable that answers questions about the program.
class Description
    : public Handle<PJRT_Executable, PJRT_Executable_Destroy_Args,
                    &PJRT_Api::PJRT_Executable_Destroy, &PJRT_Executable_Destroy_Args::executable> {
 public:
  using Handle::Handle;
  Result<MemoryUse> memory_use() const;
};

class Executable : public Handle<PJRT_LoadedExecutable, PJRT_LoadedExecutable_Destroy_Args,
                                 &PJRT_Api::PJRT_LoadedExecutable_Destroy,
                                 &PJRT_LoadedExecutable_Destroy_Args::executable> {
 public:
  using Handle::Handle;

  struct Execution {
    std::span<PJRT_Buffer* const> arguments;
    std::span<const int64_t> non_donatable;  // arguments that keep their memory in any case
    PJRT_Device* device = nullptr;    // for programs compiled portable; null: the compiled-for
    std::span<PJRT_Buffer*> results;  // out; as many as the program has
    PJRT_Event** complete = nullptr;  // out, if not null: this run has finished
  };
  // Enqueues. The plugin compares only the byte sizes of arguments: element types and dimensions
  // are the caller's to check. On failure no argument has been consumed.
  Status execute(const Execution& execution) const;

  Result<size_t> output_count() const;
  Result<MemoryUse> memory_use() const;
  // Bytes for Client::deserialize of the same plugin on the same kind of machine.
  Result<std::string> serialize() const;
};

}  // namespace tpu::pjrt

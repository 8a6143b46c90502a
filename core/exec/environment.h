// SPDX-License-Identifier: Apache-2.0
// What compiled programs depend on beside their text: this machine and the software on it.
#pragma once

#include "core/base/hash.h"
#include "core/pjrt/client.h"

namespace tpu::exec {

// Whether the plugin's devices are the host's own cores and memory.
bool computes_on_host(const pjrt::Client& client);

// The plugin file, what it compiles for and, if that is the host, model, features and number of
// visible cores, which the compiler bakes into the code.
Hash128 machine_identity(const pjrt::Client& client);

// The build of the library that holds this function: its linker-made id, else its file's size and
// time.
Hash128 build_identity();

}  // namespace tpu::exec

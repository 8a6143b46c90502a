// SPDX-License-Identifier: Apache-2.0
// What this machine has, read from /sys, /dev and /proc: no network, no device is opened.
#pragma once

#include <cstddef>
#include <string>

namespace tpu::exec {

// TPU chips on the PCI bus (vendor 0x1ae0) that a driver has made usable through /dev.
int tpu_chips();
// Bytes this process may use: physical memory or the limit of its control group.
size_t machine_memory();
// Cores this process may run on.
size_t usable_cores();

// As tpu_chips(), below another root than "/".
int tpu_chips_below(const std::string& root);

}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
// Counter-based generators: the state is (seed, offset), 16 bytes as two little-endian uint64. An
// op takes the pair and advances the offset by the 128-bit blocks it draws.
#pragma once

#include <ATen/core/Generator.h>

#include "backend/torch_headers.h"

namespace torch_tpu {

const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);

struct RandomTicket {
  uint64_t seed;
  uint64_t offset;
};
// Thread-safe. `generator` may be undefined: the device's default one. RuntimeError for a generator
// of another device.
RandomTicket draw(const std::optional<at::Generator>& generator, c10::DeviceIndex index,
                  int64_t blocks);

}  // namespace torch_tpu

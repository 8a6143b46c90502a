// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"

namespace tpu {

void check_failed(const char* condition, const char* why, const char* file, int line) {
  throw Error(ErrorKind::kRuntime,
              fmt::format("torch_tpu internal error: {} ({}) at {}:{}. Please report this.", why,
                          condition, file, line));
}

}  // namespace tpu

// SPDX-License-Identifier: Apache-2.0
// A launch whose program was still being compiled, with all it needs held.
#pragma once

#include <string>
#include <vector>

#include "core/exec/device.h"

namespace tpu::exec {

struct Postponed {
  ProgramRef program;
  std::vector<ArrayRef> arguments;
  std::vector<ArrayRef> results;  // promised
  std::vector<int32_t> words;
  std::vector<int> donated;
  std::string op;
  std::string origin;
};

}  // namespace tpu::exec

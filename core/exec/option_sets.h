// SPDX-License-Identifier: Apache-2.0
// The compiler options behind each OptionSet.
#pragma once

#include <string>

#include "core/exec/program.h"
#include "core/pjrt/compile_options.h"

namespace tpu::exec {

// For a plugin that computes on the host there are three sets, measured for compile and run time;
// other plugins get their own defaults. TORCH_TPU_STRICT_ROUNDING=1 replaces all three by one that
// rounds alike in programs of any size.
pjrt::CompileOptions compile_options(OptionSet set, bool cpu, const std::string& module);

}  // namespace tpu::exec

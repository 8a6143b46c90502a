// SPDX-License-Identifier: Apache-2.0
#include "core/exec/option_sets.h"

#include <cstdlib>
#include <string_view>

namespace tpu::exec {
namespace {

bool strict_rounding() {
  const char* value = std::getenv("TORCH_TPU_STRICT_ROUNDING");
  return value != nullptr && std::string_view(value) == "1";
}

std::vector<pjrt::OptionOverride> cpu_overrides(OptionSet set) {
  const pjrt::OptionOverride low_effort{"xla_backend_optimization_level", int64_t{1}};
  // Without fused multiply-add a program of many ops rounds like its ops alone.
  if (strict_rounding()) return {low_effort, {"xla_cpu_max_isa", std::string("AVX")}};
  if (set != OptionSet::kFast) return {low_effort};
  return {low_effort,
          {"xla_cpu_use_fusion_emitters", false},
          {"xla_llvm_disable_expensive_passes", true}};
}

}  // namespace

pjrt::CompileOptions compile_options(OptionSet set, bool cpu, const std::string& module) {
  pjrt::CompileOptions options;
  options.shardy = module.find("sdy.") != module.npos;
  if (cpu) options.overrides = cpu_overrides(set);
  return options;
}

}  // namespace tpu::exec

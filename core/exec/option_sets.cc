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
  std::vector<pjrt::OptionOverride> overrides{
      {"xla_backend_optimization_level", int64_t{1}},
      {"xla_cpu_enable_fast_min_max", false},  // the fast forms drop NaN
      {"xla_allow_excess_precision", false},   // bf16 and f16 round after every op, as in PyTorch
  };
  // Without fused multiply-add a program of many ops rounds like its ops alone.
  if (strict_rounding()) {
    overrides.push_back({"xla_cpu_max_isa", std::string("AVX")});
  } else if (set == OptionSet::kFast) {
    overrides.push_back({"xla_cpu_use_fusion_emitters", false});
    overrides.push_back({"xla_llvm_disable_expensive_passes", true});
    overrides.push_back({"xla_cpu_parallel_codegen_split_count", int64_t{1}});
  }
  return overrides;
}

}  // namespace

pjrt::CompileOptions compile_options(OptionSet set, bool cpu, const std::string& module) {
  pjrt::CompileOptions options;
  options.shardy = module.find("sdy.") != module.npos;
  if (cpu) options.overrides = cpu_overrides(set);
  return options;
}

}  // namespace tpu::exec

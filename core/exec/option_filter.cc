// SPDX-License-Identifier: Apache-2.0
#include "core/exec/option_filter.h"

#include <algorithm>

namespace tpu::exec {
namespace {

constexpr const char* kProbe =
    "module { func.func public @main(%0: tensor<f32>) -> tensor<f32> { return %0 : tensor<f32> } }";

}  // namespace

Result<pjrt::Executable> OptionFilter::compile(const std::string& module,
                                               pjrt::CompileOptions options) {
  drop_refused(options);
  auto first = client_.compile(module, options);
  if (first.ok() || options.overrides.empty() || first.status().code() != Code::kInvalidArgument) {
    return first;
  }
  pjrt::CompileOptions plain = options;
  plain.overrides.clear();
  auto second = client_.compile(module, plain);
  if (!second.ok()) return first;
  find_refused(options);
  drop_refused(options);
  return options.overrides.empty() ? std::move(second) : client_.compile(module, options);
}

std::vector<std::string> OptionFilter::refused() const {
  const std::lock_guard guard(lock_);
  return refused_;
}

void OptionFilter::drop_refused(pjrt::CompileOptions& options) const {
  const std::lock_guard guard(lock_);
  std::erase_if(options.overrides, [&](const pjrt::OptionOverride& o) {
    return std::find(refused_.begin(), refused_.end(), o.name) != refused_.end();
  });
}

void OptionFilter::find_refused(const pjrt::CompileOptions& options) {
  for (const pjrt::OptionOverride& o : options.overrides) {
    pjrt::CompileOptions one;
    one.overrides = {o};
    if (client_.compile(kProbe, one).ok()) continue;
    const std::lock_guard guard(lock_);
    refused_.push_back(o.name);
  }
}

}  // namespace tpu::exec

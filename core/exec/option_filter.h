// SPDX-License-Identifier: Apache-2.0
// Compiles with those of our options that the plugin knows. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "core/pjrt/client.h"

namespace tpu::exec {

class OptionFilter {
 public:
  explicit OptionFilter(const pjrt::Client& client) : client_(client) {}

  // A plugin refuses a program because of an option it does not know just as because of the
  // program. So a refusal is tried again without our options, and if that helps, they are tried one
  // by one; what is refused is never passed again.
  Result<pjrt::Executable> compile(const std::string& module, pjrt::CompileOptions options);

  std::vector<std::string> refused() const;

 private:
  void drop_refused(pjrt::CompileOptions& options) const;
  void find_refused(const pjrt::CompileOptions& options);

  const pjrt::Client& client_;
  mutable std::mutex lock_;  // guards refused_; not held while compiling
  std::vector<std::string> refused_;
};

}  // namespace tpu::exec

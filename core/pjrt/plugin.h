// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin: a shared library with the entry point GetPjrtApi. Loaded at most once per path
// and never unloaded, because its threads and static objects outlive every client. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "core/pjrt/api.h"

namespace tpu::pjrt {

class Plugin {
 public:
  // Loads and initializes. kNotFound: no such file; kInvalidArgument: not a plugin, or of an
  // incompatible PJRT version; otherwise what the plugin's initialization said.
  static Result<const Plugin*> load(const std::string& path);

  const std::string& path() const { return path_; }
  const Api& api() const { return api_; }
  // "0.81"
  std::string version() const;
  // A string attribute such as "xla_version"; lists of integers read "1.13.3".
  std::optional<std::string> attribute(std::string_view name) const;

 private:
  Plugin(std::string path, const PJRT_Api& table);
  std::string path_;
  Api api_;
};

}  // namespace tpu::pjrt

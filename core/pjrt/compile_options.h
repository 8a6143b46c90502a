// SPDX-License-Identifier: Apache-2.0
// CompileOptionsProto, written byte by byte: linking protobuf would clash with the copy that
// libtorch exports. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tpu::pjrt {

// One XLA debug option for one compilation. Unlike XLA_FLAGS, an unknown name is an error status.
struct OptionOverride {
  std::string name;
  std::variant<bool, int64_t, double, std::string> value;
};

struct CompileOptions {
  bool portable = true;  // runs on any device of the client; one replica, one partition
  bool shardy = false;   // must be set if the module has sdy attributes
  std::vector<OptionOverride> overrides;

  std::string serialize() const;
};

}  // namespace tpu::pjrt

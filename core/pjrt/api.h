// SPDX-License-Identifier: Apache-2.0
// The entry points of one PJRT plugin, and the owner of the objects it hands out.
//
// The C API grows by appending: a plugin older than our header has a shorter table. Api keeps its
// own copy in which every entry beyond the plugin's struct_size is null, and calling such an entry
// is kUnimplemented. An Api lives as long as the process, as the plugin does. Thread-safe.
#pragma once

#include <pjrt_c_api.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "core/base/result.h"

namespace tpu::pjrt {

// An argument struct of the C API, zeroed and with its size filled in.
template <class Args>
Args make_args() {
  Args args{};
  args.struct_size = sizeof(Args);
  return args;
}

class Api {
 public:
  explicit Api(const PJRT_Api& plugin_table);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  template <auto Entry>
  bool has() const {
    return table_.*Entry != nullptr;
  }
  template <auto Entry, class Args>
  Status call(Args& args) const {
    const auto entry = table_.*Entry;
    if (entry == nullptr) [[unlikely]]
      return missing(__PRETTY_FUNCTION__);
    PJRT_Error* error = entry(&args);
    if (error != nullptr) [[unlikely]]
      return take(error);
    return {};
  }
  // Frees the error and says what it said; ok for null.
  Status take(PJRT_Error* error) const;

  const PJRT_Api& table() const { return table_; }
  int major_version() const { return table_.pjrt_api_version.major_version; }
  int minor_version() const { return table_.pjrt_api_version.minor_version; }
  // The extension struct of that type, or null.
  const PJRT_Extension_Base* extension(PJRT_Extension_Type type) const;

 private:
  static Status missing(std::string_view caller);
  PJRT_Api table_;
};

// After this no handle calls its plugin any more: destructors leak. For the forked child, where
// the plugin's threads do not exist, and for the end of the process, where its statics may be gone.
void abandon_handles();
inline std::atomic<bool> handles_abandoned{false};

// Owns one object of a plugin; move-only, empty when default-made or moved from.
template <class Raw, class Args, auto Entry, auto Field>
class Handle {
 public:
  Handle() = default;
  Handle(const Api* api, Raw* raw) : api_(api), raw_(raw) {}
  Handle(Handle&& other) noexcept : api_(other.api_), raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      api_ = other.api_;
      raw_ = std::exchange(other.raw_, nullptr);
    }
    return *this;
  }
  ~Handle() { reset(); }

  explicit operator bool() const { return raw_ != nullptr; }
  Raw* get() const { return raw_; }
  void reset() noexcept {
    if (raw_ == nullptr) return;
    Raw* raw = std::exchange(raw_, nullptr);
    if (handles_abandoned.load(std::memory_order_relaxed)) return;
    auto args = make_args<Args>();
    args.*Field = raw;
    if (PJRT_Error* error = (api_->table().*Entry)(&args)) (void)api_->take(error);
  }

 protected:
  const Api* api_ = nullptr;
  Raw* raw_ = nullptr;
};

}  // namespace tpu::pjrt

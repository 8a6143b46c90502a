// SPDX-License-Identifier: Apache-2.0
// Failures of the environment: a Status or Result<T> is returned, never thrown, and each caller
// that passes one on adds what it was doing. Values, not shared: cheap to move.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace tpu {

// Codes follow absl::StatusCode, which is what PJRT returns.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // The same failure with what the caller was doing put in front.
  Status with_context(std::string_view doing) const {
    return ok() ? *this : Status(code_, fmt::format("{}: {}", doing, message_));
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    TPU_CHECK(!status_.ok(), "a Result without a value carries a failure");
  }
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

// The exception for a failure that has reached the user: OutOfMemory for kResourceExhausted,
// NotImplemented for kUnimplemented, Runtime otherwise.
[[noreturn]] void throw_status(const Status& status);

inline void throw_if_error(const Status& status) {
  if (!status.ok()) throw_status(status);
}

template <class T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw_status(result.status());
  return std::move(result).value();
}

}  // namespace tpu

#define TPU_RETURN_IF_ERROR(expression)                                      \
  do {                                                                       \
    if (::tpu::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// SPDX-License-Identifier: Apache-2.0
// The three kinds of failure and how each travels.
//
// 1. The user's mistake: `tpu::Error`, thrown in lower/ or backend/ and translated once, at the
//    boundary to PyTorch, into the exception its users expect.
// 2. The environment's (PJRT, disk): `Status` / `Result<T>`, see result.h.
// 3. Ours: `TPU_CHECK`, which names the broken assumption and asks for a report.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tpu {

// What kind of exception a PyTorch user sees for an Error.
enum class ErrorKind {
  kRuntime,         // RuntimeError
  kIndex,           // IndexError
  kValue,           // ValueError
  kType,            // TypeError
  kNotImplemented,  // NotImplementedError
  kOutOfMemory,     // torch.OutOfMemoryError
  kLinAlg,          // torch.linalg.LinAlgError
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// Throws RuntimeError unless `condition` holds: for checks of user input.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail(ErrorKind::kRuntime, format, std::forward<Args>(args)...);
}

[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);

}  // namespace tpu

// An assumption of ours; `why` says why it must hold.
#define TPU_CHECK(condition, why)         \
  (static_cast<bool>(condition) ? void(0) \
                                : ::tpu::check_failed(#condition, why, __FILE__, __LINE__))

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/host_errors.h"

#include <map>
#include <mutex>

namespace tpu::exec {
namespace {

constexpr size_t kMostErrors = 1024;

struct Errors {
  std::mutex lock;  // guards the members
  int64_t last = 0;
  std::map<int64_t, Error> by_number;
};

Errors& errors() {
  static Errors& e = *new Errors;
  return e;
}

}  // namespace

int64_t keep_host_error(const Error& error) {
  Errors& e = errors();
  const std::lock_guard guard(e.lock);
  if (e.by_number.size() >= kMostErrors) e.by_number.erase(e.by_number.begin());
  e.by_number.emplace(++e.last, error);
  return e.last;
}

Error take_host_error(int64_t number) {
  Errors& e = errors();
  const std::lock_guard guard(e.lock);
  const auto found = e.by_number.extract(number);
  if (!found.empty()) return found.mapped();
  return {ErrorKind::kRuntime, "a host call failed"};
}

}  // namespace tpu::exec

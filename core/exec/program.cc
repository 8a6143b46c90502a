// SPDX-License-Identifier: Apache-2.0
#include "core/exec/program.h"

#include <numeric>

namespace tpu::exec {

Program::Program(const Hash128& identity, ProgramLayout layout)
    : identity(identity),
      layout(std::move(layout)),
      result_bytes(std::transform_reduce(this->layout.results.begin(), this->layout.results.end(),
                                         size_t{0}, std::plus<>(),
                                         [](const ir::Type& t) { return t.bytes(); })) {}

const Status& Program::wait() const {
  ready_.wait(false, std::memory_order_acquire);
  return status_;
}

void Program::finish(Status status) {
  status_ = std::move(status);
  ready_.store(true, std::memory_order_release);
  ready_.notify_all();
}

}  // namespace tpu::exec

// SPDX-License-Identifier: Apache-2.0
// What a Device does about launches whose programs are still being compiled: their results are
// promised, so that the caller goes on, and the launches run in order as the programs get ready.
#include "core/exec/postponed.h"

#include <algorithm>

#include "core/exec/device_impl.h"

namespace tpu::exec {
namespace {

constexpr size_t kMostPostponed = 256;

}  // namespace

// Running out of memory should be an error of the op that does, and postponed launches hold their
// arguments' memory.
bool Device::may_postpone(const Program& program) {
  return impl_->postponed.size() < kMostPostponed &&
         impl_->ledger.fits(impl_->promised_bytes + program.result_bytes);
}

void Device::await_turn(const Program& program) {
  while (!run_postponed()) (void)impl_->postponed.front().program->wait();
  (void)program.wait();
}

void Device::postpone(const Launch& launch, std::span<ArrayRef> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = ArrayRef(new Array(*this, launch.program->layout.results[i]));
  }
  Postponed& p = impl_->postponed.emplace_back();
  p.program = launch.program;
  for (Array* a : launch.arguments) p.arguments.emplace_back(a);
  p.results.assign(results.begin(), results.end());
  p.words.assign(launch.words.begin(), launch.words.end());
  p.donated.assign(launch.donated.begin(), launch.donated.end());
  p.op = launch.op;
  p.origin = launch.origin;
  impl_->promised_bytes += launch.program->result_bytes;
}

bool Device::run_postponed() {
  while (!impl_->postponed.empty() && impl_->postponed.front().program->ready()) {
    const Postponed p = std::move(impl_->postponed.front());
    impl_->postponed.pop_front();
    impl_->promised_bytes -= p.program->result_bytes;
    std::vector<Array*> arguments(p.arguments.size());
    std::transform(p.arguments.begin(), p.arguments.end(), arguments.begin(),
                   [](const ArrayRef& a) { return a.get(); });
    std::vector<pjrt::Buffer> values(p.results.size());
    const Status status = run({.program = p.program,
                               .arguments = arguments,
                               .words = p.words,
                               .donated = p.donated,
                               .op = p.op,
                               .origin = p.origin},
                              values);
    if (!status.ok()) {
      impl_->flights.add_failure(status);
      keep_old_values(p, values);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i]) {
        p.results[i]->keep_promise(std::move(values[i]));
      } else {
        p.results[i]->break_promise(status);
      }
    }
  }
  return impl_->postponed.empty();
}

void Device::keep_old_values(const Postponed& failed, std::span<pjrt::Buffer> values) {
  for (const ir::Graph::Alias& alias : failed.program->layout.aliases) {
    const Array& old = *failed.arguments[static_cast<size_t>(alias.parameter)];
    if (!old.buffer()) continue;
    auto copy = copy_from(old);
    if (copy.ok()) values[static_cast<size_t>(alias.result)] = copy.value()->take();
  }
}

void Device::settle() {
  while (true) {
    ProgramRef awaited;
    {
      const std::lock_guard guard(queue_lock_);
      if (run_postponed()) return;
      awaited = impl_->postponed.front().program;
    }
    (void)awaited->wait();
  }
}

}  // namespace tpu::exec

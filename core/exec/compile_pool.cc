// SPDX-License-Identifier: Apache-2.0
#include "core/exec/compile_pool.h"

#include <algorithm>

#include "core/exec/hardware.h"

namespace tpu::exec {
namespace {

// A compilation uses the plugin's own threads too, so that more of ours would not help.
constexpr size_t kMostThreads = 8;

}  // namespace

CompilePool::CompilePool() : most_threads_(std::clamp<size_t>(usable_cores(), 1, kMostThreads)) {}

CompilePool::~CompilePool() {
  {
    const std::lock_guard guard(lock_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void CompilePool::add(std::function<void()> job) {
  {
    const std::lock_guard guard(lock_);
    jobs_.push_back(std::move(job));
    const bool all_busy = running_ + jobs_.size() > threads_.size();
    if (all_busy && threads_.size() < most_threads_) threads_.emplace_back([this] { work(); });
  }
  changed_.notify_all();
}

void CompilePool::wait_idle() {
  std::unique_lock guard(lock_);
  changed_.wait(guard, [&] { return jobs_.empty() && running_ == 0; });
}

void CompilePool::work() {
  std::unique_lock guard(lock_);
  while (true) {
    changed_.wait(guard, [&] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    ++running_;
    guard.unlock();
    job();
    guard.lock();
    --running_;
    changed_.notify_all();
  }
}

}  // namespace tpu::exec

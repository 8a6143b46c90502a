// SPDX-License-Identifier: Apache-2.0
// Threads that compile, at most one per core this process may use. They start with the first job
// and take jobs in order. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tpu::exec {

class CompilePool {
 public:
  CompilePool();
  ~CompilePool();  // runs what was added

  // Jobs do not throw.
  void add(std::function<void()> job);
  // Blocks until every job added so far has run.
  void wait_idle();

 private:
  void work();

  const size_t most_threads_;
  std::mutex lock_;  // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  size_t running_ = 0;
  bool closing_ = false;
};

}  // namespace tpu::exec

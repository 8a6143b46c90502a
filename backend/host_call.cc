// SPDX-License-Identifier: Apache-2.0
#include "backend/host_call.h"

#include <ATen/record_function.h>

#include <atomic>
#include <mutex>

#include "backend/device.h"
#include "backend/host_kernel.h"
#include "core/exec/host_errors.h"
#include "core/hlo/host_call.h"
#include "core/pjrt/ffi.h"

namespace torch_tpu {
namespace {

using tpu::ErrorKind;
using tpu::Status;
using tpu::pjrt::HostCallFrame;

std::atomic<bool> enabled{true};
std::atomic<bool> registered{false};

// The exception in flight as it will be raised where the user waits.
tpu::Error current_error() {
  try {
    throw;
  } catch (const c10::IndexError& e) {
    return {ErrorKind::kIndex, e.what_without_backtrace()};
  } catch (const c10::ValueError& e) {
    return {ErrorKind::kValue, e.what_without_backtrace()};
  } catch (const c10::TypeError& e) {
    return {ErrorKind::kType, e.what_without_backtrace()};
  } catch (const c10::NotImplementedError& e) {
    return {ErrorKind::kNotImplemented, e.what_without_backtrace()};
  } catch (const c10::LinAlgError& e) {
    return {ErrorKind::kLinAlg, e.what_without_backtrace()};
  } catch (const c10::OutOfMemoryError& e) {
    return {ErrorKind::kOutOfMemory, e.what_without_backtrace()};
  } catch (const c10::Error& e) {
    return {ErrorKind::kRuntime, e.what_without_backtrace()};
  } catch (const std::exception& e) {
    return {ErrorKind::kRuntime, e.what()};
  }
}

// The last result of a call is the number of its error.
Status run_host_call(const HostCallFrame& frame) {
  const auto last = frame.result(frame.result_count() - 1);
  if (!last.ok()) return last.status();
  auto& outcome = *static_cast<int64_t*>(last->data);
  try {
    HostKernel::of(frame).run(frame);
    outcome = 0;
  } catch (...) {
    outcome = tpu::exec::keep_host_error(current_error());
  }
  return {};
}

bool probe() {
  tpu::exec::Runtime& r = runtime();
  if (!r.is_cpu() || !registered.load()) return false;
  tpu::Hasher hasher;
  hasher.add(tpu::hlo::kHostCallTarget);
  const tpu::Hash128 key = hasher.finish();
  if (r.compiler().find_record(key)) return true;
  if (!tpu::pjrt::probe_host_functions(r.client()).ok()) return false;
  r.compiler().store_record(key, "works");
  return true;
}

}  // namespace

void register_host_calls(tpu::pjrt::Client& client) {
  if (client.platform() != "cpu") return;
  registered =
      tpu::pjrt::register_host_function<run_host_call>(client.plugin(), tpu::hlo::kHostCallTarget)
          .ok();
}

bool host_calls_allowed() {
  if (!enabled.load(std::memory_order_relaxed)) return false;
  static const bool works = probe();
  return works;
}

void set_host_calls(bool e) { enabled = e; }
bool host_calls_enabled() { return enabled.load(std::memory_order_relaxed); }

}  // namespace torch_tpu

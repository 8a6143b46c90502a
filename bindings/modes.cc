// SPDX-License-Identifier: Apache-2.0
#include "backend/call.h"
#include "backend/fallback.h"
#include "backend/finite_check.h"
#include "backend/host_call.h"
#include "backend/mode.h"
#include "bindings/module.h"

namespace torch_tpu {

namespace py = pybind11;

namespace {

FallbackPolicy policy_named(const std::string& name) {
  if (name == "allow") return FallbackPolicy::kAllow;
  if (name == "warn") return FallbackPolicy::kWarn;
  TORCH_CHECK_VALUE(name == "error", "fallback policy: expected allow, warn or error, got ", name);
  return FallbackPolicy::kError;
}

}  // namespace

void bind_modes(py::module_& m) {
  m.def("get_eager_mode", [] { return static_cast<int>(eager_mode()); });
  m.def("set_eager_mode", [](int mode) { set_eager_mode(static_cast<EagerMode>(mode)); });
  m.def("exchange_thread_eager_mode", &exchange_thread_eager_mode);
  m.def("set_finite_checks", &set_finite_checks);
  m.def("set_fallback_policy",
        [](const std::string& name) { set_fallback_policy(policy_named(name)); });
  m.def("fallback_counts", &fallback_counts);
  m.def("reset_fallback_counts", &reset_fallback_counts);
  m.def("set_host_calls", &set_host_calls);
  m.def("host_calls_enabled", &host_calls_enabled);
  m.def("get_matmul_precision", [] { return static_cast<int>(matmul_precision()); });
  m.def("set_matmul_precision",
        [](int p) { set_matmul_precision(static_cast<tpu::ir::Precision>(p)); });
}

}  // namespace torch_tpu

// SPDX-License-Identifier: Apache-2.0
#include "backend/boxed.h"
#include "backend/device.h"
#include "bindings/module.h"

namespace torch_tpu {

namespace py = pybind11;

namespace {

const char* name_of(tpu::exec::CompileReason r) {
  switch (r) {
    case tpu::exec::CompileReason::kNewOp:
      return "new op";
    case tpu::exec::CompileReason::kNewShape:
      return "new shape";
    case tpu::exec::CompileReason::kNewDtype:
      return "new dtype";
    case tpu::exec::CompileReason::kNewAttribute:
      return "new attribute";
  }
  return "";
}

py::dict cache_stats() {
  py::dict d;
  tpu::exec::CacheStats s;
  if (tpu::exec::Runtime::started()) s = runtime().compiler().stats();
  d["memory_hits"] = s.memory_hits;
  d["disk_hits"] = s.disk_hits;
  d["compiles"] = s.compiles;
  d["compile_seconds"] = s.compile_seconds;
  d["load_seconds"] = s.load_seconds;
  d["disk_bytes"] = s.disk_bytes;
  d["disk_errors"] = s.disk_errors;
  d["launches"] = launch_count();
  return d;
}

py::list compile_events() {
  py::list out;
  if (!tpu::exec::Runtime::started()) return out;
  for (const auto& e : runtime().compiler().events()) {
    py::dict d;
    d["op"] = e.op;
    d["reason"] = name_of(e.reason);
    d["detail"] = e.detail;
    d["seconds"] = e.seconds;
    out.append(std::move(d));
  }
  return out;
}

}  // namespace

void bind_cache(py::module_& m) {
  m.def("cache_stats", &cache_stats);
  m.def("compile_events", &compile_events);
  m.def("clear_cache", [] {
    clear_plans();
    if (tpu::exec::Runtime::started()) runtime().compiler().clear_memory();
  });
}

}  // namespace torch_tpu

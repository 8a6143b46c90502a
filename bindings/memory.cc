// SPDX-License-Identifier: Apache-2.0
#include "backend/device.h"
#include "bindings/module.h"

namespace torch_tpu {

namespace py = pybind11;

namespace {

tpu::exec::Device& at(int index) { return device(static_cast<c10::DeviceIndex>(index)); }

py::dict memory_stats(int index) {
  const tpu::exec::MemoryStats s = at(index).memory();
  py::dict d;
  d["live_bytes"] = s.live_bytes;
  d["peak_bytes"] = s.peak_bytes;
  d["live_arrays"] = s.live_arrays;
  d["reserved_bytes"] = s.reserved_bytes;
  d["peak_reserved_bytes"] = s.peak_reserved_bytes;
  d["limit_bytes"] = s.limit_bytes;
  d["total_allocated_bytes"] = s.total_allocated_bytes;
  d["total_freed_bytes"] = s.total_freed_bytes;
  d["allocations"] = s.allocations;
  d["out_of_memory"] = s.out_of_memory;
  return d;
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("memory_stats", &memory_stats);
  m.def("reset_peak_memory", [](int i) { at(i).reset_peak_memory(); });
  m.def("reset_accumulated_memory", [](int i) { at(i).reset_accumulated_memory(); });
  m.def("set_memory_limit", [](int i, size_t bytes) { at(i).set_memory_limit(bytes); });
  m.def("empty_cache", [](int i) { at(i).empty_cache(); });
}

}  // namespace torch_tpu

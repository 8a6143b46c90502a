// SPDX-License-Identifier: Apache-2.0
#include <ATen/SequenceNumber.h>
#include <ATen/ops/empty.h>

#include "backend/convert.h"
#include "backend/device.h"
#include "backend/generator.h"
#include "backend/host_call.h"
#include "bindings/module.h"

namespace torch_tpu {

namespace py = pybind11;
using tpu::exec::Runtime;

namespace {

// A thread of the autograd engine may still be about to drop a backward's last Python objects. If
// the interpreter ended first, waiting for the GIL would kill the thread, and that the process. A
// thread comes to another backward only after that.
void outlast_backwards() {
  const bool recorded_any = at::sequence_number::peek() > 0;
  if (!recorded_any || !Runtime::started() || Runtime::in_bad_fork()) return;
  const at::AutoGradMode recording(true);
  for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
    const at::Tensor x = at::empty({0}, tpu_device(i)).set_requires_grad(true);
    x.view({0}).backward(at::empty({0}, tpu_device(i)));
  }
}

void shutdown() {
  outlast_backwards();
  Runtime::shutdown();
}

}  // namespace

void bind_runtime(py::module_& m) {
  m.def("configure",
        [](std::string plugin, std::string tpu_plugin, std::string cpu_plugin, int devices,
           std::string cache_dir, size_t cache_bytes, size_t memory_limit) {
          Runtime::configure({.plugin_path = std::move(plugin),
                              .tpu_plugin_path = std::move(tpu_plugin),
                              .cpu_plugin_path = std::move(cpu_plugin),
                              .device_count = devices,
                              .cache_dir = std::move(cache_dir),
                              .cache_bytes = cache_bytes,
                              .memory_limit = memory_limit,
                              .prepare = &register_host_calls});
        });
  m.def("is_started", &Runtime::started);
  m.def("in_bad_fork", &Runtime::in_bad_fork);
  m.def("device_count", [] { return device_count(); });
  m.def("tpu_present", &Runtime::tpu_present);
  m.def("platform", [] { return runtime().platform(); });
  m.def("plugin_path", [] { return runtime().plugin_path(); });
  m.def("device_name",
        [](int index) { return translating_errors([&] { return runtime().device_name(index); }); });
  m.def("shutdown", &shutdown, py::call_guard<py::gil_scoped_release>());
  m.def("current_device", [] { return static_cast<int>(current_device()); });
  m.def("set_device", [](int index) { set_current_device(static_cast<c10::DeviceIndex>(index)); });
  m.def("exchange_device", [](int index) {
    return static_cast<int>(exchange_current_device(static_cast<c10::DeviceIndex>(index)));
  });
  m.def("synchronize", [](int index) { synchronize(static_cast<c10::DeviceIndex>(index)); });
  m.def("default_generator",
        [](int index) { return default_generator(static_cast<c10::DeviceIndex>(index)); });
}

}  // namespace torch_tpu

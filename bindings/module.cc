// SPDX-License-Identifier: Apache-2.0
#include "bindings/module.h"

PYBIND11_MODULE(_C, m) {
  torch_tpu::bind_runtime(m);
  torch_tpu::bind_memory(m);
  torch_tpu::bind_modes(m);
  torch_tpu::bind_cache(m);
  torch_tpu::install_python_hooks();
}

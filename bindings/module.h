// SPDX-License-Identifier: Apache-2.0
// The extension module torch_tpu._C: one function per area, no logic.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace torch_tpu {

void bind_runtime(pybind11::module_& m);
void bind_memory(pybind11::module_& m);
void bind_modes(pybind11::module_& m);
void bind_cache(pybind11::module_& m);
void install_python_hooks();

}  // namespace torch_tpu

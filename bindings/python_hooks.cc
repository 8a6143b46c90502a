// SPDX-License-Identifier: Apache-2.0
// What the torch layer asks of Python: to let go of the GIL while it waits, the line a user's
// program is at, and PyTorch's Python decompositions.
#include <torch/csrc/jit/python/pybind_utils.h>

#include "backend/clean_state.h"
#include "backend/device.h"
#include "backend/fallback.h"
#include "bindings/module.h"

namespace torch_tpu {

namespace py = pybind11;

namespace {

void* release_gil() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }

void reacquire_gil(void* state) { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }

// "file.py:12" of the innermost Python frame; empty on a thread without one.
std::string python_line() {
  const py::gil_scoped_acquire gil;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  if (!frame) return {};
  const auto code =
      py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const auto file = py::cast<std::string>(code.attr("co_filename"));
  const std::string line = file + ":" + std::to_string(PyFrame_GetLineNumber(frame));
  Py_DECREF(frame);
  return line;
}

bool run_decomposition(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const py::gil_scoped_acquire gil;
  static const auto* lookup =
      new py::object(py::module_::import("torch_tpu._decompositions").attr("lookup"));
  const py::object function = (*lookup)(c10::toString(op.operator_name()));
  if (function.is_none()) return false;

  const auto& schema = op.schema();
  const size_t n = schema.arguments().size();
  py::list args;
  py::dict kwargs;
  for (size_t i = 0; i < n; ++i) {
    const c10::Argument& a = schema.arguments()[i];
    py::object value = torch::jit::toPyObject(torch::jit::peek(stack, i, n));
    if (a.kwarg_only()) {
      if (!value.is_none()) kwargs[py::str(a.name())] = value;
    } else {
      args.append(value);
    }
  }
  const WithoutTorchFunction plain;
  const py::object result = function(*args, **kwargs);
  torch::jit::drop(stack, n);
  const auto& returns = schema.returns();
  if (returns.size() == 1) {
    stack.push_back(torch::jit::toIValue(result, returns[0].type()));
    return true;
  }
  const auto values = py::cast<py::sequence>(result);
  for (size_t i = 0; i < returns.size(); ++i) {
    stack.push_back(torch::jit::toIValue(values[i], returns[i].type()));
  }
  return true;
}

}  // namespace

void install_python_hooks() {
  set_gil_hooks(
      {.release = &release_gil, .reacquire = &reacquire_gil, .python_line = &python_line});
  set_decomposition(&run_decomposition);
}

}  // namespace torch_tpu

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

// Whether a file belongs to PyTorch or to this package.
bool is_library(const std::string& file) {
  static const auto* folders = [] {
    auto* list = new std::vector<std::string>;
    for (const char* package : {"torch", "torch_tpu"}) {
      for (const py::handle path : py::module_::import(package).attr("__path__")) {
        list->push_back(py::cast<std::string>(path) + "/");
      }
    }
    return list;
  }();
  return std::any_of(folders->begin(), folders->end(),
                     [&](const std::string& folder) { return file.starts_with(folder); });
}

// "file.py:12" of the innermost Python frame of the user's program, or of the innermost if all are
// PyTorch's; empty on a thread without one.
std::string python_line() {
  const py::gil_scoped_acquire gil;
  std::string innermost;
  auto frame = py::reinterpret_steal<py::object>(
      reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame) {
    auto* const f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    const auto file = py::cast<std::string>(code.attr("co_filename"));
    const std::string line = file + ":" + std::to_string(PyFrame_GetLineNumber(f));
    if (!is_library(file)) return line;
    if (innermost.empty()) innermost = line;
    frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return innermost;
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

// SPDX-License-Identifier: Apache-2.0
// For tests: one runtime of two devices per test program, with a disk cache of its own, and
// programs written by hand.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "core/exec/runtime.h"
#include "core/pjrt/test_plugin.h"

namespace tpu::exec {

inline const ir::Type kVector{ir::DType::kF32, {8}};
// Large enough for a block of the pool.
inline const ir::Type kLarge{ir::DType::kF32, {1 << 20}};

inline std::string new_directory() {
  std::string pattern = testing::TempDir() + "/exec_XXXXXX";
  return mkdtemp(pattern.data());
}

inline Runtime& test_runtime() {
  static Runtime& runtime = []() -> Runtime& {
    Runtime::configure(
        {.plugin_path = pjrt::test_plugin_path(), .device_count = 2, .cache_dir = new_directory()});
    return Runtime::instance();
  }();
  return runtime;
}

inline Device& test_device(int index = 0) { return test_runtime().device(index); }

// A module of which `body` computes %r0, %r1... from %0, %1..., %words and %checks.
inline ir::Graph::Module make_module(const ProgramLayout& layout, const std::string& body) {
  ir::Graph::Module module;
  std::string arguments;
  const auto add = [&](const std::string& name, const ir::Type& type, int alias) {
    arguments +=
        fmt::format("{}%{}: {}{}", arguments.empty() ? "" : ", ", name, type.mlir(),
                    alias < 0 ? "" : fmt::format(" {{tf.aliasing_output = {} : i32}}", alias));
    module.parameters.push_back(type);
  };
  for (size_t i = 0; i < layout.arrays.size(); ++i) {
    int alias = -1;
    for (const auto& a : layout.aliases)
      alias = a.parameter == static_cast<int>(i) ? a.result : alias;
    add(std::to_string(i), layout.arrays[i], alias);
  }
  if (layout.words > 0) add("words", {ir::DType::kS32, {layout.words}}, -1);
  for (const int d : layout.destinations)
    add(fmt::format("d{}", d), layout.results[static_cast<size_t>(d)], d);
  std::string values;
  std::string types;
  module.results = layout.results;
  if (!layout.checks.empty()) module.results.push_back({ir::DType::kS64, {2}});
  for (size_t i = 0; i < module.results.size(); ++i) {
    const bool is_checks = i == layout.results.size();
    values += fmt::format("{}%{}", i ? ", " : "", is_checks ? "checks" : fmt::format("r{}", i));
    types += (i ? ", " : "") + module.results[i].mlir();
  }
  module.text =
      fmt::format("module {{ func.func public @main({}) -> ({}) {{\n{}\nreturn {} : {} }} }}",
                  arguments, types, body, values, types);
  return module;
}

inline ProgramRef make_program(ProgramLayout layout, const std::string& body,
                               OptionSet options = OptionSet::kFast) {
  const ir::Graph::Module module = make_module(layout, body);
  return value_or_throw(test_runtime().compiler().compile(
      {.op = "aten::test", .module = module, .layout = std::move(layout), .options = options}));
}

inline ProgramRef add_program(const ir::Type& type, bool destination = false, bool alias = false) {
  ProgramLayout layout{.arrays = {type, type}, .results = {type}};
  if (destination) layout.destinations = {0};
  if (alias) layout.aliases = {{0, 0}};
  return make_program(layout, "%r0 = stablehlo.add %0, %1 : " + type.mlir());
}

inline ArrayRef filled(float value, const ir::Type& type = kVector, int device = 0) {
  const std::vector<float> host(static_cast<size_t>(type.numel()), value);
  return value_or_throw(test_device(device).upload(host.data(), type));
}

template <class T = float>
std::vector<T> contents(const ArrayRef& array) {
  std::vector<T> host(static_cast<size_t>(array->type().numel()));
  throw_if_error(array->device().download(*array, host.data()));
  return host;
}

struct LaunchArguments {
  std::vector<int32_t> words = {};
  std::vector<int> donated = {};
  std::string origin = {};
  int device = 0;
};

inline Result<std::vector<ArrayRef>> launch(const ProgramRef& program,
                                            const std::vector<ArrayRef>& arrays,
                                            const LaunchArguments& more = {}) {
  std::vector<Array*> arguments;
  for (const ArrayRef& a : arrays) arguments.push_back(a.get());
  std::vector<ArrayRef> results(program->layout.results.size());
  Device& device = test_device(more.device);
  const std::lock_guard guard(device.queue_lock());
  TPU_RETURN_IF_ERROR(device.launch({.program = program,
                                     .arguments = arguments,
                                     .words = more.words,
                                     .donated = more.donated,
                                     .op = "aten::test",
                                     .origin = more.origin},
                                    results));
  return results;
}

inline const void* address(const ArrayRef& array) {
  throw_if_error(array->buffer().await());
  return value_or_throw(array->buffer().unsafe_pointer());
}

}  // namespace tpu::exec

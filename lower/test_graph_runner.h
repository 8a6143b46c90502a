// SPDX-License-Identifier: Apache-2.0
// Runs a graph on the CPU plugin, for tests only. One thread.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/exec/runtime.h"

namespace tpu::lower::testing {

using Bytes = std::vector<uint8_t>;

inline exec::Runtime& runtime() {
  static exec::Runtime& instance = [&]() -> exec::Runtime& {
    exec::RuntimeOptions options;
    options.plugin_path = TEST_PJRT_PLUGIN;
    exec::Runtime::configure(std::move(options));
    return exec::Runtime::instance();
  }();
  return instance;
}

// The results' bytes, for one entry of bytes per parameter.
inline std::vector<Bytes> run(ir::Graph& graph, const ir::Values& results,
                              const std::vector<Bytes>& parameters) {
  exec::Device& device = runtime().device(0);
  const ir::Graph::Module module = graph.module(results);
  exec::Compiler::Request request{.op = graph.op_name(), .module = module, .layout = {}};
  request.layout.arrays = module.parameters;
  request.layout.results = module.results;
  const exec::ProgramRef program = value_or_throw(runtime().compiler().compile(std::move(request)));
  std::vector<exec::ArrayRef> arrays;
  std::vector<exec::Array*> arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    TPU_CHECK(parameters[i].size() == module.parameters[i].bytes(), "bytes of the parameter");
    arrays.push_back(value_or_throw(device.upload(parameters[i].data(), module.parameters[i])));
    arguments.push_back(arrays.back().get());
  }
  std::vector<exec::ArrayRef> outputs(results.size());
  {
    const std::lock_guard lock(device.queue_lock());
    throw_if_error(device.launch({.program = program,
                                  .arguments = arguments,
                                  .words = {},
                                  .donated = {},
                                  .op = "",
                                  .origin = {}},
                                 outputs));
  }
  std::vector<Bytes> bytes;
  for (const exec::ArrayRef& output : outputs) {
    bytes.emplace_back(output->bytes());
    throw_if_error(device.download(*output, bytes.back().data()));
  }
  return bytes;
}

}  // namespace tpu::lower::testing

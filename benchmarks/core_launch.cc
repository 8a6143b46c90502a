// SPDX-License-Identifier: Apache-2.0
// What Device::launch costs above the plugin's own Execute:
//   core_launch <plugin.so>
// Every line is the fastest of many batches, in nanoseconds per launch, results destroyed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "core/exec/runtime.h"

namespace {

using tpu::value_or_throw;
using namespace tpu::exec;
namespace ir = tpu::ir;

template <class Body>
double nanoseconds(Body body) {
  constexpr int kBatches = 400;
  constexpr int kPerBatch = 250;
  double best = 1e30;
  for (int b = 0; b < kBatches; ++b) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kPerBatch; ++i) body();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / kPerBatch);
  }
  return best;
}

const ir::Type kVector{ir::DType::kF32, {8}};

ProgramRef add_program(Compiler& compiler, int words) {
  ir::Graph::Module module;
  module.parameters = {kVector, kVector};
  module.results = {kVector};
  if (words > 0) module.parameters.push_back({ir::DType::kS32, {words}});
  module.text = fmt::format(
      "module {{ func.func public @main(%a: tensor<8xf32>, %b: tensor<8xf32>{}) -> tensor<8xf32> "
      "{{\n"
      "  %0 = stablehlo.add %a, %b : tensor<8xf32>\n  return %0 : tensor<8xf32> }} }}",
      words > 0 ? fmt::format(", %words: tensor<{}xi32>", words) : "");
  ProgramLayout layout{.arrays = {kVector, kVector}, .words = words, .results = {kVector}};
  return value_or_throw(compiler.compile({.op = "add", .module = module, .layout = layout}));
}

double raw(const Program& program, const std::vector<Array*>& arguments,
           tpu::pjrt::Client& client) {
  std::vector<PJRT_Buffer*> handles;
  for (const Array* a : arguments) handles.push_back(a->buffer().get());
  return nanoseconds([&] {
    PJRT_Buffer* result = nullptr;
    tpu::throw_if_error(program.executable.execute({.arguments = handles,
                                                    .non_donatable = {},
                                                    .device = client.devices()[0],
                                                    .results = {&result, 1}}));
    tpu::pjrt::Buffer owned(&client.api(), result);
  });
}

double launched(Device& device, const Program& program, const std::vector<Array*>& arguments,
                const std::vector<int32_t>& words) {
  return nanoseconds([&] {
    ArrayRef result;
    const std::lock_guard guard(device.queue_lock());
    tpu::throw_if_error(device.launch({.program = program,
                                       .arguments = arguments,
                                       .words = words,
                                       .donated = {},
                                       .op = "add",
                                       .origin = {}},
                                      {&result, 1}));
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: core_launch <plugin.so>\n");
    return 2;
  }
  Runtime::configure({.plugin_path = argv[1]});
  Runtime& runtime = Runtime::instance();
  Device& device = runtime.device(0);
  const std::vector<float> host(8, 1.0F);
  const ArrayRef a = value_or_throw(device.upload(host.data(), kVector));
  const ArrayRef b = value_or_throw(device.upload(host.data(), kVector));
  const std::vector<Array*> arguments = {a.get(), b.get()};
  const ProgramRef plain = add_program(runtime.compiler(), 0);
  const ProgramRef with_words = add_program(runtime.compiler(), 2);

  const double execute = raw(*plain, arguments, runtime.client());
  const double launch = launched(device, *plain, arguments, {});
  std::printf("PJRT execute, 2 arguments, 1 result    %7.0f ns\n", execute);
  std::printf("Device::launch                         %7.0f ns  (+%.0f)\n", launch,
              launch - execute);
  std::printf("Device::launch, 2 repeated words       %7.0f ns\n",
              launched(device, *with_words, arguments, {7, 9}));
  int32_t changing = 0;
  std::printf("Device::launch, 2 changing words       %7.0f ns\n", nanoseconds([&] {
                ArrayRef result;
                const std::vector<int32_t> words = {++changing, 9};
                const std::lock_guard guard(device.queue_lock());
                tpu::throw_if_error(device.launch({.program = *with_words,
                                                   .arguments = arguments,
                                                   .words = words,
                                                   .donated = {},
                                                   .op = "add",
                                                   .origin = {}},
                                                  {&result, 1}));
              }));
  return 0;
}
